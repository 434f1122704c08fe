#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Changes of the queueing discipline alf while nothing takes packets out of it:
the device is down, or a shaper is slow.
"""

import socket

from lib.py import CmdExitFailure, KsftSkipEx, cmd, defer, ip
from lib.py import ksft_eq, ksft_exit, ksft_raises, ksft_run
from lib.py import qdisc
from lib.py.support import insert_module, skip_program
from net.lib.py import tc

NAME, PEER = "alf0", "alf1"
# The class of the shaper, as a parent.
SHAPED = 0x10001
FRAME = bytes.fromhex("ffffffffffff 020000000001 88b5") + bytes(1400)
MANY_WAIT = ("Device or resource busy: "
             "packets of 4 changes wait: try again later, or replace it")


def _pair():
    """ Add a pair of ports for the rest of the case. """
    ip(f"link add {NAME} type veth peer name {PEER}")
    defer(ip, f"link del {NAME}")


def while_down(_cfg):
    """ The limit changes often on a device that is down. """
    _pair()
    root = qdisc.Root(NAME)
    root.replace("alf")
    for packets in 500 * (16, 32):
        qdisc.replace_raw(NAME, "alf", qdisc.limit(packets))
    ksft_eq(qdisc.fifo_limit(NAME), 32)
    root.remove()


def while_packets_wait(_cfg):
    """
    A change is refused with a message if packets wait from before many others,
    until the qdisc is replaced.
    """
    if cmd("modprobe sch_tbf", fail=False).ret:
        raise KsftSkipEx("this kernel has no CONFIG_NET_SCH_TBF")
    _pair()
    for name in (NAME, PEER):
        ip(f"link set {name} up")
    qdisc.Root(NAME).replace("handle 1: tbf rate 8kbit burst 2000 limit 100000")
    child = f"dev {NAME} parent 1:1"
    tc(f"qdisc add {child} alf")

    def change(packets):
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind((NAME, 0))
            for _ in range(3):
                sender.send(FRAME)
        qdisc.replace_raw(NAME, "alf", qdisc.limit(packets), SHAPED)

    for packets in (16, 32, 16, 32):
        change(packets)
    with ksft_raises(qdisc.RefusedOptions) as refused:
        change(16)
    ksft_eq(str(refused.exception), MANY_WAIT)

    tc(f"qdisc replace {child} pfifo")
    tc(f"qdisc replace {child} alf")
    change(16)


def main():
    """ Ksft boiler plate main """

    try:
        insert_module("sch_alf")
    except CmdExitFailure:
        skip_program("this kernel has no CONFIG_NET_SCH_ALF")
    try:
        ksft_run([while_down, while_packets_wait], args=(None, ))
    finally:
        cmd("rmmod sch_alf", fail=False)
    ksft_exit()


if __name__ == "__main__":
    main()
