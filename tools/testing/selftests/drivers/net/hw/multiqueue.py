#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Several queues: their number, the distribution of flows over them, and the
order within each flow.
"""

import glob
import os
import re
from pathlib import Path

from lib.py import EthtoolFamily, KsftFailEx, KsftNamedVariant, KsftSkipEx
from lib.py import CmdExitFailure, cmd, ethtool, ip, ksft_disruptive
from lib.py import ksft_eq, ksft_exit, ksft_ge, ksft_raises, ksft_run
from lib.py import ksft_true, ksft_variants
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after, traffic_intact
from lib.py.support import Task, driver_stats, flood, wait_until

# RSS of the card is limited to this number of queues.
RSS_QUEUES = 16
# A queue that receives this many frames of 640 has received the flow.
MOST = 600


def _channels(cfg, port):
    return cfg.ethnl.channels_get({"header": {"dev-index": port.ifindex()}})


def _set_channels(cfg, count, ports=None):
    for port in ports or cfg.ports:
        if _channels(cfg, port)["combined-count"] != count:
            ethtool(f"-L {port.ifname} combined {count}")


def begins_with_one(cfg):
    """ The Rust driver starts with one queue. """
    cfg.require_driver("ixgbe_rust", "the driver begins with a queue for each CPU")
    ksft_eq([_channels(cfg, port)["combined-count"] for port in cfg.ports], [1, 1])


@ksft_disruptive
def queue_for_each_cpu(cfg):
    """ Both ports take as many queues as there are CPUs. """
    _set_channels(cfg, cfg.queues)


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()
    cfg.settle()


BOTH_PORTS = [KsftNamedVariant("port0", 0), KsftNamedVariant("port1", 1)]


@ksft_variants([KsftNamedVariant(f"{kind}_port{port}", port, kind)
                for kind in ("rx", "tx") for port in (0, 1)])
def queue_per_cpu(cfg, port, kind):
    """ sysfs shows a queue for each CPU. """
    ksft_eq(cfg.ports[port].queues(kind), cfg.queues)


@ksft_variants(BOTH_PORTS)
def irq_per_queue(cfg, port):
    """ Each queue has an interrupt named after the interface. """
    name = cfg.ports[port].ifname
    irqs = Path("/proc/interrupts").read_text(encoding="utf-8")
    ksft_eq(len(re.findall(rf"[ -]{name}-TxRx-\d+$", irqs, re.M)), cfg.queues)


@ksft_variants(BOTH_PORTS)
def channels_shown(cfg, port):
    """ ethtool -l shows the number of queues. """
    ksft_eq(_channels(cfg, cfg.ports[port])["combined-count"], cfg.queues)


def counters_of_each_queue(cfg):
    """ ethtool -S has counters of the last queue. """
    ksft_true(f"rx_queue_{cfg.queues - 1}_packets" in driver_stats(cfg.ifname))


def _require_several(cfg):
    if cfg.queues == 1:
        raise KsftSkipEx("there is one CPU")


def _received(cfg):
    """ Return the number of packets that each queue of port 0 received. """
    stats = driver_stats(cfg.ifname)
    return [stats[f"rx_queue_{queue}_packets"] for queue in range(cfg.queues)]


def _used(cfg, before, least):
    """ Count the queues that received at least so many packets since then. """
    return sum(now - was >= least
               for now, was in zip(_received(cfg), before, strict=True))


def _check_spread(cfg, flows):
    """
    Send flows from several hosts until each queue has received some. The hash
    key is random, so that the number of hosts varies.
    """
    _require_several(cfg)
    before = _received(cfg)
    for host in (2, 3, 4, 8, 16, 32, 64, 128):
        cfg.check_forwarded(640, flows=flows, src_ip=f"10.0.0.{host}")
        if _used(cfg, before, 5) == cfg.queues:
            return
    raise KsftFailEx(f"only {_used(cfg, before, 5)} of {cfg.queues} queues were used")


def udp_between_two_hosts(cfg):
    """ UDP flows between two hosts are forwarded in order. """
    _require_several(cfg)
    before = _received(cfg)
    cfg.check_forwarded(640, flows=64)
    cfg.used["udp"] = _used(cfg, before, MOST)


def udp_between_two_hosts_one_queue(cfg):
    """
    One queue received all of them: ports are not hashed by default, since
    fragments have none.
    """
    _require_several(cfg)
    ksft_eq(cfg.used["udp"], 1)


def _hashed_ports(cfg):
    said = ethtool(f"-n {cfg.ifname} rx-flow-hash udp4").stdout
    return said.count("L4 bytes")


def udp_ports_not_hashed(cfg):
    """ ethtool -n shows that UDP ports are not hashed. """
    ksft_eq(_hashed_ports(cfg), 0)


@ksft_disruptive
def udp_ports_hashed(cfg):
    """ UDP ports can be hashed by ethtool -N. """
    ethtool(f"-N {cfg.ifname} rx-flow-hash udp4 sdfn")
    ksft_eq(_hashed_ports(cfg), 2)


def flows_are_spread(cfg):
    """ Flows are spread over all queues, each in order. """
    _check_spread(cfg, 64)


def one_flow(cfg):
    """ A single flow is forwarded in order. """
    _require_several(cfg)
    before, total = _received(cfg), cfg.ports[0].stat("rx_packets")
    cfg.check_forwarded(640)
    cfg.used["flow"] = _used(cfg, before, MOST)
    cfg.sums = (sum(_received(cfg)) - sum(before),
                cfg.ports[0].stat("rx_packets") - total)


def one_flow_one_queue(cfg):
    """ One queue received the whole flow. """
    _require_several(cfg)
    ksft_eq(cfg.used["flow"], 1)


def queue_counters_add_up(cfg):
    """ Queue counters add up to the interface's, within a few packets. """
    _require_several(cfg)
    queues, total = cfg.sums
    ksft_ge(total, 640)
    ksft_ge(20, total - queues, f"{queues} by queues, {total} by the interface")


def hash_refused(cfg):
    """ A hash that the card does not support is refused. """
    with ksft_raises(CmdExitFailure):
        ethtool(f"-N {cfg.ifname} rx-flow-hash tcp4 s")


def _require_xps(cfg):
    path = f"/sys/class/net/{cfg.ports[1].ifname}/queues/tx-0/xps_cpus"
    try:
        mask = Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        mask = ""
    if not mask or os.cpu_count() != cfg.queues or cfg.queues == 1:
        raise KsftSkipEx("no XPS, or not as many CPUs as queues")


def _own_queue(cfg):
    """ Check that CPU n sends by queue n. """
    _require_xps(cfg)
    for port in cfg.ports:
        for path in glob.glob(f"/sys/class/net/{port.ifname}/queues/tx-*/xps_cpus"):
            mask = Path(path).read_text(encoding="utf-8").strip().replace(",", "")
            queue = int(re.search(r"tx-(\d+)", path)[1])
            ksft_eq(int(mask, 16), 1 << queue, f"CPUs that send by {path}")


def cpu_has_own_queue(cfg):
    """ xps_cpus maps each CPU to its own queue. """
    _own_queue(cfg)


def cpu_sends_by_own_queue(cfg):
    """ Packets of a CPU are counted by its own queue. """
    _require_xps(cfg)
    ifname = cfg.ports[1].ifname

    def sent(queue):
        return driver_stats(ifname)[f"tx_queue_{queue}_packets"]

    for cpu in range(cfg.queues):
        before = sent(cpu)
        ksft_eq(Task(flood, ifname, 50, 5, cpu=cpu).result(), 50)
        wait_until(lambda cpu=cpu, before=before: sent(cpu) >= before + 50, 5,
                   f"queue {cpu} has sent what CPU {cpu} gave it")


def _napi_threads(cfg):
    """ Return the NAPI threads of both ports. """
    names = tuple(f"napi/{port.ifname}-" for port in cfg.ports)
    found = []
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            comm = Path(path).read_text(encoding="utf-8")
        except OSError:
            continue
        # The kernel cuts the name of a task at 15 characters.
        if comm.strip().startswith(tuple(name[:15] for name in names)):
            found.append(int(path.split("/")[2]))
    return found


def _set_threaded(cfg, state):
    for port in cfg.ports:
        path = f"/sys/class/net/{port.ifname}/threaded"
        Path(path).write_text(state, encoding="utf-8")


@ksft_disruptive
def threads(cfg):
    """
    Each queue has a NAPI thread, bound to a CPU: queues are polled at the same
    time even if one CPU takes all interrupts.
    """
    _set_threaded(cfg, "1")
    found = _napi_threads(cfg)
    ksft_eq(len(found), 2 * cfg.queues)
    for number, pid in enumerate(found):
        os.sched_setaffinity(pid, {number % cfg.queues})


def threads_spread(cfg):
    """ Flows are spread over all threads, each in order. """
    _check_spread(cfg, 64)


def threads_forward(cfg):
    """ Threads forward a burst that fits into a ring. """
    cfg.check_forwarded(400, flows=64)


@ksft_disruptive
def threads_off(cfg):
    """ The driver forwards every frame without threads again. """
    _set_threaded(cfg, "0")
    cfg.check_works()


@ksft_disruptive
def channels_under_traffic(cfg):
    """ The number of queues changes under traffic. """
    cfg.start_traffic()
    for _ in range(3):
        for count in (1, cfg.queues):
            _set_channels(cfg, count)
            ksft_eq(cfg.ports[0].queues("rx"), count)
            ksft_eq(_channels(cfg, cfg.ports[1])["combined-count"], count)
            cfg.card.wait_up()


def own_queue_after_channels(cfg):
    """ xps_cpus maps each CPU to its own queue again. """
    _own_queue(cfg)


@ksft_disruptive
def one_queue(cfg):
    """ The number of queues can be set to one. """
    _set_channels(cfg, 1, cfg.ports[:1])
    ksft_eq(cfg.ports[0].queues("rx"), 1)


def one_queue_forwards(cfg):
    """ One queue forwards 64 flows, each in order. """
    cfg.set_up()
    cfg.settle()
    cfg.check_forwarded(640, flows=64)


@ksft_disruptive
def all_queues_again(cfg):
    """ The number of queues can be set back. """
    _set_channels(cfg, cfg.queues, cfg.ports[:1])
    ksft_eq(cfg.ports[0].queues("rx"), cfg.queues)


def channels_max(cfg):
    """ ethtool -l shows the number of CPUs as the maximum. """
    cfg.require_driver("ixgbe_rust", "the driver takes more queues than CPUs")
    ksft_eq(_channels(cfg, cfg.ports[0])["combined-max"], cfg.queues)


@ksft_variants([KsftNamedVariant("none", 0), KsftNamedVariant("more_than_cpus", None)])
def channels_refused(cfg, count):
    """ A wrong number of queues is refused and changes nothing. """
    if count is None:
        cfg.require_driver("ixgbe_rust", "the driver takes more queues than CPUs")
        count = cfg.queues + 1
    with ksft_raises(CmdExitFailure):
        ethtool(f"-L {cfg.ifname} combined {count}")
    ksft_eq(_channels(cfg, cfg.ports[0])["combined-count"], cfg.queues)


@ksft_disruptive
def updown(cfg):
    """ Interfaces go down and up. """
    for port in cfg.ports:
        ip(f"link set {port.ifname} down")
    cfg.set_up()
    cfg.settle()


def updown_ports_hashed(cfg):
    """ UDP ports are still hashed. """
    ksft_eq(_hashed_ports(cfg), 2)


def updown_spread(cfg):
    """ Flows are still spread over all queues. """
    _check_spread(cfg, 64)


@ksft_disruptive
def udp_ports_not_hashed_again(cfg):
    """ Hashing of UDP ports can be switched off. """
    ethtool(f"-N {cfg.ifname} rx-flow-hash udp4 sd")
    ksft_eq(_hashed_ports(cfg), 0)


def main():
    """ Ksft boiler plate main """

    # With several queues the rings are short: an emulated CPU that runs all
    # checkers is too slow, and frames are dropped.
    with NicModelEnv(__file__, native=True) as cfg:
        cfg.ethnl = EthtoolFamily()
        cfg.queues = min(os.cpu_count(), RSS_QUEUES)
        cfg.used, cfg.sums = {}, (0, 0)
        was = [_channels(cfg, port)["combined-count"] for port in cfg.ports]
        try:
            ksft_run(judged([begins_with_one, queue_for_each_cpu, set_up, queue_per_cpu,
                             irq_per_queue, channels_shown, counters_of_each_queue,
                             udp_between_two_hosts, udp_between_two_hosts_one_queue,
                             udp_ports_not_hashed, udp_ports_hashed, flows_are_spread,
                             one_flow, one_flow_one_queue, queue_counters_add_up,
                             hash_refused,
                             cpu_has_own_queue, cpu_sends_by_own_queue,
                             threads, threads_spread, threads_forward, threads_off,
                             channels_under_traffic, traffic_intact("channels"),
                             own_queue_after_channels,
                             one_queue, one_queue_forwards, all_queues_again,
                             channels_max, channels_refused, forwards_after("channels"),
                             updown, updown_ports_hashed, updown_spread, udp_ports_not_hashed_again,
                             forwards_after("updown")]), args=(cfg, ))
        finally:
            for port, count in zip(cfg.ports, was, strict=True):
                cmd(f"ethtool -L {port.ifname} combined {count}", fail=False)
    ksft_exit()


if __name__ == "__main__":
    main()
