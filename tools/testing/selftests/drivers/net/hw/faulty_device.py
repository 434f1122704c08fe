#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
A device that writes back wrong descriptors, stops reporting, loses a read, or
cannot be stopped or reached: the driver has to survive that and recover.
"""

import re
import struct
import subprocess

from lib.py import KsftNamedVariant, KsftSkipEx, cmd, ip, ksft_disruptive, ksft_eq
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
# Offsets of registers, and the words of two of them in the dump of the driver.
STATUS, HLREG0, FCTRL = 0x0008, 0x4240, 0x5080
WORDS = {HLREG0: 10, FCTRL: 15}
# Registers that turn a port on, and how often the driver reads them for that: once more if ones
# come back. A reset turns off reception, too.
SWITCHES = {"mac": (HLREG0, 2), "receiver": (0x3000, 4), "transmitter": (0x4A80, 2)}
# Counters by their names in ethtool -S.
COUNTERS = {"crc_errors": ("hw_rx_crc_errors", 0x4000), "missed": ("hw_rx_missed", 0x3FA0),
            "octets": ("hw_rx_bytes", 0x4088), "good": ("hw_rx_good", 0x4074)}
# The most by which a case lets a counter grow.
A_LOT = 1 << 24
# And at least.
LEAST = {"hw_rx_bytes": 64 * 64, "hw_rx_good": 64}


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


def full_counters_count_nothing(cfg):
    """
    A counter of the device that is full, which none is that is read in time, cannot be told from
    one whose read was lost.
    """
    ifname = cfg.ports[0].ifname
    before = driver_stats(ifname)
    cfg.model.fault(0, "counters")
    cfg.model.wait_check_ups(0, 2)
    for name, value in driver_stats(ifname).items():
        ksft_lt(value - before[name], A_LOT, name)


def lost_counter(cfg, name):
    """ A counter whose read gets lost does not jump, and counts with the next read. """
    ifname = cfg.ports[0].ifname
    name, register = COUNTERS[name]
    before = driver_stats(ifname)[name]
    cfg.model.fault(0, "ones", 1, register)
    cfg.check_forwarded(64)
    cfg.model.wait_check_ups(0, 2)
    # While the driver's check-up reads the counters, others get the sums of before.
    wait_until(lambda: driver_stats(ifname)[name] - before >= LEAST.get(name, 0), 60,
               "the frames are counted")
    ksft_lt(driver_stats(ifname)[name] - before, A_LOT)


def _word(port, register):
    """ Return a register of the driver's dump. """
    raw = subprocess.check_output(["ethtool", "-d", port.ifname, "raw", "on"])
    return struct.unpack_from("=I", raw, 4 * WORDS[register])[0]


def lost_filter(cfg):
    """ The register of the filters is changed, although it read as ones, and no bit stays. """
    port = cfg.ports[0]
    before = _word(port, FCTRL)
    for state in ("on", "off"):
        cfg.model.fault(0, "ones", 1, FCTRL)
        ip(f"link set {port.ifname} promisc {state}")
        cfg.model.mend(0)
        # UPE and MPE.
        promiscuous = 0x300 if state == "on" else 0
        ksft_eq(_word(port, FCTRL), before | promiscuous, state)


@ksft_disruptive
def lost_mac_settings(cfg):
    """ The register of the MAC is set up, although it read as ones. """
    port = cfg.ports[0]
    before = _word(port, HLREG0)
    ip(f"link set {port.ifname} down")
    cfg.model.fault(0, "ones", 1, HLREG0)
    ip(f"link set {port.ifname} up")
    cfg.card.wait_up()
    cfg.model.mend(0)
    ksft_eq(_word(port, HLREG0), before)


@ksft_disruptive
def lost_switch(cfg, name):
    """ A port does not go up without what cannot be turned on, and goes up when it can. """
    register, reads = SWITCHES[name]
    port = cfg.ports[0]
    ip(f"link set {port.ifname} down")
    cfg.model.fault(0, "ones", reads, register)
    ksft_ne(cmd(f"ip link set {port.ifname} up", fail=False).ret, 0)
    cfg.model.mend(0)
    ip(f"link set {port.ifname} up")
    cfg.card.wait_up()


@ksft_disruptive
def lost_status_going_down(cfg):
    """ A device that does not answer for a moment is not taken for one that is gone. """
    port = cfg.ports[0]
    log = len(kernel_log().splitlines())
    cfg.start_traffic()
    # The driver reads STATUS up to five times.
    for lost in (1, 2, 3, 4):
        cfg.traffic.flows()
        cfg.model.fault(0, "ones", lost, STATUS)
        ip(f"link set {port.ifname} down")
        cfg.model.mend(0)
        ip(f"link set {port.ifname} up")
        cfg.card.wait_up()
    cfg.check_traffic()
    ksft_eq([line for line in kernel_log().splitlines()[log:] if "DMA did not stop" in line], [])


@ksft_disruptive
def lost_status_at_probe(cfg):
    """ The driver binds to a device whose first answer gets lost. """
    port = cfg.ports[0]
    port.unbind()
    cfg.model.fault(0, "ones", 1, STATUS)
    try:
        port.bind(cfg.driver)
    finally:
        cfg.model.mend(0)
        if port.driver() is None:
            port.bind(cfg.driver)
        cfg.card.find()


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
def lost_interrupts(cfg):
    """ A vector that is masked since its message got lost is polled, and interrupts again. """
    cfg.model.fault(0, "lost_interrupts")
    ksft_lt(cfg.generate(64, timeout_ms=1000)["forwarded"], 64)
    cfg.model.mend(0)
    # The first one finds it masked, the second one does so again.
    cfg.model.wait_check_ups(0, 3)
    cfg.check_works()


@ksft_disruptive
def missed_frames_are_not_good(cfg):
    """ Frames for which there was no room are good ones to the card, and not to users. """
    ifname, names = cfg.ports[0].ifname, ("hw_rx_good", "hw_rx_missed")
    before = driver_stats(ifname)
    cfg.model.fault(0, "lost_interrupts")
    # More than ring and packet buffer hold.
    sent = cfg.generate(3000, 1500, window=0, timeout_ms=5000)["sent"]
    cfg.model.mend(0)
    cfg.model.wait_check_ups(0, 3)
    now = driver_stats(ifname)
    good, missed = (now[name] - before[name] for name in names)
    ksft_gt(missed, 0)
    # Others send, too.
    ksft_lt(good - (sent - missed), 100)


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
def out_of_reach(cfg):
    """
    A card whose registers read as ones, but which is there by the bus, is kept
    from accessing memory. It has not stopped.
    """
    port = cfg.ports[0]
    log = kernel_log()
    cfg.start_traffic()
    cfg.traffic.flows()
    cfg.model.fault(0, "unmapped")
    ip(f"link set {port.ifname} down")
    ksft_true(not port.is_bus_master())
    ksft_in("DMA did not stop", kernel_log()[len(log):])
    port.unbind()


@ksft_disruptive
def bound_anew(cfg):
    """ The driver binds to the device again, which can be reset now. """
    cfg.bind_again()


@ksft_disruptive
def reached_again(cfg):
    """ Nor is it lost to the driver. """
    cfg.bind_again()


def lies():
    """ Yield the cases of each fault in turn. """
    for name in LIES:
        for case in (lie,
                     *([changes_what_comes_out] if name in CHANGES else []),
                     *([counted_as_errors] if name in ERRORS else []),
                     forwards_after_lie):
            yield ksft_variants([KsftNamedVariant(name, name)])(case)


def lost_reads():
    """ Yield the cases of reads that get lost. """
    yield full_counters_count_nothing
    yield ksft_variants([KsftNamedVariant(name, name) for name in COUNTERS])(lost_counter)
    yield from (lost_filter, lost_mac_settings)
    yield ksft_variants([KsftNamedVariant(name, name) for name in SWITCHES])(lost_switch)
    yield from (lost_status_going_down,
                forwards_after("lost_reads"), lost_status_at_probe,
                forwards_after("lost_status_at_probe"))


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__, drivers=["ixgbe_rust"],
                     why="the driver believes what the card says") as cfg:
        cfg.lied, cfg.errors, cfg.log = {}, {}, ""
        ksft_run(judged([set_up, *lies(),
                         memory_error, forwards_after("memory_error"), *lost_reads(),
                         host_is_busy, forwards_after("busy_host"),
                         lost_interrupts, missed_frames_are_not_good,
                         forwards_after("lost_interrupts"),
                         transmitter_hangs, transmitter_hang_is_told,
                         forwards_after("hang", 2000),
                         does_not_stop, bound_anew, forwards_after("does_not_stop"),
                         out_of_reach, reached_again, forwards_after("out_of_reach")]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
