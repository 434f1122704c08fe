# SPDX-License-Identifier: GPL-2.0
"""Boots a kernel that has no user space: it tests itself and powers the machine off.

KUnit runs before the kernel looks for its root file system, and can end the machine.
"""

import time
from collections.abc import Sequence

from testbed.boot import board, dmesg
from testbed.boot.job import Outcome, fresh_log
from testbed.build.kernel import Kernel
from testbed.env import Env
from testbed.host import proc
from testbed.host.ui import Failure

# MiB
_MEMORY = 512
_POWER_OFF = "kunit_shutdown=poweroff"


def boot(
    env: Env, kernel: Kernel, name: str, words: Sequence[str], cpus: int, seconds: float
) -> Outcome:
    """Boot until the machine is off; `words` are those of the kernel's command line."""
    log, own = fresh_log(env, f"console-{name}"), proc.fresh(env.logs / f"qemu-{name}.log")
    log.touch()
    began = time.monotonic()
    code = proc.run(command(kernel, str(log), words, cpus), own, what=f"the VM (console: {log})",
                    timeout=seconds, check=False)  # fmt: skip
    if code != 0:
        raise Failure(f"the VM failed (exit code {code})", f"log: {own}")
    console = log.read_text(errors="replace")
    took = time.monotonic() - began
    return Outcome(code, "", console, took, dmesg.complaints(console))


def command(kernel: Kernel, log: str, words: Sequence[str], cpus: int) -> list[str]:
    """QEMU's command line."""
    it = board.of(kernel.config)
    append = [f"console={it.console}", "panic=-1", "ignore_loglevel", _POWER_OFF, *words]
    return [
        *it.command("", "tcg", cpus, _MEMORY),
        "-chardev", f"file,id=console,path={log}", "-serial", "chardev:console",
        "-kernel", str(kernel.image), "-append", " ".join(append),
    ]  # fmt: skip
