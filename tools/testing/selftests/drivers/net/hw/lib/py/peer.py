# SPDX-License-Identifier: GPL-2.0

"""
The environment of tests for any port with a peer.

NETIF and the other variables of NetDrvEpEnv name the two ends. Where they are
not given and the machine has a modelled card, a cable connects its two ports.
No test needs the model for more than single cases, which ask for cfg.model and
are skipped without it.
"""

import contextlib
import os
import re
import socket
from pathlib import Path

from lib.py import KsftSkipEx, KsftXfailEx, NetDrvEpEnv, NetNSEnter, cmd, ethtool, ip

from .support import is_up, skip_program, wait_until


def _modelled_card(drivers, why):
    """ Return the modelled card, if there is one: nothing else here knows of it. """
    try:
        # pylint: disable=import-outside-toplevel
        from . import nicmodel
    except ImportError:
        return None
    return nicmodel.Card(drivers, why) if nicmodel.NicModel.there() else None


class PeerEnv(NetDrvEpEnv):
    """
    A port and its peer. @drivers limits the program to some drivers, @why is
    the reason that a skip gives. Without @v6, the modelled card's ports have no
    IPv6, as its packets would be counted.
    """

    def __init__(self, src_path, drivers=None, why="", v6=True):
        self.card = None if "NETIF" in os.environ else _modelled_card(drivers, why)
        self.cable = self.card and self.card.lay_cable(v6)
        if self.cable:
            os.environ.update(self.cable.variables())
        self._socket = None
        try:
            super().__init__(src_path, nsim_test=False)
            if drivers and self.driver not in drivers:
                skip_program(why or f"only for {', '.join(drivers)}")
        except KsftXfailEx:
            skip_program("needs NETIF and a peer, see drivers/net/README.rst")
        except BaseException:
            self._unplug()
            raise

    def _unplug(self):
        """ Release the modelled card. """
        if self.cable:
            self.cable.close()
            self.card.close()
            self.cable = self.card = None

    def __exit__(self, ex_type, ex_value, ex_tb):
        if self._socket:
            self._socket.close()
        super().__exit__(ex_type, ex_value, ex_tb)
        self._unplug()

    def judged(self, cases):
        """ Return the cases: each fails if the driver breaks a rule of a modelled card in it. """
        return self.card.judged(cases) if self.card else cases

    def unjudged(self):
        """ Have the judge of a modelled card look away from what no driver may do. """
        return self.card.unjudged() if self.card else contextlib.nullcontext()

    @property
    def model(self):
        """ The control line of the model; skips the case on other devices. """
        if not self.card:
            raise KsftSkipEx("needs the modelled card")
        return self.card.model

    @property
    def driver(self):
        """ The name of the port's driver; empty for virtual devices. """
        link = Path(f"/sys/class/net/{self.ifname}/device/driver")
        return link.resolve().name if link.exists() else ""

    def require_feature(self, *names):
        """ Skip the case if the port lacks a feature, by its name in ethtool -k. """
        said = ethtool(f"-k {self.ifname}").stdout
        for name in names:
            if not re.search(rf"^\s*{name}: (?!off \[fixed\])", said, re.M):
                raise KsftSkipEx(f"the port has no {name}")

    def require_driver(self, *drivers, why=""):
        """ Skip the case with other drivers. """
        if self.driver not in drivers:
            raise KsftSkipEx(why or f"only for {', '.join(drivers)}")

    def wait_up(self, seconds=60):
        """ Wait until both ends are up. """
        ends = ((self.ifname, None), (self.remote_ifname, self.remote))
        wait_until(lambda: all(is_up(ifname, host=host) for ifname, host in ends), seconds,
                   "both ends are up", 0.02)

    def reaches(self):
        """ Check whether the peer answers. """
        return cmd(f"ping -q -c 1 -W 1 {self.remote_addr_v['4']}", fail=False).ret == 0

    def reach(self, seconds=60):
        """ Wait until the ends are up and reach each other. """
        self.wait_up(seconds)
        # The first packet of all may wait for an address.
        wait_until(self.reaches, seconds, "the ends reach each other")

    def know_each_other(self):
        """
        Add permanent neighbour entries: no packet waits for an address, and
        only the packets of the test are in the queues.
        """
        ip(f"neigh replace {self.remote_addr_v['4']} lladdr {self.remote_dev['address']} "
           f"dev {self.ifname} nud permanent")
        ip(f"neigh replace {self.addr_v['4']} lladdr {self.dev['address']} "
           f"dev {self.remote_ifname} nud permanent", host=self.remote)

    @property
    def remote_ns(self):
        """ The namespace of the remote end; skips the case on two machines. """
        if self.env["REMOTE_TYPE"] != "netns":
            raise KsftSkipEx("needs the remote end in a namespace of this machine")
        return self.remote.name

    def inject(self, frame):
        """ Have a frame arrive at the port, from the model or the peer. """
        if self.card:
            self.model.inject(0, frame)
            return
        if not self._socket:
            with NetNSEnter(self.remote_ns):
                self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self._socket.bind((self.remote_ifname, 0))
        self._socket.send(frame)
