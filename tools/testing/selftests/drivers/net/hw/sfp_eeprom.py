#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
The EEPROM of the module in the cage of a port, as ethtool -m shows it.
"""

import subprocess

from lib.py import CmdExitFailure, KsftNamedVariant, cmd, defer, ethtool
from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_in, ksft_raises, ksft_run
from lib.py import ksft_variants
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv
from sfp import restore, set_up, settled

NAME = b"skbulk model"


def module_info(cfg):
    """ ethtool -m tells about the module, its diagnostics too. """
    said = ethtool(f"-m {cfg.ifname}").stdout
    ksft_in("Vendor name", said)
    ksft_in("skbulk model", said)
    ksft_in("10G Ethernet: 10G Base-SR", said)
    ksft_in("30.00 degrees C", said)


def _dump(cfg, what=""):
    """ Return bytes of the module that ethtool shows in hexadecimal. """
    # A module is slow, and so are emulated pins.
    said = cmd(f"ethtool -m {cfg.ifname} hex on {what}", timeout=60).stdout
    dump = [line.partition(":")[2] for line in said.splitlines() if line.startswith("0x")]
    return bytes.fromhex("".join(dump))


def _bytes(cfg, address, offset, length, page=0):
    """ Return some bytes of the module, by the place that netlink has for them. """
    return _dump(cfg, f"offset {offset} length {length} page {page} bank 0 i2c {address}")


def _all_bytes(cfg, addresses):
    return b"".join(_bytes(cfg, address, offset, 128)
                    for address in addresses for offset in (0, 128))


def module_bytes(cfg):
    """ The bytes are those of the module, at any offset. """
    ksft_eq(_bytes(cfg, 0x50, 20, len(NAME)), NAME)
    ksft_eq(_bytes(cfg, 0x50, 26, 5), NAME[6:11])
    ksft_eq(_bytes(cfg, 0x51, 96, 2), bytes([30, 0]))
    with ksft_raises(CmdExitFailure):
        _bytes(cfg, 0x52, 0, 1)
    # Not those of another place either.
    with ksft_raises(CmdExitFailure):
        _bytes(cfg, 0x50, 128, 16, page=1)


def module_dump(cfg):
    """ Programs that read all of the module at once find the bytes of both addresses. """
    whole = _all_bytes(cfg, (0x50, 0x51))
    ksft_eq(_dump(cfg), whole)
    raw = subprocess.run(["ethtool", "-m", cfg.ifname, "raw", "on"], capture_output=True,
                         check=True)
    ksft_eq(raw.stdout, whole)
    # ethtool asks for no more bytes than there are.
    for offset, length in ((0, 1), (20, 16), (250, 12), (256, 1), (500, 13)):
        ksft_eq(_dump(cfg, f"offset {offset} length {length}"), whole[offset:offset + length])


@ksft_disruptive
def module_dump_without_diagnostics(cfg):
    """ A module without diagnostics has the bytes of one address. """
    defer(restore, cfg)
    cfg.model.module(0, "passive")
    settled(cfg)
    ksft_eq(_dump(cfg), _all_bytes(cfg, (0x50, )))
    with ksft_raises(CmdExitFailure):
        _dump(cfg, "offset 256 length 1")


@ksft_disruptive
def module_absent(cfg):
    """ Without a module there is an error, and with the next one there is none. """
    defer(restore, cfg)
    cfg.model.module(0, "absent")
    with ksft_raises(CmdExitFailure):
        ethtool(f"-m {cfg.ifname}")
    cfg.model.module(0, "passive")
    settled(cfg)
    ksft_in("skbulk model", ethtool(f"-m {cfg.ifname}").stdout)


@ksft_variants([KsftNamedVariant(kind, kind) for kind in ("gpon", "single_t")])
@ksft_disruptive
def module_bytes_alone(cfg, kind):
    """ Of a module that knows reads of single bytes only, all bytes are read. """
    defer(restore, cfg)
    cfg.model.module(0, kind)
    settled(cfg)
    ksft_eq(_bytes(cfg, 0x50, 20, len(NAME)), NAME)
    ksft_eq(_bytes(cfg, 0x51, 96, 4), bytes([30, 0, 0x80, 0xe8]))


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__, drivers=("ixgbe_rust", ),
                     why="ixgbe keeps other rules for its modules") as cfg:
        ksft_run(judged([set_up, module_info, module_bytes, module_dump,
                         module_dump_without_diagnostics, module_bytes_alone, module_absent]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
