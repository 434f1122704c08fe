# SPDX-License-Identifier: GPL-2.0
"""make model: the modelled card for one's own QEMU or User-Mode Linux."""

import shlex
import shutil
import tempfile
from pathlib import Path
from string import Template

from testbed.boot import nicmodel
from testbed.boot.uml import DEVICE
from testbed.env import Env, short_hash
from testbed.host.lock import Lock
from testbed.host.ui import say

_RECIPE = Path(__file__).with_name("model.txt")
# The maximum length of a socket's address.
_LONGEST = 107


def main(env: Env) -> int:
    """Build the model, and print the commands that attach it."""
    with Lock(nicmodel.target_folder(env) / "skbulk.lock", "the host tools"):
        built = nicmodel.build(env) / "nicmodel"
        program = env.out / "nicmodel/nicmodel"
        program.parent.mkdir(parents=True, exist_ok=True)
        # Replaced by renaming: the old one may be running.
        part = program.with_suffix(".part")
        shutil.copy2(built, part)
        part.rename(program)
    say(f"\n{program}\n")
    say(*recipe(program, sockets(env)))
    return 0


def sockets(env: Env) -> Path:
    """The folder of the sockets: in out/, unless its path is too long for that."""
    folder = env.out / "nicmodel/sockets"
    if len(str(folder / "control.sock")) <= _LONGEST:
        return folder
    # The model refuses one that others have made.
    return Path(tempfile.gettempdir()) / f"nicmodel-{short_hash(str(env.clone))}"


def recipe(program: Path, folder: Path) -> list[str]:
    """The commands, ready to be pasted."""
    words = {"run": str(program), "folder": str(folder), "id": str(DEVICE)}
    words["control"] = f"UNIX-CONNECT:{folder}/control.sock"
    for port in (0, 1):
        path = f"{folder}/port{port}.sock"
        socket = f'{{"path":"{path}","type":"unix"}}'
        words[f"qemu{port}"] = f'{{"driver":"vfio-user-pci","bus":"slot{port}","socket":{socket}}}'
        words[f"uml{port}"] = f"virtio_uml.device={path}:{DEVICE}"
    text = Template(_RECIPE.read_text(encoding="utf-8"))
    return text.substitute({name: shlex.quote(word) for name, word in words.items()}).splitlines()
