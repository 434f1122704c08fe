#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Modules of many makers in the cage of a port, among them some with memories that
are wrong, slow, late, or know reads of single bytes only. The table of modules
in the documentation of the driver has the same.
"""

from lib.py import KsftNamedVariant, defer, ksft_disruptive, ksft_eq, ksft_exit, ksft_in
from lib.py import ksft_not_in, ksft_run, ksft_variants
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import insert_module, remove_module, skip_program
from sfp import CANNOT_USE, NO_ANSWER, Log, bind_anew, carrier, restore, set_up, settled
from sfp import speed, stays_down

BY_BYTE = "SFP+ EEPROM is read byte by byte"
WRONG_SUM = "bad checksum of the SFP+ EEPROM"
UNQUALIFIED = "SFP+ module not qualified by Intel"
# Modules that are used: their names in the log, and the speed of the link over them.
USED = [
    ("er", "10GBASE-ER, skbulk model ER-MODEL", 10000),
    ("active_optical", "active cable without limiting amplifiers, skbulk model AOC-MODEL", 10000),
    ("tyco", "passive cable, skbulk model DA-MODEL", 10000),
    ("foreign_passive", "passive cable, skbulk model DA-MODEL", 10000),
    ("gpon", "1000BASE-BX10, skbulk model GPON-MODEL", 1000),
    ("single_t", "1000BASE-T, skbulk model T-SINGLE-MODEL", 1000),
    ("wrong_sum", "10GBASE-SR, skbulk model SUM-MODEL", 10000),
    ("slow", "10GBASE-SR, skbulk model SLOW-MODEL", 10000),
    ("late", "10GBASE-SR, skbulk model LATE-MODEL", 10000),
]
# Modules of makers that Intel has not tested.
UNTESTED = [("foreign", "10GBASE-SR"), ("foreign_lr", "10GBASE-LR"), ("ftl", "10GBASE-SR"),
            ("avago", "10GBASE-SR")]
# More that the log says of some.
ALSO = {"gpon": [BY_BYTE], "single_t": [BY_BYTE], "wrong_sum": [WRONG_SUM], "late": [NO_ANSWER]}
NOTES = (BY_BYTE, WRONG_SUM, UNQUALIFIED, NO_ANSWER, CANNOT_USE)


@ksft_variants([KsftNamedVariant(kind, kind, name, mbps) for kind, name, mbps in USED])
@ksft_disruptive
def used(cfg, kind, name, mbps):
    """ A module is identified, told of, and used. """
    log = Log()
    defer(restore, cfg)
    cfg.model.module(0, kind)
    log.wait(f"SFP+ module: {name}")
    settled(cfg)
    ksft_eq(speed(cfg), mbps)
    said = log.text()
    for note in NOTES:
        (ksft_in if note in ALSO.get(kind, []) else ksft_not_in)(note, said)
    cfg.check_forwarded(100)


@ksft_variants([KsftNamedVariant(kind, kind) for kind in ("lrm", "ten_t", "erased")])
@ksft_disruptive
def refused(cfg, kind):
    """ A module for which the card has no settings is told of once; the link stays down. """
    log = Log()
    defer(restore, cfg)
    cfg.model.module(0, kind)
    log.wait(CANNOT_USE)
    stays_down(cfg)
    ksft_eq(log.text().count(CANNOT_USE), 1)


def _each_untested(cfg):
    """ Modules that Intel has not tested are used, and the log says so. """
    # The log tells nothing of one that looks like the one before, as the last does.
    for kind, name in UNTESTED[:-1]:
        log = Log()
        cfg.model.module(0, kind)
        log.wait(f"SFP+ module: {name}")
        settled(cfg)
        ksft_in(UNQUALIFIED, log.text())
        ksft_eq(speed(cfg), 10000)
    cfg.check_forwarded(100)


@ksft_variants([KsftNamedVariant(kind, kind, name) for kind, name in UNTESTED])
@ksft_disruptive
def untested(cfg, kind, name):
    """ A module that Intel has not tested is used only if users say so. """
    log = Log()
    defer(restore, cfg)
    cfg.model.module(0, kind)
    log.wait(f"{UNQUALIFIED}: {name}")
    stays_down(cfg)
    ksft_eq(log.text().count(UNQUALIFIED), 1)
    ksft_in("allow_unsupported_sfp", log.text())


@ksft_disruptive
def untested_allowed_by_eeprom(cfg):
    """ The EEPROM of the card says so. """
    defer(bind_anew, cfg)
    defer(restore, cfg)
    cfg.model.fault(0, "any_module")
    bind_anew(cfg)
    _each_untested(cfg)


def _load(cfg, parameters=""):
    """ Load the driver anew. """
    remove_module(cfg.driver)
    insert_module(cfg.driver, parameters)
    cfg.card.find()
    cfg.set_up()


@ksft_disruptive
def untested_allowed_by_parameter(cfg):
    """ A parameter of the driver says so. """
    defer(_load, cfg)
    defer(restore, cfg)
    _load(cfg, "allow_unsupported_sfp=1")
    _each_untested(cfg)


@ksft_disruptive
def exchanged_for_another_memory(cfg):
    """ The way in which a module is read is none of the next one. """
    defer(restore, cfg)
    for kind in ("gpon", "sx", "wrong_sum", "single_t", "lr"):
        log = Log()
        cfg.model.module(0, kind)
        carrier(cfg, True)
        settled(cfg)
        log.wait("SFP+ module: ")
        (ksft_in if kind in ("gpon", "single_t") else ksft_not_in)(BY_BYTE, log.text())


def main():
    """ Ksft boiler plate main """

    why = "ixgbe keeps other rules for its modules"
    with NicModelEnv(__file__, drivers=("ixgbe_rust", ), why=why) as cfg:
        if not cfg.model.ask("judge")["judged"]:
            skip_program("only a judged card looks at the mode of the link")
        ksft_run(judged([set_up, used, refused, exchanged_for_another_memory,
                         untested, untested_allowed_by_eeprom, untested_allowed_by_parameter,
                         forwards_after("modules")]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
