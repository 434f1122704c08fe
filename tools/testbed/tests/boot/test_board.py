# SPDX-License-Identifier: GPL-2.0
"""The command lines of QEMU, for each architecture."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from testbed import settings
from testbed.boot import bare, board, job, vm
from testbed.build import arch, kernel
from testbed.env import Env
from testbed.host.ui import Failure


def made(config: str) -> Any:
    return SimpleNamespace(config=config, image=Path("/image"))


def command(config: str, accel: str = "tcg", words: tuple[str, ...] = (), nodes: str = "1") -> str:
    env: Any = SimpleNamespace(
        clone=Path("/c"),
        guest_root=lambda one: Path(f"/root-{one.name}"),
        settings=settings.read("bench", {"ONLY": "insn", "NODES": nodes}),
    )
    one = job.Job(None, "rust", accel=accel, kernel_words=words)
    run = job.Run(env, one, Path("/log"), Path("/run"), None)
    with mock.patch.object(vm.Machine, "__init__", lambda self, *_: None):
        machine = vm.Vm(env, made(config), Path("/tools"), "x")
    machine.env, machine.kernel, machine.tools = env, made(config), Path("/tools")
    return " ".join(machine._command(run, []))


def test_each_architecture_has_its_board() -> None:
    x86 = command("perf")
    assert x86.startswith("qemu-system-x86_64 ")
    assert "-machine q35,usb=off,smbus=off,sata=off,memory-backend=ram " in x86
    assert "-cpu max,la57=off" in x86
    assert "console=ttyS0 no_timer_check root=" in x86
    assert "path=/root-," in x86
    arm = command("arm64")
    assert arm.startswith("qemu-system-aarch64 ")
    assert "-machine virt,gic-version=3,its=on,memory-backend=ram " in arm
    assert "console=ttyAMA0 root=" in arm
    assert "path=/root-arm64," in arm


def test_a_kernel_that_is_to_use_an_iommu_has_one() -> None:
    assert "-device intel-iommu," in command("debug", words=("intel_iommu=on", "iommu.strict=1"))
    assert "iommu" not in command("debug")


def test_a_kernel_with_nodes_has_memory_and_processors_in_each() -> None:
    words = command("memory")
    assert "-machine q35,usb=off,smbus=off,sata=off -" in words
    assert "-smp 2,sockets=2,maxcpus=2 -m 1024 " in words
    for number in (0, 1):
        assert f"-object memory-backend-memfd,id=ram{number},size=512M,share=on " in words
        assert f"-numa node,nodeid={number},memdev=ram{number},cpus={number}-{number} " in words
    assert "-numa" not in command("perf")
    assert "nodeid=2,memdev=ram2,cpus=2-2 " in command("perf", nodes="3")


def test_each_node_has_a_socket() -> None:
    words = " ".join(board.of("memory").shared("tcg", 3, 1024, 2))
    assert "-smp 3,sockets=2,maxcpus=4 " in words
    assert "nodeid=0,memdev=ram0,cpus=0-1 " in words
    assert words.endswith("nodeid=1,memdev=ram1,cpus=2-3")


def test_kvm_runs_the_processor_of_the_machine() -> None:
    assert "-accel kvm -cpu host " in command("perf", "kvm")


def test_a_kernel_without_user_space_ends_itself() -> None:
    words = bare.command(made("arm"), "/log", ["kunit.enable=1"], 2)
    assert words[0] == "qemu-system-arm"
    assert words[-1].endswith("kunit_shutdown=poweroff kunit.enable=1")
    assert "-fsdev" not in words


def test_a_machine_without_end_or_with_an_error_is_a_failure(tmp_path: Path) -> None:
    env: Any = SimpleNamespace(logs=tmp_path)
    for program, message in (("sleep 60", "no end after"), ("exit 3", "exit code 3")):
        with (
            mock.patch.object(bare, "command", return_value=["sh", "-c", program]),
            pytest.raises(Failure, match=message),
        ):
            bare.boot(env, made("arm"), "x", [], 1, 0.2 if "sleep" in program else 10)


def test_the_console_is_the_outcome(tmp_path: Path) -> None:
    env: Any = SimpleNamespace(logs=tmp_path)
    script = f"echo 'BUG: sleeping function' >{tmp_path}/console-x.log"
    with mock.patch.object(bare, "command", return_value=["sh", "-c", script]):
        outcome = bare.boot(env, made("arm"), "x", [], 1, 10)
    assert "sleeping function" in outcome.console
    assert outcome.complaints


def test_every_configuration_has_an_architecture() -> None:
    names = {config: arch.of(config).name for config in (*kernel.CONFIGS, *kernel.NATIVE)}
    assert names == {
        "perf": "", "debug": "", "kcsan": "", "memory": "", "tiny": "", "cfi": "", "rt": "",
        "arm64": "arm64", "arm": "arm", "uml": "um", "selftests": "um", "up": "um",
    }  # fmt: skip


def test_a_guest_root_that_is_missing_is_a_failure(tmp_path: Path) -> None:
    values: Any = SimpleNamespace(internal={"SKBULK_GUEST_ARM64": str(tmp_path)})
    env = Env(values, tmp_path, tmp_path, tmp_path, Path("/root"), None, "", 1)
    assert env.guest_root(arch.X86) == Path("/root")
    with pytest.raises(Failure, match="arm64 guests"):
        env.guest_root(arch.ARM64)
    (tmp_path / ".skbulk-complete").touch()
    assert env.guest_root(arch.ARM64) == tmp_path
