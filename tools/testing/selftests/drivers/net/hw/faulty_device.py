#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
The card lies, does not report, or is pulled out: the driver must survive what
it reads, and go on.
"""

import re
import time

from lib.py import KsftNamedVariant, cmd, ethtool, ksft_disruptive, ksft_eq
from lib.py import ksft_exit, ksft_gt, ksft_lt, ksft_run, ksft_variants
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import kernel_log, provokes, wait_until

ERROR_BITS = 0xFFF00000
# name, port, kind, count, value
LIES = {
    "length_of_0": (0, "rx_length", 50, 0),
    "length_of_1": (0, "rx_length", 50, 1),
    "length_beyond_the_buffer": (0, "rx_length", 50, 16383),
    "greatest_length": (0, "rx_length", 50, 65535),
    "no_end_of_packet_once": (0, "rx_no_eop", 1, 0),
    "no_end_of_packet_40_times": (0, "rx_no_eop", 40, 0),
    "never_an_end_of_packet": (0, "rx_no_eop", 100000, 0),
    "write_back_of_ones": (0, "rx_ones", 50, 0),
    "all_error_bits": (0, "rx_error", 50, ERROR_BITS),
    "wrong_transmit_head": (1, "tx_head", 50, 65535),
    "interrupts_for_nothing": (0, "interrupt", 1, 0),
}
# Two frames that were glued together are not two frames, and what is too
# short to have an address is not one.
CHANGES = ("length_of_1", "no_end_of_packet_once", "no_end_of_packet_40_times",
           "never_an_end_of_packet")
ERRORS = ("length_of_0", "length_beyond_the_buffer", "greatest_length",
          "write_back_of_ones", "all_error_bits")


def set_up(cfg):
    """ Addresses, routes, neighbours, and both links. """
    cfg.set_up()


def lie(cfg, name):
    """
    Frames while the card lies. They may be lost and, where the lie is about
    their length, be damaged; what counts is that the kernel stays whole and
    the driver goes on.
    """
    port, kind, count, value = LIES[name]
    errors = cfg.ports[0].stat("rx_errors")
    cfg.model.fault(port, kind, count, value)
    cfg.lied[name] = cfg.generate(300, 200, timeout_ms=4000)
    cfg.errors[name] = cfg.ports[0].stat("rx_errors") - errors
    ksft_gt(cfg.lied[name]["sent"], 0, cfg.lied[name])


def forwards_after_lie(cfg, name):
    """ Every frame, as soon as the card tells the truth. """
    cfg.model.mend(LIES[name][0])
    # The rest of a frame without end goes with the next one.
    cfg.generate(64, timeout_ms=4000)
    cfg.check_works()


def changes_what_comes_out(cfg, name):
    """ The card has really lied. """
    answer = cfg.lied[name]
    ksft_lt(answer["forwarded"], answer["sent"], answer)


def counted_as_errors(cfg, name):
    """ The driver has noticed. """
    ksft_gt(cfg.errors[name], 0)


@ksft_disruptive
def transmitter_hangs(cfg):
    """
    Sent, but never reported: the ring is stuck behind the first of these
    frames, and only a restart gets it going. The watchdog says so, loudly.
    """
    provokes("netdev")
    cfg.log = kernel_log()
    port = cfg.ports[1]
    before = port.tx_queue_sum("tx_timeout")
    cfg.model.fault(1, "tx_no_done", 8)
    cfg.generate(700, timeout_ms=4000)
    wait_until(lambda: port.tx_queue_sum("tx_timeout") > before, 40,
               "the watchdog barks")
    cfg.model.mend(1)
    wait_until(lambda: port.attr("carrier") == "1", 20, "the carrier is back")


def transmitter_hang_is_told(cfg):
    """ The driver said what it saw. """
    said = kernel_log()[len(cfg.log):]
    found = re.findall(r"transmit queue \d+ hangs: head \d+, tail \d+", said)
    ksft_eq(len(found), 1, found)


@ksft_disruptive
def pulled_out(cfg):
    """
    Every read is ones. The driver must neither hang nor crash, and work again
    when the card is back.
    """
    port = cfg.ports[0]
    cfg.start_traffic()
    time.sleep(1)
    cfg.model.fault(0, "remove")
    time.sleep(2)
    cmd(f"ip link set {port.ifname} down", fail=False)
    ethtool(f"-S {port.ifname}")
    cmd(f"ip link set {port.ifname} up", fail=False)
    port.unbind()


@ksft_disruptive
def back_in_place(cfg):
    """ The driver binds to the card when it answers again. """
    cfg.model.mend(0)
    cfg.ports[0].bind(cfg.driver)
    cfg.card.find()
    traffic, cfg.traffic = cfg.traffic, None
    traffic.stop(0)


def lies():
    """ The cases of each lie, one lie after the other. """
    for name in LIES:
        for case in (lie,
                     *([changes_what_comes_out] if name in CHANGES else []),
                     *([counted_as_errors] if name in ERRORS else []),
                     forwards_after_lie):
            yield ksft_variants([KsftNamedVariant(name, name)])(case)


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__, drivers=["ixgbe_rust"],
                     why="the driver believes what the card says") as cfg:
        cfg.lied, cfg.errors, cfg.log = {}, {}, ""
        ksft_run([set_up, *lies(),
                  transmitter_hangs, transmitter_hang_is_told,
                  forwards_after("hang", 2000),
                  pulled_out, back_in_place, forwards_after("pulled_out")],
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
