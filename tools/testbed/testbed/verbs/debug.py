# SPDX-License-Identifier: GPL-2.0
"""make debug: the guest of make shell and make run, with gdb's stub."""

import math
from pathlib import Path
from string import Template

from testbed.build.kernel import Kernel
from testbed.env import Env
from testbed.host.ui import Failure, say
from testbed.verbs.run import boot

# The maximum length of a Unix socket's address.
_LONGEST = 100


def main(env: Env) -> int:
    """Boot with the stub; SCRIPT runs, or there is a prompt."""
    socket, wait, text = _socket(env), env.settings.switch("WAIT"), env.settings.text("SCRIPT")

    def stub(made: Kernel) -> list[str]:
        commands = env.out / "debug.gdb"
        commands.write_text(gdb_commands(made, socket, wait))
        say("gdb's stub waits; in another terminal, in this clone:")
        say(f"    {gdb_command(made, commands, env.clone)}")
        return stub_words(socket, wait)

    return boot(env, "debug", env.clone / text if text else None, math.inf, stub)


def _socket(env: Env) -> Path:
    socket = env.out / "gdb.sock"
    if len(str(socket)) > _LONGEST:
        raise Failure(
            f"{socket} is too long for the address of a socket",
            "put the clone into a folder with a shorter name",
        )
    socket.unlink(missing_ok=True)
    return socket


def stub_words(socket: Path, wait: bool) -> list[str]:
    """QEMU's options for the stub; with `wait` the machine waits for gdb."""
    return ["-gdb", f"unix:{socket},server=on,wait=off", *(["-S"] if wait else [])]


def gdb_command(made: Kernel, commands: Path, clone: Path) -> str:
    """The command that starts the build root's gdb."""
    return f"tools/buildroot run gdb -x {commands.relative_to(clone)} {made.build}/vmlinux"


def gdb_commands(made: Kernel, socket: Path, wait: bool) -> str:
    """The initial commands of gdb: the kernel's own (lx-...), then the machine. A module's
    symbols are known once it is loaded, and at once after lx-symbols."""
    text = Template(Path(__file__).with_name("debug.gdb").read_text(encoding="utf-8"))
    wait_there = "hbreak start_kernel\ncontinue\ndelete\n" if wait else ""
    return text.substitute(tree=made.tree.work, build=made.build, socket=socket, wait=wait_there)
