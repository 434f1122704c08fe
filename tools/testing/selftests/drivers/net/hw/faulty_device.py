#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
A device that writes back wrong descriptors, stops reporting, cannot be
stopped, or is removed: the driver has to survive that and recover.
"""

import re

from lib.py import KsftNamedVariant, KsftSkipEx, cmd, ethtool, ip, ksft_disruptive, ksft_eq
from lib.py import ksft_exit, ksft_gt, ksft_in, ksft_lt, ksft_ne, ksft_run
from lib.py import ksft_true, ksft_variants
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import driver_stats, kernel_log, wait_until

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
# A frame without an end is joined with the next one, and a frame too short
# for its addresses is dropped.
CHANGES = ("length_of_1", "no_end_of_packet_once", "no_end_of_packet_40_times",
           "never_an_end_of_packet")
ERRORS = ("length_of_0", "length_of_1", "length_beyond_the_buffer",
          "greatest_length", "write_back_of_ones", "all_error_bits")


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()


def lie(cfg, name):
    """
    The kernel survives a wrong write-back. Frames may be lost, and damaged
    where the length is wrong.
    """
    port, kind, count, value = LIES[name]
    errors = cfg.ports[0].stat("rx_errors")
    cfg.model.fault(port, kind, count, value)
    cfg.lied[name] = cfg.generate(300, 200, timeout_ms=4000)
    cfg.errors[name] = cfg.ports[0].stat("rx_errors") - errors
    ksft_gt(cfg.lied[name]["sent"], 0, cfg.lied[name])


def forwards_after_lie(cfg, name):
    """ Every frame is forwarded once the device works again. """
    cfg.model.mend(LIES[name][0])
    # The rest of a frame without an end is joined with the next one.
    cfg.generate(64, timeout_ms=4000)
    cfg.check_works()


def changes_what_comes_out(cfg, name):
    """ The fault took effect: fewer frames come out than were sent. """
    answer = cfg.lied[name]
    ksft_lt(answer["forwarded"], answer["sent"], answer)


def counted_as_errors(cfg, name):
    """ The driver counts receive errors. """
    ksft_gt(cfg.errors[name], 0)


@ksft_disruptive
def memory_error(cfg):
    """ An error in a memory of the device is logged, only once, and the port restarted. """
    resets = cfg.model.stats(0)["resets"]
    log = kernel_log()
    said = "uncorrectable ECC error"
    cfg.model.fault(0, "memory_error")
    wait_until(lambda: said in kernel_log()[len(log):], 60, "the driver logs the error")
    wait_until(lambda: cfg.model.stats(0)["resets"] > resets, 60, "the card is reset")
    cfg.card.wait_up()
    cfg.model.wait_check_ups(0, 2)
    ksft_eq(kernel_log()[len(log):].count(said), 1)


def full_counters(cfg):
    """ A counter of the device that is full counts with the value it shows. """
    ifname = cfg.ports[0].ifname
    before = driver_stats(ifname)["hw_rx_good"]
    cfg.model.fault(0, "counters")
    # While the driver's check-up reads the counters, others get the sums of before.
    wait_until(lambda: driver_stats(ifname)["hw_rx_good"] - before >= 0xFFFFFFFF,
               60, "what a full counter shows is counted")


@ksft_disruptive
def host_is_busy(cfg):
    """
    A port goes down and up although each look at a register that has to change
    takes longer than the driver is willing to wait, as on a virtual machine
    without a CPU.
    """
    if not cfg.model.ask("judge")["judged"]:
        raise KsftSkipEx("only a judged card needs time")
    for _ in range(3):
        cfg.model.fault(0, "slow_poll", 20, 150)
        cfg.both("down")
        cfg.both("up")
    cfg.model.mend(0)


@ksft_disruptive
def transmitter_hangs(cfg):
    """
    The watchdog restarts a transmitter that does not report packets as sent.
    """
    cfg.log = kernel_log()
    cfg.hang_transmitter()


def transmitter_hang_is_told(cfg):
    """ The driver logs the state of the hanging queue, once. """
    said = kernel_log()[len(cfg.log):]
    found = re.findall(r"transmit queue \d+ hangs: head \d+, tail \d+", said)
    ksft_eq(len(found), 1, found)


@ksft_disruptive
def does_not_stop(cfg):
    """
    A card that neither stops nor resets is kept from accessing memory, and
    the port cannot be opened before the card is bound anew.
    """
    port = cfg.ports[0]
    ksft_true(port.is_bus_master())
    cfg.log = kernel_log()
    cfg.start_traffic()
    cfg.traffic.flows()
    cfg.model.fault(0, "stuck")
    ip(f"link set {port.ifname} down")
    ksft_true(not port.is_bus_master())
    ksft_in("DMA did not stop", kernel_log()[len(cfg.log):])
    ksft_ne(cmd(f"ip link set {port.ifname} up", fail=False).ret, 0)
    port.unbind()


@ksft_disruptive
def bound_anew(cfg):
    """ The driver binds to the device again, which can be reset now. """
    back_in_place(cfg)


@ksft_disruptive
def pulled_out(cfg):
    """
    The driver can be unbound from a removed device, which reads as all ones,
    after down, up and ethtool -S. It does not wait for what cannot answer.
    """
    port = cfg.ports[0]
    before = len(kernel_log().splitlines())
    cfg.start_traffic()
    cfg.traffic.flows()
    cfg.model.fault(0, "remove")
    # Each check-up looks whether the card is gone.
    cfg.model.wait_reads(0, "STATUS", 3)
    cmd(f"ip link set {port.ifname} down", fail=False)
    ethtool(f"-S {port.ifname}")
    cmd(f"ip link set {port.ifname} up", fail=False)
    port.unbind()
    ksft_eq([line for line in kernel_log().splitlines()[before:]
             if re.search("not stop|not complete|pending", line)], [])


@ksft_disruptive
def back_in_place(cfg):
    """ The driver binds to the device when it is back. """
    cfg.model.mend(0)
    cfg.ports[0].bind(cfg.driver)
    cfg.card.find()
    traffic, cfg.traffic = cfg.traffic, None
    traffic.stop(0)


def lies():
    """ Yield the cases of each fault in turn. """
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
        ksft_run(judged([set_up, *lies(),
                         memory_error, forwards_after("memory_error"), full_counters,
                         host_is_busy, forwards_after("busy_host"),
                         transmitter_hangs, transmitter_hang_is_told,
                         forwards_after("hang", 2000),
                         does_not_stop, bound_anew, forwards_after("does_not_stop"),
                         pulled_out, back_in_place, forwards_after("pulled_out")]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
