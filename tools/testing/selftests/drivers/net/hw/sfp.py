#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Modules in the cage of a port: modules of all kinds are identified, set up and
exchanged while the port is up; those that cannot be used leave the link down
and the driver alive; the firmware of the card is asked before the link is
touched.
"""

import subprocess

from lib.py import CmdExitFailure, KsftNamedVariant, defer, ethtool, ip
from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_in, ksft_lt, ksft_not_in
from lib.py import ksft_raises, ksft_run, ksft_variants
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import kernel_log, repeated, skip_program, wait_until

# Modules, their name in the log, and the speed of the link over them.
MODULES = [
    ("lr", "10GBASE-LR", 10000),
    ("passive", "passive cable", 10000),
    ("active", "active cable", 10000),
    ("ten_bx", "10GBASE-BX", 10000),
    ("sx", "1000BASE-SX", 1000),
    ("lx", "1000BASE-LX", 1000),
    ("t", "1000BASE-T", 1000),
    ("bx", "1000BASE-BX10", 1000),
    ("dual", "10GBASE-SR/1000BASE-SX", 10000),
]
CANNOT_USE = "unsupported SFP+ module type"
NO_ANSWER = "SFP+ module does not respond"
NOT_SET_UP = "failed to set up the SFP+ module"
BUS_IS_TAKEN = "firmware does not release the bus of the cage"
# The offset of a register.
SW_FW_SYNC = 0x10160
# Milliseconds, less than those after which a driver takes the semaphore from its owner.
LATE = 90
# The same for a word of the EEPROM, too long for the settings of a module in a second.
SLOW = 300
# A QSFP+ module, noise, a module without any code, and LRM.
UNUSABLE = [("qsfp", {}), ("garbage", {}), ("sr", {"id": "030407" + "00" * 64}),
            ("sr", {"id": "03040740"})]


class Log:
    """ The messages of the kernel since this was made. """

    def __init__(self):
        self._before = len(kernel_log())

    def text(self):
        """ Return the new lines. """
        return kernel_log()[self._before:]

    def wait(self, what, seconds=60):
        """ Wait until something is logged. """
        wait_until(lambda: what in self.text(), seconds, f"the log says '{what}'", 0.02)


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()


def carrier(cfg, state, seconds=60):
    """ Wait until the carrier of port 0 is there or not. """
    wait_until(lambda: cfg.ports[0].attr("carrier") == str(int(state)), seconds,
               f"the carrier is {'there' if state else 'gone'}", 0.02)


def _changes(cfg):
    return cfg.ports[0].attr("carrier"), cfg.ports[0].attr("carrier_changes")


def _stays(cfg, state, check_ups):
    before = _changes(cfg)
    ksft_eq(before[0], str(int(state)), "the carrier")
    cfg.model.wait_check_ups(0, check_ups)
    ksft_eq(_changes(cfg), before, "the carrier, and how often it has changed")


def stays_down(cfg, check_ups=3):
    """ Wait for the driver's check-ups, and check that the link is down all the time. """
    carrier(cfg, False)
    _stays(cfg, False, check_ups)


def settled(cfg):
    """ Wait for the link over the module that is in the cage now. """
    cfg.model.wait_link(0)
    # The carrier may still be that over the last one: then it stays.
    carrier(cfg, True)
    cfg.card.wait_up()


def restore(cfg):
    """ Put the first module back, and wait for the link. """
    cfg.model.mend(0)
    cfg.model.module(0)
    cfg.model.link(0)
    settled(cfg)


def speed(cfg):
    """ Return the speed of the link, in Mb/s. """
    return int(cfg.ports[0].attr("speed"))


@ksft_disruptive
def pulled_and_put_back(cfg):
    """ A module is pulled under traffic: the link goes, and comes back with it. """
    log = Log()
    defer(restore, cfg)
    cfg.start_traffic()
    cfg.traffic.flows()
    cfg.model.module(0, "absent")
    carrier(cfg, False)
    log.wait("SFP+ module removed")
    ksft_in("Port: None", ethtool(cfg.ifname).stdout)
    cfg.model.module(0)
    carrier(cfg, True)
    cfg.card.wait_up()
    cfg.check_traffic()


@ksft_variants(KsftNamedVariant(kind, kind, name, mbps) for kind, name, mbps in MODULES)
@ksft_disruptive
def exchanged(cfg, kind, name, mbps):
    """ Another module is put in while the port is up. """
    log = Log()
    defer(restore, cfg)
    cfg.model.module(0, kind)
    log.wait(name)
    settled(cfg)
    ksft_eq(speed(cfg), mbps)
    cfg.check_forwarded(100)


@ksft_disruptive
def exchanged_for_er(cfg):
    """ A module for long distances is used as one for short ones. """
    log = Log()
    defer(restore, cfg)
    cfg.model.module(0, "sr", id="03040780")
    log.wait("10GBASE-ER")
    settled(cfg)
    ksft_in("10000baseER/Full", ethtool(cfg.ifname).stdout)


@ksft_disruptive
def modes(cfg):
    """ The module decides on the mode of the link: ethtool accepts it, and no other. """
    defer(restore, cfg)
    for kind, accepted, refused in (("lr", "speed 10000 autoneg off", "speed 1000 autoneg off"),
                                    ("sx", "speed 1000 autoneg on", "speed 10000 autoneg off"),
                                    ("dual", "autoneg on", "speed 1000 autoneg on")):
        cfg.model.module(0, kind)
        settled(cfg)
        ethtool(f"-s {cfg.ifname} duplex full {accepted}")
        with ksft_raises(CmdExitFailure):
            ethtool(f"-s {cfg.ifname} duplex full {refused}")
    cfg.model.module(0, "absent")
    carrier(cfg, False)
    with ksft_raises(CmdExitFailure):
        ethtool(f"-s {cfg.ifname} speed 10000 autoneg off")


@ksft_disruptive
def exchanged_for_optical_cable(cfg):
    """ An active cable that says nothing about its amplifiers needs no settings. """
    log = Log()
    defer(restore, cfg)
    cfg.model.module(0, "passive", id="030421000000000008")
    log.wait("active cable without limiting amplifiers")
    settled(cfg)
    ksft_eq(speed(cfg), 10000)
    cfg.check_forwarded(100)
    ksft_in("Port: Direct Attach Copper", ethtool(cfg.ifname).stdout)


@ksft_disruptive
def advertised_anew(cfg):
    """ A link that negotiates starts again when the use of pause frames changes. """
    def writes():
        return [cfg.model.writes(0, name) for name in ("PCS1GANA", "AUTOC")]

    defer(restore, cfg)
    cfg.model.module(0, "sx")
    settled(cfg)
    cfg.model.ask("trace", port=0, phase="pause")
    defer(cfg.model.ask, "trace", port=0)
    defer(ethtool, f"-A {cfg.ifname} rx on tx on")
    before = writes()
    ethtool(f"-A {cfg.ifname} rx off tx off")
    # The pipeline is reset by a detour to another mode.
    ksft_eq([after - old for after, old in zip(writes(), before, strict=True)], [1, 2])
    settled(cfg)
    cfg.check_forwarded(100)


@ksft_disruptive
def opened_with(cfg):
    """ A module is exchanged while the port is down, and used when it is up. """
    defer(restore, cfg)
    ip(f"link set {cfg.ifname} down")
    cfg.model.module(0, "sx")
    cfg.set_up()
    ksft_eq(speed(cfg), 1000)
    ip(f"link set {cfg.ifname} down")
    cfg.model.module(0, "absent")
    ip(f"link set {cfg.ifname} up")
    stays_down(cfg, 2)


@ksft_variants(KsftNamedVariant(f"{number}", kind, fields)
               for number, (kind, fields) in enumerate(UNUSABLE))
@ksft_disruptive
def unusable(cfg, kind, fields):
    """ A module that the card cannot use is told once; the link stays down. """
    log = Log()
    defer(restore, cfg)
    cfg.model.module(0, kind, **fields)
    log.wait(CANNOT_USE)
    stays_down(cfg)
    ksft_eq(log.text().count(CANNOT_USE), 1)
    # The transmitter must not light a module of which nothing is known.
    ksft_eq(esdp(cfg) >> 3 & 1, 1)


def esdp(cfg):
    """ Return the register of the pins. """
    raw = subprocess.check_output(["ethtool", "-d", cfg.ifname, "raw", "on"])
    return int.from_bytes(raw[12:16], "little")


@ksft_disruptive
def silent(cfg):
    """ A module that does not answer is asked until it does. """
    log = Log()
    defer(restore, cfg)
    cfg.model.module(0, "silent")
    log.wait(NO_ANSWER)
    stays_down(cfg)
    ksft_eq(log.text().count(NO_ANSWER), 1)


@ksft_disruptive
def probed_with(cfg):
    """ The driver binds to a port whatever is in its cage. """
    port = cfg.ports[0]
    defer(cfg.set_up)
    defer(restore, cfg)
    for kind in ("absent", "garbage", "silent"):
        cfg.model.module(0, kind)
        port.unbind()
        port.bind(cfg.driver)
        cfg.card.find()
        ip(f"link set {port.ifname} up")
        stays_down(cfg, 2)


def _read_eeprom(cfg):
    subprocess.run(["ethtool", "-e", cfg.ifname, "raw", "on", "length", "512"],
                   stdout=subprocess.DEVNULL, check=True)


@ksft_disruptive
def eeprom_is_slow(cfg):
    """ No one waits longer than a second for the words that are read at once. """
    def asked():
        return cfg.model.writes(0, "EERD")

    defer(restore, cfg)
    cfg.model.ask("trace", port=0, phase="slow")
    defer(cfg.model.ask, "trace", port=0)
    cfg.model.fault(0, "slow_eeprom", value=LATE)
    before = asked()
    with ksft_raises(subprocess.CalledProcessError):
        _read_eeprom(cfg)
    ksft_lt(asked() - before, 2 * 1000 / LATE)
    cfg.model.mend(0)
    _read_eeprom(cfg)


@ksft_disruptive
def settings_come_late(cfg):
    """ A module whose settings do not come in time is told of once, and set up when they do. """
    log = Log()
    defer(restore, cfg)
    cfg.model.fault(0, "slow_eeprom", value=SLOW)
    cfg.model.module(0, "lr")
    log.wait(NOT_SET_UP)
    stays_down(cfg)
    ksft_eq(log.text().count(NOT_SET_UP), 1)
    cfg.model.mend(0)
    settled(cfg)
    cfg.check_forwarded(100)


@ksft_disruptive
def exchanged_while_eeprom_is_read(cfg):
    """ The settings of a module and others who read the EEPROM take turns. """
    defer(restore, cfg)
    with repeated(_read_eeprom, cfg):
        for kind in ("lr", "passive", "active", "sr"):
            cfg.model.module(0, kind)
            settled(cfg)


@ksft_disruptive
def dark_while_down(cfg):
    """ The laser of a port that is down is off, from the beginning and after a reset. """
    port = cfg.ports[0]
    defer(cfg.set_up)
    port.unbind()
    port.bind(cfg.driver)
    cfg.card.find()
    ksft_eq(esdp(cfg) >> 3 & 1, 1)
    ip(f"link set {port.ifname} up")
    carrier(cfg, True)
    ksft_eq(esdp(cfg) >> 3 & 1, 0)
    ip(f"link set {port.ifname} down")
    ksft_eq(esdp(cfg) >> 3 & 1, 1)
    if port.reset_function():
        ksft_eq(esdp(cfg) >> 3 & 1, 1)


@ksft_disruptive
def two_speeds(cfg):
    """ A module for two speeds finds that of its link partner, and another one later. """
    defer(restore, cfg)
    cfg.model.module(0, "dual")
    for mbps in (1000, 10000, 1000):
        cfg.model.link(0, False)
        carrier(cfg, False)
        cfg.model.link(0, True, speed=mbps)
        carrier(cfg, True)
        ksft_eq(speed(cfg), mbps)


@ksft_disruptive
def no_link_in_an_empty_cage(cfg):
    """ Noise in an empty cage is no link. """
    defer(restore, cfg)
    cfg.model.module(0, "absent")
    carrier(cfg, False)
    cfg.model.fault(0, "false_link", count=1000000)
    stays_down(cfg)


@ksft_disruptive
def no_link_for_a_moment(cfg):
    """ A link that is there for a moment only does not count. """
    defer(restore, cfg)
    cfg.model.link(0, False)
    carrier(cfg, False)
    log = Log()
    for _ in range(3):
        # Two reads, since the register latches; and two more that tell the truth.
        cfg.model.fault(0, "false_link", count=2)
        cfg.model.wait_reads(0, "LINKS", 4)
    # The last check-up has ended when there is another one.
    stays_down(cfg, 1)
    ksft_not_in("link is up", log.text())


@ksft_disruptive
def firmware_shares(cfg):
    """ The firmware has what the driver needs, for some time and for long. """
    log = Log()
    defer(restore, cfg)
    cfg.model.fault(0, "firmware_busy", count=20)
    cfg.model.module(0, "lr")
    log.wait("10GBASE-LR")
    settled(cfg)
    cfg.model.fault(0, "firmware_busy", count=1000000)
    cfg.model.module(0, "sr")
    log.wait(BUS_IS_TAKEN)
    stays_down(cfg)
    cfg.model.mend(0)
    carrier(cfg, True)


@ksft_disruptive
def firmware_dies(cfg):
    """ Dead firmware loses its resources to the driver after a second. """
    log = Log()
    defer(restore, cfg)
    cfg.model.fault(0, "firmware_dead")
    cfg.model.module(0, "lr")
    log.wait("10GBASE-LR")
    settled(cfg)


@ksft_disruptive
def semaphore_comes_late(cfg):
    """
    The semaphore comes just in time, each time, for a bus that the firmware keeps: a port that
    goes up does not wait for longer than a second, in which it can ask so often.
    """
    def asked():
        return cfg.model.reads(0, "GSSR")

    log = Log()
    defer(cfg.set_up)
    defer(restore, cfg)
    ip(f"link set {cfg.ifname} down")
    cfg.model.fault(0, "firmware_busy", count=1000000)
    cfg.model.fault(0, "late_semaphore", value=LATE)
    cfg.model.ask("trace", port=0, phase="late")
    defer(cfg.model.ask, "trace", port=0)
    before = asked()
    ip(f"link set {cfg.ifname} up")
    ksft_lt(asked() - before, 2 * 1000 / LATE)
    log.wait(BUS_IS_TAKEN)


@ksft_disruptive
def bus_cannot_be_taken(cfg):
    """ A bus whose semaphore does not show its new owner is not used. """
    log = Log()
    defer(restore, cfg)
    cfg.model.fault(0, "dead_register", value=SW_FW_SYNC)
    cfg.model.module(0, "lr")
    log.wait(BUS_IS_TAKEN)
    stays_down(cfg)


@ksft_disruptive
def firmware_manages_link(cfg):
    """ Firmware that manages the link is asked before the link is changed. """
    defer(cfg.set_up)
    defer(restore, cfg)
    port = cfg.ports[0]
    # A driver that is bound does not know of it, and may start the link once more.
    port.unbind()
    cfg.model.fault(0, "lesm")
    port.bind(cfg.driver)
    cfg.set_up()
    cfg.model.module(0, "sx")
    settled(cfg)
    ksft_eq(speed(cfg), 1000)


@ksft_disruptive
def firmware_forbids(cfg):
    """ The firmware forbids changes of the link, and the driver makes none. """
    port = cfg.ports[0]
    defer(restore, cfg)
    cfg.model.fault(0, "veto")
    ip(f"link set {port.ifname} down")
    cfg.set_up()
    cfg.check_forwarded(100)


def bind_anew(cfg):
    """ Let the driver read the EEPROM again. """
    cfg.ports[0].unbind()
    cfg.ports[0].bind(cfg.driver)
    cfg.set_up()


@ksft_disruptive
def link_without_the_bus(cfg):
    """
    Of a card whose links are sure, the bus says whether the module is still
    there. While the firmware has the bus, the link stays as it is.
    """
    log = Log()
    defer(bind_anew, cfg)
    defer(restore, cfg)
    cfg.model.fault(0, "no_crosstalk")
    bind_anew(cfg)
    cfg.model.fault(0, "firmware_busy", count=1000000)
    _stays(cfg, True, 5)
    cfg.check_forwarded(100)
    ksft_not_in("SFP+ module removed", log.text())
    # Nothing else is mended by another fault of the same kind.
    cfg.model.fault(0, "firmware_busy", count=0)
    cfg.model.module(0, "absent")
    carrier(cfg, False)
    log.wait("SFP+ module removed")
    cfg.model.module(0, "lr")
    carrier(cfg, True)


@ksft_disruptive
def empty_without_the_pin(cfg):
    """ An empty cage is no module that does not answer, if the bus alone tells. """
    log = Log()
    defer(bind_anew, cfg)
    defer(restore, cfg)
    cfg.model.fault(0, "no_crosstalk")
    bind_anew(cfg)
    cfg.model.module(0, "absent")
    carrier(cfg, False)
    ip(f"link set {cfg.ports[0].ifname} down")
    ip(f"link set {cfg.ports[0].ifname} up")
    stays_down(cfg, 5)
    ksft_not_in(NO_ANSWER, log.text())
    cfg.model.module(0, "lr")
    log.wait("10GBASE-LR")
    carrier(cfg, True)


@ksft_disruptive
def link_without_negotiation(cfg):
    """ A link that comes up is used, whatever the negotiation says. """
    log = Log()
    defer(restore, cfg)
    cfg.model.fault(0, "no_negotiation")
    cfg.model.module(0, "lr")
    log.wait("failed to start the link")
    settled(cfg)
    cfg.check_forwarded(100)
    ksft_eq(log.text().count("failed to start the link"), 1)


@ksft_disruptive
def firmware_is_old(cfg):
    """ Old firmware is told. """
    defer(restore, cfg)
    log = Log()
    cfg.model.fault(0, "old_firmware")
    cfg.ports[0].unbind()
    cfg.ports[0].bind(cfg.driver)
    cfg.set_up()
    ksft_in("firmware too old for SFP+", log.text())


def main():
    """ Ksft boiler plate main """

    why = "ixgbe keeps other rules for its modules"
    with NicModelEnv(__file__, drivers=("ixgbe_rust", ), why=why) as cfg:
        if not cfg.model.ask("judge")["judged"]:
            skip_program("only a judged card looks at the mode of the link")
        ksft_run(judged([set_up, pulled_and_put_back, exchanged, modes, exchanged_for_er,
                         exchanged_for_optical_cable, advertised_anew,
                         eeprom_is_slow, settings_come_late, exchanged_while_eeprom_is_read,
                         forwards_after("exchanges"),
                         opened_with, unusable, silent, probed_with, dark_while_down,
                         two_speeds,
                         no_link_in_an_empty_cage, no_link_for_a_moment,
                         firmware_shares, firmware_dies, semaphore_comes_late,
                         bus_cannot_be_taken, firmware_manages_link, firmware_forbids,
                         link_without_the_bus, empty_without_the_pin,
                         link_without_negotiation,
                         firmware_is_old, forwards_after("firmware")]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
