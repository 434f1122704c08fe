# SPDX-License-Identifier: GPL-2.0
"""make fuzz: AFL++ looks for lies of a card that a driver does not live with."""

import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from testbed.boot import inside
from testbed.build.kernel import FUZZERS
from testbed.env import Env
from testbed.host import proc
from testbed.host.ui import Step, say
from testbed.workshop import built

# Milliseconds; the kernel limits the processor's time of an input itself.
_LONG = 120_000
# Bytes of an input that count: the requests of users, and 64 lies.
_BYTES = 8 + 64 * 8
# Without them, it asks for settings of the machine, and draws a screen.
_QUIET = {
    "AFL_AUTORESUME": "1",
    "AFL_CRASHING_SEEDS_AS_NEW_CRASH": "1",
    "AFL_FORKSRV_INIT_TMOUT": str(_LONG),
    "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1",
    "AFL_NO_AFFINITY": "1",
    "AFL_NO_UI": "1",
    "AFL_SKIP_BIN_CHECK": "1",
    "AFL_SKIP_CPUFREQ": "1",
}
_STAT = re.compile(r"^(\w+) *: (.*)$", re.M)
# Inputs that a driver does not live with, and their folders.
_BAD = {"crash": "crashes", "hang": "hangs"}


def main(env: Env) -> int:
    """Fuzz for a while, or try one input; returns 1 if there is one to repeat."""
    settings = env.settings
    config, driver = FUZZERS[settings.text("CONFIG")], settings.text("DRIVER")
    entry, given = settings.text("ENTRY"), settings.path("INPUT")
    folder = env.out / "fuzz" / f"{config}-{driver}-{entry}"
    folder.mkdir(parents=True, exist_ok=True)
    with built(env, config) as ready:
        # Builds go on meanwhile.
        image, library = folder / "linux", folder / inside.LIBRARY
        for source, copy in ((ready.kernels[config].image, image),
                             (ready.tools / inside.LIBRARY, library)):  # fmt: skip
            shutil.copy2(source, copy.with_suffix(".part"))
            copy.with_suffix(".part").rename(copy)
    where = given or "@@"
    words = inside.command(image, library, driver, *inside.fuzzing(entry, where))
    if given is not None:
        return _repeat(env, given, words)
    corpus = settings.path("CORPUS") or inside.corpus(env.clone, entry)
    log = proc.fresh(env.logs / f"{folder.name}.log")
    afl = command(corpus, folder, settings.text("TIMEOUT"), settings.text("SEED"))
    with Step(f"{config} kernel, {driver} driver, lies from its {entry} on") as step:

        def watch() -> None:
            step.detail = summary(_stats(folder))

        proc.run([*afl, *words], log, what="AFL++", env={**_QUIET, **inside.VARIABLES}, watch=watch)
    say(summary(_stats(folder)))
    bad = found(folder / "default")
    for kind, path in bad:
        say(f"{kind}: {repeat(settings.text, path.relative_to(env.clone))}")
    say(f"{folder} has all inputs; the next run goes on from there")
    return 1 if bad else 0


def command(corpus: Path, folder: Path, seconds: str, seed: str) -> list[str | Path]:
    """The fuzzer's own words."""
    return ["afl-fuzz", "-i", corpus, "-o", folder, "-V", str(max(1, round(float(seconds)))),
            "-t", str(_LONG), "-m", "none", "-G", str(_BYTES),
            *(["-s", seed] if seed else []), "--"]  # fmt: skip


def stats(text: str) -> dict[str, str]:
    """The fuzzer's own figures, which it writes once a minute."""
    return dict(_STAT.findall(text))


def _stats(folder: Path) -> dict[str, str]:
    return stats(proc.text_of(folder / "default/fuzzer_stats"))


def summary(now: Mapping[str, str]) -> str:
    """A line of figures; of all runs, if there were several."""
    if not now:
        return ""
    executions, seconds = int(now["execs_done"]), int(now["run_time"])
    return (
        f"{executions:,} executions in {seconds:,} s, {executions / max(seconds, 1):.0f}/s; "
        f"{now['edges_found']} edges, {now['corpus_count']} inputs; "
        f"{now['saved_crashes']} crashes, {now['saved_hangs']} hangs"
    )


def found(folder: Path) -> list[tuple[str, Path]]:
    """The inputs that the driver does not live with."""
    return [
        (kind, path) for kind, name in _BAD.items() for path in sorted((folder / name).glob("id:*"))
    ]


def repeat(text: Callable[[str], str], path: Path) -> str:
    """The command that tries one of them."""
    words = [f"{name}={text(name)}" for name in ("CONFIG", "DRIVER", "ENTRY")]
    return shlex.join(["make", "fuzz", *words, f"INPUT={path}"])


def _repeat(env: Env, given: Path, words: list[str | Path]) -> int:
    ended = inside.run(env, "fuzz-input", words)
    say(ended.console)
    return 0 if inside.verdicts(ended.console) == {given.name: inside.PASSED} else 1
