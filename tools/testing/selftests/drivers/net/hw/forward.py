#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Frames forwarded from wire to wire: each comes out once, whole and in order.
"""

from lib.py import KsftNamedVariant, ksft_exit, ksft_run, ksft_variants
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv

# Odd lengths, and both sides of the limits of cache lines and buffers.
LENGTHS = (61, 62, 63, 64, 65, 127, 128, 129, 191, 193, 255, 256, 257, 319, 511,
           512, 513, 767, 769, 1023, 1024, 1025, 1279, 1281, 1500, 1513)


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()


@ksft_variants([
    KsftNamedVariant("20000_of_60_bytes", 20000, 60, 0, 1),
    KsftNamedVariant("2000_of_1514_bytes", 2000, 1514, 0, 1),
    KsftNamedVariant("2000_the_other_way", 2000, 60, 1, 1),
    KsftNamedVariant("2000_of_16_flows", 2000, 128, 0, 16),
    KsftNamedVariant("2000_of_16_flows_the_other_way", 2000, 128, 1, 16),
])
def frames(cfg, count, size, port, flows):
    """ A large number of frames is forwarded. """
    cfg.check_forwarded(count, size, port, flows=flows)


@ksft_variants(LENGTHS)
def length(cfg, size):
    """ Frames of this length are forwarded. """
    cfg.check_forwarded(200, size)


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__) as cfg:
        ksft_run(judged([set_up, frames, length]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
