#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Counters that standards define (ethtool -S --groups): they are those of the
frames that a wire has seen, and of pause frames.
"""

from lib.py import KsftNamedVariant, KsftSkipEx, cmd, ethtool, ksft_disruptive
from lib.py import ksft_eq, ksft_exit, ksft_ge, ksft_in, ksft_run, ksft_variants
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import wait_until

# Few frames, so that each of them finds a descriptor.
FRAMES = 200
PAUSE = bytes.fromhex("0180c2000001" "020000000001" "88080001")
BROADCAST = bytes.fromhex("ffffffffffff" "020000000001" "88b5") + bytes(46)
GROUPS = ("eth-mac", "rmon")
# The counters of the port where frames arrive, and of the one where they leave.
NAMES = (("FramesReceivedOK", "OctetsReceivedOK", "rx-pktsNtoM"),
         ("FramesTransmittedOK", "OctetsTransmittedOK", "tx-pktsNtoM"))


def _group(port, name):
    """ Return the counters of a group; skip if the driver has none. """
    found = cmd(f"ethtool --json -S {port.ifname} --groups {name}", fail=False)
    if found.ret or not found.stdout.strip():
        raise KsftSkipEx(f"the driver has no group {name}")
    stats = ethtool(f"-S {port.ifname} --groups {name}", json=True)[0].get(name)
    if not stats:
        raise KsftSkipEx(f"the driver has no group {name}")
    return stats


def _pauses(port):
    """ Return the pause frames that were sent and received. """
    told = ethtool(f"-I -a {port.ifname}", json=True)[0].get("statistics")
    if not told:
        raise KsftSkipEx("the driver does not count pause frames")
    return told["tx_pause_frames"], told["rx_pause_frames"]


def _bucket(stats, key, size):
    """ Return the number of frames with this length. """
    return next(one["val"] for one in stats[key] if one["low"] <= size <= one["high"])


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()


@ksft_variants(GROUPS)
def group(cfg, name):
    """ The driver has the group. """
    ksft_ge(len(_group(cfg.ports[0], name)), 1)


def _counted(port, names, size):
    """ Return the frames and octets of a port in one direction, and its frames of a size. """
    good, octets, sizes = names
    mac = _group(port, "eth-mac")
    return mac[good], mac[octets], _bucket(_group(port, "rmon"), sizes, size + 4)


@ksft_variants([KsftNamedVariant(str(size), size) for size in (60, 123, 124, 200, 508, 1514)])
def frames(cfg, size):
    """ Frames of a size are counted where they arrive and where they leave. """
    data = FRAMES * (size + 4)
    # A few others may pass, such as those of ARP.
    expected = (range(FRAMES, FRAMES + 10), range(data, data + 10 * 100),
                range(FRAMES, FRAMES + 10))

    def growth():
        """ Return how much the counters of both ports have grown. """
        return [[after - was for after, was in zip(_counted(port, names, size), old, strict=True)]
                for port, names, old in zip(cfg.ports, NAMES, before, strict=True)]

    before = [_counted(port, names, size) for port, names in zip(cfg.ports, NAMES, strict=True)]
    cfg.check_forwarded(FRAMES, size)
    # Drivers may update their counters only once in some seconds.
    wait_until(lambda: all(grown >= least.start for port in growth()
                           for grown, least in zip(port, expected, strict=True)),
               10, "the frames are counted")
    for names, found in zip(NAMES, growth(), strict=True):
        for name, grown, allowed in zip(names, found, expected, strict=True):
            ksft_in(grown, allowed, name)


def broadcast(cfg):
    """ Frames to the broadcast address are counted. """
    port = cfg.ports[0]

    def counted():
        return _group(port, "eth-mac")["BroadcastFramesReceivedOK"]

    before = counted()
    for _ in range(5):
        cfg.model.inject(port.number, BROADCAST)
    wait_until(lambda: counted() >= before + 5, 10, "the frames are counted")
    ksft_in(counted() - before, range(5, 15))


@ksft_variants([KsftNamedVariant("stop", 0xffff), KsftNamedVariant("go_on", 0)])
def pause_frames(cfg, units):
    """ Pause frames are counted, as such and not as others, and end in the card. """
    port = cfg.ports[0]
    cfg.settle()
    frames_ok = _group(port, "eth-mac")["FramesReceivedOK"]
    sent, received = _pauses(port)
    arrived = port.stat("rx_packets")
    frame = PAUSE + units.to_bytes(2, "big") + bytes(42)
    for _ in range(7):
        cfg.model.inject(port.number, frame)
    # Frames that the card lets through are received before this one is.
    cfg.check_forwarded(1)
    wait_until(lambda: _pauses(port)[1] >= received + 7, 10, "they are counted")
    ksft_eq(_pauses(port), (sent, received + 7))
    ksft_in(_group(port, "eth-mac")["FramesReceivedOK"] - frames_ok - 1, range(3))
    ksft_in(port.stat("rx_packets") - arrived - 1, range(3))


@ksft_disruptive
def survive(cfg):
    """ Counters do not go back when the port goes down. """
    port = cfg.ports[0]
    before = _group(port, "eth-mac")
    cfg.both("down")
    cfg.set_up()
    after = _group(port, "eth-mac")
    for key, value in before.items():
        ksft_ge(after[key], value, key)


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__) as cfg:
        ksft_run(judged([set_up, group, frames, broadcast, pause_frames, survive,
                         forwards_after("counters")]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
