#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

""" One receive queue is restarted with other memory, while the others go on. """

import contextlib
import ipaddress
import os
import threading

from lib.py import CmdExitFailure, EthtoolFamily, KsftFailEx, KsftNamedVariant, KsftSkipEx
from lib.py import NetdevFamily
from lib.py import cmd, ethtool, ip, ksft_disruptive, ksft_eq, ksft_exit, ksft_ge, ksft_in
from lib.py import ksft_raises, ksft_run, ksft_variants
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after, traffic_intact
from lib.py.support import driver_stats, pages_back, restart_rx_queue, rounds, wait_until

# They differ in 24 bits: no likely key gives all of them to one queue.
SOURCES = [str(ipaddress.ip_address(0x0a000000 | host * 0x9e3779 & 0xffffff))
           for host in range(1, 65)]


def _restart_all(cfg, times):
    """ Restart each queue of both ports in turn. """
    for _ in range(times):
        for port in cfg.ports:
            for queue in range(cfg.queues):
                restart_rx_queue(port.ifindex(), queue)


def _pools(cfg, port):
    """ Return the page pools of a port. """
    return [pool for pool in cfg.netnl.page_pool_get({}, dump=True)
            if pool.get("ifindex") == port.ifindex()]


def _napi_of_queues(cfg, port):
    """ Return the NAPI instance of each receive queue. """
    queues = cfg.netnl.queue_get({"ifindex": port.ifindex()}, dump=True)
    return {one["id"]: one.get("napi-id") for one in queues if one["type"] == "rx"}


def _check_pools(cfg):
    """ Each queue has one page pool, which is that of its NAPI instance. """
    for port in cfg.ports:
        def gone(port=port):
            pages_back()
            return not any("detach-time" in pool for pool in _pools(cfg, port))

        wait_until(gone, 30, "the pools of memory that was replaced are gone")
        ksft_eq(sorted(pool.get("napi-id") for pool in _pools(cfg, port)),
                sorted(_napi_of_queues(cfg, port).values()))


@ksft_disruptive
def set_up(cfg):
    """ Both ports have a queue for each CPU, and are up. """
    for port in cfg.ports:
        header = {"header": {"dev-index": port.ifindex()}}
        if cfg.ethnl.channels_get(header)["combined-count"] != cfg.queues:
            ethtool(f"-L {port.ifname} combined {cfg.queues}")
    cfg.set_up()


@ksft_disruptive
def each_queue(cfg):
    """ Each queue is restarted again and again, and keeps its NAPI instance. """
    before = _napi_of_queues(cfg, cfg.ports[0])
    _restart_all(cfg, rounds(cfg, 5, 2))
    ksft_eq(_napi_of_queues(cfg, cfg.ports[0]), before)
    for port in cfg.ports:
        ksft_eq(port.attr("carrier"), "1")


def each_has_its_pool(cfg):
    """ Each queue has one page pool. """
    _check_pools(cfg)


@ksft_disruptive
def each_queue_under_traffic(cfg):
    """ Each queue is restarted under traffic over all of them. """
    cfg.start_traffic(flows=64)
    _restart_all(cfg, rounds(cfg, 15, 3))


def _received(cfg):
    stats = driver_stats(cfg.ifname)
    return [stats[f"rx_queue_{queue}_packets"] for queue in range(cfg.queues)]


def _addresses(cfg):
    """ Return for each queue a source address whose packets it receives. """
    found = {}
    for source in SOURCES:
        before = _received(cfg)
        cfg.check_forwarded(64, src_ip=source)
        took = [now - was for now, was in zip(_received(cfg), before, strict=True)]
        ksft_eq(sum(count > 0 for count in took), 1, f"queues that receive from {source}")
        found.setdefault(took.index(max(took)), source)
        if len(found) == cfg.queues:
            return found
    raise KsftFailEx(f"the hash selects only the queues {sorted(found)}")


@contextlib.contextmanager
def _restarting(port, queue):
    """ Restart a queue all the time. Yield the list of results, of which there will be some. """
    done, results = threading.Event(), []

    def run():
        while not results or not done.is_set():
            try:
                restart_rx_queue(port.ifindex(), queue)
                results.append(None)
            except CmdExitFailure as error:
                results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield results
    finally:
        done.set()
        thread.join(60)


@ksft_disruptive
def others_lose_nothing(cfg):
    """ While a queue is restarted, another one receives each frame. """
    if cfg.queues == 1:
        raise KsftSkipEx("there is one queue")
    cfg.settle()
    addresses = _addresses(cfg)
    for queue in range(min(2, cfg.queues)):
        with _restarting(cfg.ports[0], 1 - queue) as results:
            for _ in range(rounds(cfg, 4, 1)):
                cfg.check_forwarded(2000, src_ip=addresses[queue])
        ksft_ge(len(results), 1)
        ksft_eq(set(results), {None})


@ksft_disruptive
def ring_sizes(cfg):
    """ Rings get other lengths while a queue is restarted, under traffic. """
    cfg.start_traffic(flows=64)
    port = cfg.ports[0]
    with _restarting(port, cfg.queues - 1) as results:
        for length in (128, 1024, 512):
            ethtool(f"-G {port.ifname} rx {length}")
            cfg.set_up()
    ksft_eq(set(results), {None})
    restart_rx_queue(port.ifindex(), 0)


@ksft_disruptive
def down_and_up(cfg):
    """ A port goes down and up while a queue is restarted. """
    port = cfg.ports[0]
    with _restarting(port, 0) as results:
        for _ in range(rounds(cfg, 4, 2)):
            ip(f"link set {port.ifname} down")
            cfg.set_up()
    ksft_eq(set(results), {None})


@ksft_disruptive
def while_down(cfg):
    """ A port that is down has nothing to restart, and goes up. """
    port = cfg.ports[0]
    ip(f"link set {port.ifname} down")
    ksft_eq(_pools(cfg, port), [])
    restart_rx_queue(port.ifindex(), 0)
    ksft_eq(_pools(cfg, port), [])
    cfg.set_up()


@ksft_variants([KsftNamedVariant("queue", "out of range"),
                KsftNamedVariant("device", "No such device"),
                KsftNamedVariant("driver", "not supported")])
def refused(cfg, why):
    """ A queue that there is not is refused. """
    index, queue = cfg.ports[0].ifindex(), 0
    if why == "out of range":
        queue = cfg.queues
    elif why == "No such device":
        index = 1 << 30
    else:
        index = int(cmd("cat /sys/class/net/lo/ifindex").stdout)
    with ksft_raises(CmdExitFailure) as raised:
        restart_rx_queue(index, queue)
    ksft_in(why, str(raised.exception))


def pools_after_all(cfg):
    """ Each queue has one page pool. """
    _check_pools(cfg)


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__, ["ixgbe_rust"], "cannot restart a queue") as cfg:
        cfg.ethnl, cfg.netnl = EthtoolFamily(), NetdevFamily()
        cfg.queues = min(os.cpu_count(), 16)
        was = [cfg.ethnl.channels_get({"header": {"dev-index": port.ifindex()}})
               for port in cfg.ports]
        try:
            cases = [set_up, each_queue, each_has_its_pool, forwards_after("restarts"),
                     each_queue_under_traffic, traffic_intact("restarts"),
                     forwards_after("traffic"), others_lose_nothing,
                     ring_sizes, traffic_intact("resizing"), forwards_after("resizing"),
                     down_and_up, while_down, refused, pools_after_all, forwards_after("all")]
            ksft_run(judged(cases), args=(cfg, ))
        finally:
            for port, channels in zip(cfg.ports, was, strict=True):
                cmd(f"ethtool -L {port.ifname} combined {channels['combined-count']}", fail=False)
                cmd(f"ethtool -G {port.ifname} rx 512", fail=False)
    ksft_exit()


if __name__ == "__main__":
    main()
