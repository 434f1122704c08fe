# SPDX-License-Identifier: GPL-2.0

""" A cable between the two ports of the modelled card. """

import contextlib
import os
from pathlib import Path

from lib.py import NetNS, NetNSEnter, cmd, ip

from ..support import ip_batch, is_up, pages_back, wait_until

CABLE_V4 = ("10.9.0.1", "10.9.0.2")
CABLE_V6 = ("2001:db8:9::1", "2001:db8:9::2")


class Cable:
    """ A cable between the ports, with the second port in a namespace. """

    def __init__(self, card, v6=True):
        self.card = card
        self.v6 = v6 and os.path.exists("/proc/net/if_inet6")
        self.ns = NetNS()
        card.model.wire(0, "cable", peer=1)
        self.plug_in()

    def plug_in(self):
        """ Move the second port into the namespace and set addresses. """
        self.card.find()
        local, remote = (port.ifname for port in self.card.ports)
        ip(f"link set {remote} netns {self.ns.name}")
        for ifname, ns, number in ((local, None, 0), (remote, self.ns.name, 1)):
            self._set_v6(ifname, ns, self.v6)
            lines = [f"addr replace {CABLE_V4[number]}/24 dev {ifname}"]
            if self.v6:
                lines.append(f"addr replace {CABLE_V6[number]}/64 dev {ifname} nodad")
            lines += ["link set lo up", f"link set {ifname} up"]
            ip_batch(lines, ns=ns)
        wait_until(lambda: is_up(local) and is_up(remote, ns=self.ns.name), 60,
                   "the ports are up", 0.02)
        wait_until(self.reaches, 30, "the ports reach each other")

    @staticmethod
    def _set_v6(ifname, ns, state):
        """
        Switch IPv6 off where a test counts packets: only its own are sent
        then.
        """
        if os.path.exists("/proc/net/if_inet6"):
            # This shows the namespace of the thread that opens it.
            path = Path(f"/proc/sys/net/ipv6/conf/{ifname}/disable_ipv6")
            with NetNSEnter(ns) if ns else contextlib.nullcontext():
                path.write_text(str(int(not state)), encoding="ascii")

    @staticmethod
    def reaches():
        """ Check whether the remote end answers. """
        return cmd(f"ping -q -c 1 -W 1 {CABLE_V4[1]}", fail=False).ret == 0

    def variables(self):
        """ Return the environment variables of NetDrvEpEnv. """
        found = {"NETIF": self.card.ports[0].ifname,
                 "LOCAL_V4": CABLE_V4[0], "REMOTE_V4": CABLE_V4[1],
                 "REMOTE_TYPE": "netns", "REMOTE_ARGS": self.ns.name}
        if self.v6:
            found |= {"LOCAL_V6": CABLE_V6[0], "REMOTE_V6": CABLE_V6[1]}
        return found

    def close(self):
        """ Delete the namespace, and wait for the interface that it held. """
        local = self.card.ports[0].ifname
        ip(f"addr flush dev {local}")
        self._set_v6(local, None, True)
        self.ns.__exit__(None, None, None)
        self.card.find()
        self.card.model.reset()
        pages_back()
