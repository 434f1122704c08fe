#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Counters that standards define (ethtool -S --groups): they are those of the
frames that a wire has seen, and of pause frames.
"""

import time

from lib.py import KsftNamedVariant, KsftSkipEx, cmd, ethtool, ksft_disruptive
from lib.py import ksft_eq, ksft_exit, ksft_ge, ksft_in, ksft_run, ksft_variants
from lib.py.judge import judged
from lib.py.nicmodel import NicModelEnv, forwards_after

# Few frames, so that each of them finds a descriptor.
FRAMES = 200
PAUSE = bytes.fromhex("0180c2000001" "020000000001" "88080001")
BROADCAST = bytes.fromhex("ffffffffffff" "020000000001" "88b5") + bytes(46)
GROUPS = ("eth-mac", "rmon")


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


def _growth(before, after, key):
    return after[key] - before[key]


@ksft_variants([KsftNamedVariant(str(size), size) for size in (60, 123, 124, 200, 508, 1514)])
def frames(cfg, size):
    """ Frames of a size are counted where they arrive and where they leave. """
    rx, tx = cfg.ports[0], cfg.ports[1]
    before = [(_group(port, "eth-mac"), _group(port, "rmon")) for port in (rx, tx)]
    cfg.check_forwarded(FRAMES, size)
    # Drivers may update their counters only once a second.
    time.sleep(2)
    after = [(_group(port, "eth-mac"), _group(port, "rmon")) for port in (rx, tx)]

    for index, (good, octets, key) in enumerate((
            ("FramesReceivedOK", "OctetsReceivedOK", "rx-pktsNtoM"),
            ("FramesTransmittedOK", "OctetsTransmittedOK", "tx-pktsNtoM"))):
        count = _growth(before[index][0], after[index][0], good)
        # A few others may pass, such as those of ARP.
        ksft_in(count, range(FRAMES, FRAMES + 10), good)
        grown = _growth(before[index][0], after[index][0], octets)
        data = FRAMES * (size + 4)
        ksft_in(grown, range(data, data + 10 * 100), octets)
        buckets = [_bucket(found[index][1], key, size + 4) for found in (before, after)]
        ksft_in(buckets[1] - buckets[0], range(FRAMES, FRAMES + 10), key)


def broadcast(cfg):
    """ Frames to the broadcast address are counted. """
    port = cfg.ports[0]
    before = _group(port, "eth-mac")
    for _ in range(5):
        cfg.model.inject(port.number, BROADCAST)
    time.sleep(2)
    after = _group(port, "eth-mac")
    ksft_in(_growth(before, after, "BroadcastFramesReceivedOK"), range(5, 15))


@ksft_variants([KsftNamedVariant("stop", 0xffff), KsftNamedVariant("go_on", 0)])
def pause_frames(cfg, units):
    """ Pause frames are counted, as such and not as others, and end in the card. """
    port = cfg.ports[0]
    frames_ok = _group(port, "eth-mac")["FramesReceivedOK"]
    sent, received = _pauses(port)
    arrived = port.stat("rx_packets")
    frame = PAUSE + units.to_bytes(2, "big") + bytes(42)
    for _ in range(7):
        cfg.model.inject(port.number, frame)
    time.sleep(2)
    ksft_eq(_pauses(port), (sent, received + 7))
    ksft_in(_group(port, "eth-mac")["FramesReceivedOK"] - frames_ok, range(3))
    ksft_in(port.stat("rx_packets") - arrived, range(3))


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
