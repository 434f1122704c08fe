# SPDX-License-Identifier: GPL-2.0
"""Why cases of the kernel's selftests do not pass with the Rust driver.

A rule is about the cases of a program whose name, or whose own reason, has a word. The first one
that fits counts. A case without a rule is listed as not explained. One that says the same words
with both drivers is never booked against the Rust driver, whatever its rule says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testbed.selftests.record import is_alike
from testbed.selftests.results import PASS

CARD, DRIVER, BOTH, TESTBED, TEST = "card", "driver", "both", "testbed", "test"
# The causes, in the order of the table.
CAUSES = {
    CARD: "the 82599 cannot",
    DRIVER: "the driver does not have it",
    BOTH: "the same words with both drivers: in neither, or the environment",
    TESTBED: "the testbed's kernel, tools or machine lack it",
    TEST: "the case itself",
}
UNKNOWN = "not explained"


@dataclass(frozen=True)
class Rule:
    """The cause for some cases of a program."""

    program: str
    word: str
    cause: str
    why: str

    def fits(self, program: str, case: str, reason: str) -> bool:
        """Whether it is about this case."""
        return self.program == program and (self.word in case or self.word in reason)


_XDP = "XDP, and AF_XDP without copies, are not there yet"
_SPLIT = "split headers, for zero-copy reception, are not there yet"
_SLOW = "the emulated machine takes longer than the case waits"
_CONTEXTS = "one table and one key for the hash: no contexts"
_SWITCH = "no embedded switch"
_L3_STATS = "no counters of routes"
_NO_IPV6 = "no perfect filters for IPv6"

RULES = (
    Rule("devlink_port_split.py", "", CARD, "ports cannot be split"),
    Rule("devlink_rate_cross_esw.py", "", CARD, _SWITCH),
    Rule("devlink_rate_tc_bw.py", "", CARD, _SWITCH),
    Rule("devmem.py", "", DRIVER, _SPLIT),
    Rule("nk_devmem.py", "", DRIVER, _SPLIT),
    Rule("userns_devmem.py", "", DRIVER, _SPLIT),
    Rule("hds.py", "", DRIVER, _SPLIT),
    Rule("iou-zcrx.py", "", DRIVER, _SPLIT),
    Rule("nk_qlease.py", "", DRIVER, _SPLIT),
    Rule("ethtool.sh", "", CARD, "the module decides on the speed"),
    Rule("ethtool_extended_state.sh", "", CARD, "it does not tell why a link is down"),
    Rule("ethtool_mm.sh", "", CARD, "no MAC merge"),
    Rule("ethtool_std_stats.sh", "pause-tx", TEST, "pause frames that software sends"),
    Rule("ethtool_std_stats.sh", "", CARD, "it does not count these"),
    Rule("gro.py", "rx-gro-hw", CARD, "it joins packets by LRO"),
    Rule("gro.py", "_isolated", CARD, _NO_IPV6),
    Rule("gro.py", ".lro_", CARD, "LRO is for TCP over IPv4 without options, and ends elsewhere"),
    Rule("gro.py", "sw_ipv4_data_lrg_1byte", TEST, "fails with either driver"),
    Rule("gro_hw.py", "", CARD, "it joins packets by LRO"),
    Rule("hw_stats_l3.sh", "", CARD, _L3_STATS),
    Rule("hw_stats_l3_gre.sh", "", CARD, _L3_STATS),
    Rule("ipsec_vxlan.py", "", DRIVER, "no IPsec"),
    Rule("macsec.py", "netdevsim", TEST, "for netdevsim only"),
    Rule("macsec.py", "", CARD, "no MACsec"),
    Rule("netpoll_basic.py", "bpftrace", TESTBED, _SLOW),
    Rule("netpoll_basic.py", "", TEST, "the queue does not fill up"),
    Rule("nic_timestamp.py", "", DRIVER, "no time stamps by the card (PTP)"),
    Rule("ntuple.py", "6.", CARD, _NO_IPV6),
    Rule("ping.py", "xdp_offload", CARD, "no XDP in the card"),
    Rule("ping.py", "xdp", DRIVER, _XDP),
    Rule("pp_alloc_fail.py", "", TEST, "it expects an allocation for each buffer"),
    Rule("psp.py", "netdevsim", TEST, "for netdevsim only"),
    Rule("psp.py", "", CARD, "no PSP"),
    Rule("ring_reconfig.py", "backlog", TEST, "the queue does not fill up"),
    Rule("rss_api.py", "fields", CARD, "its hash is over both addresses, or both ports too"),
    Rule("rss_api.py", "", CARD, _CONTEXTS),
    Rule("rss_ctx.py", "TimeoutExpired", TESTBED, _SLOW),
    Rule("rss_ctx.py", "", CARD, _CONTEXTS),
    Rule("rss_drv.py", "contexts", CARD, _CONTEXTS),
    Rule("rss_drv.py", "", CARD, "a table of one size"),
    Rule("rss_flow_label.py", "", CARD, "no flow labels in its hash"),
    Rule("rss_input_xfrm.py", "", CARD, "its hash is not symmetric"),
    Rule("shaper.py", "get_", DRIVER, "no rate limits"),
    Rule("shaper.py", "", CARD, "its slowest limit is above the 10 kb/s of the cases; no groups"),
    Rule("stats.py", "fec", CARD, "10 Gb/s over one lane has no FEC"),
    Rule("toeplitz.py", "udp", DRIVER, "ports of UDP are not hashed at first, as with ixgbe"),
    Rule("xdp.py", "(-524)", TESTBED, "no JIT, which functions of the kernel need in BPF programs"),
    Rule("xdp.py", "", DRIVER, _XDP),
    Rule("xdp_metadata.py", "", DRIVER, _XDP),
    Rule("xsk_reconfig.py", "", DRIVER, _XDP),
)


def explained(record: Mapping[str, Any]) -> dict[tuple[str, str, str], int]:
    """The number of cases that do not pass with the Rust driver: by program, cause and reason."""
    found: dict[tuple[str, str, str], int] = {}
    for program, entry in record["rust"].items():
        for name, case in entry["cases"].items():
            if case["result"] == PASS:
                continue
            rule = next((r for r in RULES if r.fits(program, name, case["reason"])), None)
            key = (program, UNKNOWN, name)
            if rule:
                cause = rule.cause
                if cause == DRIVER and is_alike(record, program, name):
                    cause = BOTH
                key = (program, cause, rule.why)
            found[key] = found.get(key, 0) + 1
    return found


def sums(record: Mapping[str, Any]) -> str:
    """The number of cases by cause, as a part of a sentence."""
    found: dict[str, int] = {}
    for (_, cause, _), count in explained(record).items():
        found[cause] = found.get(cause, 0) + count
    return "; ".join(
        f"{CAUSES.get(cause, cause)} ({found[cause]})"
        for cause in (*CAUSES, UNKNOWN)
        if cause in found
    )


def table(record: Mapping[str, Any]) -> list[str]:
    """The reasons by program, as the lines of a Markdown table."""
    return [
        "| program | cases | cause | |",
        "| --- | ---: | --- | --- |",
        *(
            f"| {program} | {count} | {cause} | {why} |"
            for (program, cause, why), count in explained(record).items()
        ),
    ]
