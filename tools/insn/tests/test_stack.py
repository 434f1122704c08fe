# SPDX-License-Identifier: GPL-2.0
"""Stack frames in object code, on listings in the forms of both disassemblers."""

from insn.stack import frames

LISTING = """
0000000000000000 <small>:
       0:      \tpushq\t%rbx
       1:      \tsubq\t$0x20, %rsp
       9:      \tsubq\t$0x8, %rax
0000000000000020 <large>:
      20:      \tsubq\t$0x38d8, %rsp
      30:      \tsubq\t$16, %rsp
0000000000000060 <as_gnu_writes>:
      60:\tsub    $0x1000,%rsp
0000000000000080 <none>:
      80:      \tretq
"""


def test_the_largest_frame_of_each_function_counts() -> None:
    """Functions that take nothing are there as well: they were looked at."""
    found = frames(LISTING.splitlines())
    assert found == {"small": 0x20, "large": 0x38D8, "as_gnu_writes": 0x1000, "none": 0}
