# SPDX-License-Identifier: GPL-2.0

""" Ways to enqueue packets to queueing disciplines. """

import re
from pathlib import Path

from lib.py import defer, ksft_eq
from net.lib.py import tc

CORE = Path("/proc/sys/net/core")
SWITCH = CORE / "xmit_llist_rust"
# Its values.
WAYS = {"c": "0", "rust": "1"}


def has_ways():
    """ Check whether the kernel has several ways to enqueue. """
    return SWITCH.exists()


def set_way(name):
    """ Select the code that enqueues packets to qdiscs. """
    SWITCH.write_text(WAYS[name], encoding="utf-8")
    ksft_eq(SWITCH.read_text(encoding="utf-8").strip(), WAYS[name], SWITCH.name)


def way(name):
    """ Select it for the rest of a case. """
    if has_ways():
        set_way(name)
        defer(set_way, "c")


def set_core(name, value):
    """ Set a variable of net.core and return the old value. """
    path = CORE / name
    was = path.read_text(encoding="utf-8").strip()
    path.write_text(str(value), encoding="utf-8")
    return was


class Root:
    """ The root qdisc of an interface. """

    def __init__(self, ifname, ns=None):
        self.ifname = ifname
        self.ns = ns

    def replace(self, kind):
        """ Replace it, with the syntax of tc. """
        tc(f"qdisc replace dev {self.ifname} root {kind}", ns=self.ns)

    def dropped(self):
        """ Return the number of packets that it has dropped. """
        shown = tc(f"-s qdisc show dev {self.ifname} root", ns=self.ns).stdout
        return int(re.search(r"dropped (\d+)", shown)[1])
