#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

""" Rules that direct received packets to queues, or drop them (ethtool -N). """

import contextlib
import re
import socket

from lib.py import CmdExitFailure, EthtoolFamily, KsftNamedVariant, KsftSkipEx, NetdevFamily
from lib.py import NlError, cmd, defer, ethtool, ip
from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_ge, ksft_in, ksft_raises
from lib.py import ksft_run, ksft_variants
from lib.py.peer import PeerEnv
from lib.py.support import driver_stats, kernel_log, skip_program, wait_until

PORT = 7001
OTHER = 7002
# No rule is about it.
BEHIND = 7003
SOURCE = 7900
COUNT = 20
# Drivers of the Intel 82599, whose abilities are known.
INTEL = ("ixgbe", "ixgbe_rust")


def _driver(cfg):
    return re.search(r"^driver: (.+)$", cmd(f"ethtool -i {cfg.ifname}").stdout, re.M)[1]


def channels(cfg):
    return cfg.ethnl.channels_get({"header": {"dev-index": cfg.ifindex}})


def set_channels(cfg, count):
    """ Set the number of queues, for which the device may go down for a moment. """
    if channels(cfg)["combined-count"] != count:
        ethtool(f"-L {cfg.ifname} combined {count}")
        cfg.reach()


def switch(cfg, state):
    """ Turn the rules on or off, for which the device may go down for a moment. """
    ethtool(f"-K {cfg.ifname} ntuple {state}")
    cfg.reach()


def _rules(cfg):
    """ Return the locations of the rules. """
    said = ethtool(f"-n {cfg.ifname}").stdout
    return [int(number) for number in re.findall(r"^Filter: (\d+)$", said, re.M)]


def insert(cfg, rule):
    """ Insert a rule, and return its location. """
    said = ethtool(f"-N {cfg.ifname} {rule}").stdout
    found = re.search(r"ID (\d+)", said)
    return int(found[1]) if found else int(re.search(r"loc (\d+)", rule)[1])


def _delete(cfg, location):
    ethtool(f"-N {cfg.ifname} delete {location}")


def delete_all(cfg):
    for location in _rules(cfg):
        _delete(cfg, location)


def received(cfg):
    """ Return the number of packets that each queue has received. """
    with contextlib.suppress(NlError):
        queues = cfg.netnl.qstats_get({"ifindex": cfg.ifindex, "scope": {"queue"}}, dump=True)
        found = {one["queue-id"]: one["rx-packets"] for one in queues
                 if one["queue-type"] == "rx"}
        if found:
            return found
    return {int(match[1]): count for name, count in driver_stats(cfg.ifname).items()
            if (match := re.fullmatch(r"rx_?(?:queue_)?(\d+)_packets", name))}


def _send(cfg, kind, port=PORT, behind=()):
    """ Have the remote end send packets, and of datagrams others behind them. """
    address = cfg.addr_v["4"]
    code = {
        "udp": f"s = socket.socket(type=socket.SOCK_DGRAM); "
               f"[s.sendto(bytes(1), (\"{address}\", port)) "
               f"for port in {(port, *behind)} for _ in range({COUNT})]",
        # Each is refused: there is no listener. With one source port they are one flow.
        "tcp": f"[(s := socket.socket(), s.bind((\"\", {SOURCE})), "
               f"s.connect_ex((\"{address}\", {port})), s.close()) for _ in range({COUNT})]",
    }[kind]
    cmd(f"python3 -c 'import socket; {code}'", host=cfg.remote)


def _queue_of(cfg, kind, port=PORT):
    """ Return the queue that gets packets. """
    before = received(cfg)
    _send(cfg, kind, port)

    def queue():
        now = received(cfg)
        return [number for number, count in now.items() if count - before[number] >= COUNT]
    wait_until(queue, 10, f"a queue receives {kind}")
    return queue()[0]


def _other(cfg):
    """ Return a queue that does not get packets without a rule. """
    return 1 - min(1, _queue_of(cfg, "udp"))


def set_up(cfg):
    """ There are two queues, and rules are on. """
    cfg.count = channels(cfg)["combined-count"]
    set_channels(cfg, 2)
    switch(cfg, "on")
    ksft_eq(_rules(cfg), [])


def _refused(cfg, rule, reason):
    """ Check that a rule is refused, and that the log of our driver has the reason. """
    before = len(kernel_log())
    with ksft_raises(CmdExitFailure):
        insert(cfg, f"flow-type {rule}")
    if _driver(cfg) == "ixgbe_rust":
        ksft_in(reason, kernel_log()[before:])


@ksft_disruptive
def refused_while_off(cfg):
    """ Without the feature there are no rules. """
    switch(cfg, "off")
    _refused(cfg, f"udp4 dst-port {PORT} action 1 loc 5", "ntuple")
    switch(cfg, "on")
    ksft_eq(_rules(cfg), [])


@ksft_variants([
    KsftNamedVariant("udp_port", "udp", "udp4 dst-port {port}", True),
    KsftNamedVariant("tcp_port", "tcp", "tcp4 dst-port {port}", True),
    KsftNamedVariant("address_and_port", "udp", "udp4 src-ip {remote} dst-port {port}", True),
    KsftNamedVariant("part_of_address", "udp", "udp4 src-ip {remote} m 0.0.0.255", False),
    KsftNamedVariant("any_protocol", "udp", "ip4 dst-ip {local}", False)])
def to_queue(cfg, kind, rule, has_port):
    """ Packets that match go to the queue of the rule, and others where they went before. """
    before = [_queue_of(cfg, kind, port) for port in (PORT, OTHER)]
    other = 1 - min(1, before[0])
    rule = rule.format(port=PORT, remote=cfg.remote_addr_v["4"], local=cfg.addr_v["4"])
    location = insert(cfg, f"flow-type {rule} action {other} loc 5")
    ksft_eq((location, _rules(cfg)), (5, [5]))
    said = ethtool(f"-n {cfg.ifname} rule 5").stdout
    ksft_in(f"Action: Direct to queue {other}", said)
    ksft_eq(_queue_of(cfg, kind), other)
    ksft_eq(_queue_of(cfg, kind, OTHER), before[1] if has_port else other)
    _delete(cfg, 5)
    ksft_eq(_rules(cfg), [])
    ksft_eq(_queue_of(cfg, kind), before[0])


def _listen(cfg, port):
    sock = socket.socket(type=socket.SOCK_DGRAM)
    sock.bind((cfg.addr_v["4"], port))
    sock.settimeout(10)
    return sock


def _check_gets(cfg, port):
    """ Check that datagrams to a port are received. """
    with _listen(cfg, port) as sock:
        _send(cfg, "udp", port)
        sock.recv(16)


def _check_gets_none(cfg, port):
    """ Check that datagrams to a port are not received, while others behind them are. """
    with _listen(cfg, port) as sock, _listen(cfg, BEHIND) as behind:
        _send(cfg, "udp", port, behind=(BEHIND, ))
        behind.recv(16)
        sock.setblocking(False)
        with ksft_raises(BlockingIOError):
            sock.recv(16)


def dropped(cfg):
    """ Packets of a rule that drops are not received, and others are. """
    _check_gets(cfg, PORT)
    location = insert(cfg, f"flow-type udp4 dst-port {PORT} action -1 loc 3")
    ksft_in("Action: Drop", ethtool(f"-n {cfg.ifname} rule {location}").stdout)
    _check_gets_none(cfg, PORT)
    _check_gets(cfg, OTHER)
    # Another action takes the place of this one.
    insert(cfg, f"flow-type udp4 dst-port {PORT} action 0 loc 3")
    ksft_eq(_rules(cfg), [3])
    _check_gets(cfg, PORT)
    _delete(cfg, location)


def several(cfg):
    """ Each of several rules has its packets. """
    defer(delete_all, cfg)
    other = _other(cfg)
    ports = range(7100, 7132)
    for number, port in enumerate(ports):
        insert(cfg, f"flow-type udp4 dst-port {port} action {(other, 1 - other)[number % 2]} "
                     f"loc {2 * number}")
    ksft_eq(_rules(cfg), [2 * number for number in range(len(ports))])
    for number in (0, 1, 30, 31):
        ksft_eq(_queue_of(cfg, "udp", ports[number]), (other, 1 - other)[number % 2])
    _delete(cfg, 0)
    ksft_eq(_queue_of(cfg, "udp", ports[0]), 1 - other)
    ksft_eq(_queue_of(cfg, "udp", ports[30]), other)


def without_location(cfg):
    """ A rule without a location gets one that is free. """
    defer(delete_all, cfg)
    found = [insert(cfg, f"flow-type udp4 dst-port {port} action 0") for port in (PORT, OTHER)]
    ksft_eq((len(set(found)), sorted(_rules(cfg))), (2, sorted(found)))


def one_mask(cfg):
    """ All rules compare the same fields, as the card does. """
    if _driver(cfg) not in INTEL:
        raise KsftSkipEx("other cards may have several masks")
    defer(delete_all, cfg)
    insert(cfg, f"flow-type udp4 dst-port {PORT} action 0 loc 1")
    for rule in (f"udp4 src-port {PORT}", f"udp4 dst-port {PORT} m 0xff00", "ip4"):
        with ksft_raises(CmdExitFailure):
            insert(cfg, f"flow-type {rule} action 0 loc 2")
    ksft_in("mask", kernel_log().splitlines()[-1])
    # Another protocol is no other mask, and the last rule may get another one.
    insert(cfg, f"flow-type tcp4 dst-port {PORT} action 0 loc 2")
    _delete(cfg, 2)
    if _driver(cfg) != "ixgbe":
        insert(cfg, f"flow-type udp4 src-port {PORT} action 0 loc 1")
    ksft_eq(_rules(cfg), [1])


@ksft_variants([KsftNamedVariant("queue", "udp4 dst-port 7001 action 200 loc 1", "nor has a queue"),
                KsftNamedVariant("function", "udp4 dst-port 7001 vf 0 queue 0 loc 1",
                                 "nor has a queue"),
                KsftNamedVariant("wake", "udp4 dst-port 7001 action -2 loc 1", "nor has a queue"),
                KsftNamedVariant("location", "udp4 dst-port 7001 action 0 loc 2147483647",
                                 "no such location"),
                KsftNamedVariant("ipv6", "udp6 dst-port 7001 action 0 loc 1", "only IPv4"),
                KsftNamedVariant("ethernet", "ether proto 0x800 action 0 loc 1", "only IPv4"),
                KsftNamedVariant("esp", "esp4 spi 1 action 0 loc 1", "no such flow type"),
                KsftNamedVariant("part_of_vlan",
                                 "udp4 vlan 5 m 0xff00 action 0 loc 1", "VLAN ID")])
def refused(cfg, rule, reason):
    """ Rules that the card cannot have are refused with the reason. """
    if _driver(cfg) not in INTEL:
        raise KsftSkipEx("other cards may take the rule")
    _refused(cfg, rule, reason)
    ksft_eq(_rules(cfg), [])
    with ksft_raises(CmdExitFailure):
        _delete(cfg, 1)


def drop_eligible_refused(cfg):
    """ A rule about the bit of a VLAN tag that the card does not compare is refused. """
    if _driver(cfg) != "ixgbe_rust":
        raise KsftSkipEx("other drivers leave the bit out")
    defer(delete_all, cfg)
    with ksft_raises(CmdExitFailure):
        insert(cfg, "flow-type udp4 vlan 0x1005 action 0 loc 1")
    ksft_in("DEI bit", kernel_log().splitlines()[-1])
    ksft_eq(_rules(cfg), [])


def queue_stays(cfg):
    """ A queue with a rule is not taken away. """
    insert(cfg, f"flow-type udp4 dst-port {PORT} action 1 loc 5")
    defer(delete_all, cfg)
    with ksft_raises(CmdExitFailure):
        ethtool(f"-L {cfg.ifname} combined 1")
    ksft_eq(channels(cfg)["combined-count"], 2)


def _down_and_up(cfg):
    ip(f"link set {cfg.ifname} down")
    ip(f"link set {cfg.ifname} up")


def _rings(cfg):
    now = ethtool(f"-g {cfg.ifname}", json=True)[0]["rx"]
    ethtool(f"-G {cfg.ifname} rx {now // 2}")
    ethtool(f"-G {cfg.ifname} rx {now}")


def _off_and_on(cfg):
    switch(cfg, "off")
    # Without effect, but not forgotten.
    _check_gets(cfg, OTHER)
    switch(cfg, "on")


@ksft_variants([KsftNamedVariant("down_and_up", _down_and_up),
                KsftNamedVariant("rings", _rings),
                KsftNamedVariant("off_and_on", _off_and_on)])
@ksft_disruptive
def survive(cfg, what):
    """ The rules are in effect again after a restart. """
    if what is _down_and_up and _driver(cfg) == "ixgbe":
        raise KsftSkipEx("the driver forgets its rules when it goes down")
    defer(delete_all, cfg)
    other = _other(cfg)
    insert(cfg, f"flow-type udp4 dst-port {PORT} action {other} loc 5")
    insert(cfg, f"flow-type udp4 dst-port {OTHER} action -1 loc 6")
    what(cfg)
    cfg.reach()
    ksft_eq(_rules(cfg), [5, 6])
    ksft_eq(_queue_of(cfg, "udp"), other)
    _check_gets_none(cfg, OTHER)


@ksft_disruptive
def changed_while_down(cfg):
    """ Rules that are inserted and deleted while the device is down are so when it is up. """
    if _driver(cfg) == "ixgbe":
        raise KsftSkipEx("the driver writes to a card that it has stopped")
    defer(delete_all, cfg)
    other = _other(cfg)
    insert(cfg, f"flow-type udp4 dst-port {OTHER} action -1 loc 6")
    ip(f"link set {cfg.ifname} down")
    _delete(cfg, 6)
    insert(cfg, f"flow-type udp4 src-ip {cfg.remote_addr_v['4']} dst-port {PORT} "
                 f"action {other} loc 7")
    ip(f"link set {cfg.ifname} up")
    cfg.reach()
    ksft_eq((_rules(cfg), _queue_of(cfg, "udp")), ([7], other))
    _check_gets(cfg, OTHER)


def counted(cfg):
    """ The card counts the packets that match. """
    def matches():
        counts = [count for name, count in driver_stats(cfg.ifname).items()
                  if name.endswith("fdir_match")]
        if not counts:
            raise KsftSkipEx("the driver has no such counter")
        return counts[0]
    defer(delete_all, cfg)
    insert(cfg, f"flow-type udp4 dst-port {PORT} action 1 loc 5")
    before = matches()
    _send(cfg, "udp")
    # The C driver looks every two seconds.
    wait_until(lambda: matches() >= before + COUNT, 10, "they are counted")
    before = matches()
    _send(cfg, "udp", OTHER)
    ksft_ge(COUNT - 1, matches() - before)


@ksft_disruptive
def set_back(cfg):
    """ The rules are off, and the number of queues is as it was. """
    delete_all(cfg)
    switch(cfg, "off")
    set_channels(cfg, cfg.count)
    _check_gets(cfg, PORT)


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__) as cfg:
        features = cmd(f"ethtool -k {cfg.ifname}").stdout
        cfg.ethnl, cfg.count = EthtoolFamily(), 2
        why = None
        if re.search(r"ntuple-filters: off \[fixed\]", features):
            why = "the driver has no rules"
        elif channels(cfg).get("combined-max", 0) < 2:
            why = "needs two queues"
        if why:
            skip_program(why)
        cfg.netnl = NetdevFamily()
        ksft_run(cfg.judged([set_up, refused_while_off, to_queue, dropped, several,
                             without_location, one_mask, refused, drop_eligible_refused,
                             queue_stays, survive, changed_while_down, counted, set_back]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
