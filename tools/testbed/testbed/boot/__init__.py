# SPDX-License-Identifier: GPL-2.0
"""One boot of a kernel: the job, QEMU or User-Mode Linux, the modelled card, complaints."""
