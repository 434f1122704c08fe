# SPDX-License-Identifier: GPL-2.0
"""Builds whose Rust functions count how often they are entered."""

from collections.abc import Mapping, Sequence

# Counters are inserted before functions are inlined. They are read from memory: no runtime that
# would write them to a file.
_RUSTC = "-Cinstrument-coverage -Zno-profiler-runtime"
# For the kernel's make: the crate kernel, and all modules. User-Mode Linux is linked without the
# function that frees the memory of modules, so that counters of an unloaded module stay.
KERNEL: Sequence[str] = (
    f"RUSTFLAGS_kernel.o={_RUSTC}",
    f"RUSTFLAGS_MODULE={_RUSTC}",
    "LDFLAGS_EXECSTACK=-z noexecstack --wrap=execmem_free"
    " --defsym=__wrap_execmem_free=sys_ni_syscall",
)
# For cargo. The option of the compiler is not a stable one.
CARGO: Mapping[str, str] = {"RUSTFLAGS": _RUSTC, "RUSTC_BOOTSTRAP": "1"}
