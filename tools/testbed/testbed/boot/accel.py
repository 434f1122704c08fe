# SPDX-License-Identifier: GPL-2.0
"""Decides between KVM and TCG by a short real boot."""

import json
import os
from contextlib import suppress
from pathlib import Path

from testbed.boot.job import Job
from testbed.boot.vm import Vm
from testbed.build.kernel import Kernel
from testbed.combinations import KVM
from testbed.env import Env
from testbed.host.ui import Failure, Step

# With a working KVM the probe takes 2 s.
_PROBE_TIMEOUT = 20.0
_PROBE_SCRIPT = "#!/bin/sh\nuname -r\n"


def choose(env: Env, kernel: Kernel, tools: Path) -> str:
    """The accelerator that runs this kernel on this machine: kvm or tcg.

    /dev/kvm may exist and still be unable to run the kernel (nested virtualization),
    so only a boot shows it. The answer holds until the host's next boot.
    """
    if env.settings.given("ACCEL"):
        return env.settings.text("ACCEL")
    if not os.access(KVM, os.R_OK | os.W_OK):
        return "tcg"
    cache = env.cache / "accel.json"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    known = json.loads(cache.read_text()) if cache.exists() else {}
    if boot in known:
        return str(known[boot])
    accel = "tcg"
    script = env.logs / "kvm-probe.sh"
    script.write_text(_PROBE_SCRIPT)
    with Step("KVM: probing with a short boot") as step:
        job = Job(script, "none", timeout=_PROBE_TIMEOUT, cpus=1, ports=0, accel="kvm")
        with suppress(Failure):
            if Vm(env, kernel, tools, "kvm-probe").run(job).code == 0:
                accel = "kvm"
        step.detail = "works" if accel == "kvm" else "does not run this kernel, using TCG"
    cache.write_text(json.dumps({boot: accel}))
    return accel
