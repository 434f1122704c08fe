# SPDX-License-Identifier: GPL-2.0

"""
Test environments on the two ports of a modelled network card.

The model of an Intel 82599 generates frames into one port and checks each
frame that leaves the other port, connects ports by a cable, and injects faults
on request.

  NicModelEnv   both ports are local, and forward between two peers that exist
                only in the generator
  CableEnv      a NetDrvEpEnv; without NETIF the second port of the model is
                the remote end, in a network namespace

Without a control line the whole program is skipped. The model may also be the
far side of a card that others have modelled: then cases that need something of
the card itself, such as faults or a change of the link, are skipped.
"""

import contextlib
import os
import threading
from pathlib import Path

from lib.py import KsftFailEx, KsftSkipEx, NetDrvEnv, NetDrvEpEnv, NetNS, NetNSEnter
from lib.py import cmd, ip, ksft_eq, ksft_gt

from .card import Card
from .control_line import NicModel
from .support import ip_batch, is_emulated, pages_back, provokes, skip_program
from .support import wait_until

# The bytes that a transmit queue has given to the card, in sysfs.
INFLIGHT = "byte_queue_limits/inflight"
# The peers of port 0 and port 1, for which the generator speaks.
PEERS = ("02:00:00:00:00:02", "02:00:00:00:01:02")
# The longest time for which a frame that is not lost may stay in the machine.
PATIENCE_MS = 10_000
CABLE_V4 = ("10.9.0.1", "10.9.0.2")
CABLE_V6 = ("2001:db8:9::1", "2001:db8:9::2")


class Traffic(threading.Thread):
    """ Bursts of frames in the background until stop() is called. """

    def __init__(self, request):
        super().__init__(daemon=True)
        self._request = request
        self._stop_asked = threading.Event()
        self._came_through = threading.Event()
        self.answers = []
        self.error = None
        self.start()

    def run(self):
        """
        Send bursts without a timeout, so that every frame is accounted for.
        """
        try:
            model = NicModel()
            while not self._stop_asked.is_set():
                self.answers.append(model.ask("generate", **self._request))
                if self.answers[-1]["forwarded"]:
                    self._came_through.set()
            model.close()
        except Exception as error:  # stop() raises it
            self.error = error

    def flows(self, seconds=60):
        """ Wait until a burst came through. """
        if not self._came_through.wait(seconds):
            raise KsftFailEx(f"no traffic for {seconds} s")

    def stop(self, seconds=30):
        """
        Stop after a burst of which at least one frame came through. A burst is
        lost as a whole if the ports are down while it is sent.
        """
        self._came_through.wait(seconds)
        self._stop_asked.set()
        self.join(120)
        if self.error:
            raise self.error

    def check(self):
        """
        Check that frames came out, and that none was duplicated or damaged.
        """
        for answer in self.answers:
            for what in ("duplicated", "damaged"):
                ksft_eq(answer[what], 0, f"frames {what}: {answer}")
        ksft_gt(sum(answer["forwarded"] for answer in self.answers), 0,
                "frames that came out at all")


class NicModelEnv(NetDrvEnv):
    """
    Both ports of the modelled card in this namespace, with routing between two
    peers. @drivers limits the program to some drivers, @why is the reason that
    a skip gives.
    """

    def __init__(self, src_path, drivers=None, why="", native=False):
        if native and is_emulated():
            skip_program("takes too long where the machine is emulated")
        self.card = Card(drivers, why)
        self.model = self.card.model
        self.ports = self.card.ports
        self.traffic = None
        os.environ["NETIF"] = self.ports[0].ifname
        super().__init__(src_path, nsim_test=False)

    def __enter__(self):
        return self

    def __exit__(self, ex_type, ex_value, ex_tb):
        if self.traffic:
            self.traffic.stop(0)
        self.card.close()
        super().__exit__(ex_type, ex_value, ex_tb)

    @property
    def driver(self):
        """ The name of the driver under test. """
        return self.card.driver

    def require_driver(self, driver, why):
        """ Skip the case with any other driver. """
        if self.driver != driver:
            raise KsftSkipEx(why)

    def set_up(self):
        """ Set addresses, routes and neighbours for 10.0.0.2 <-> 10.0.1.2. """
        self.card.find()
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="utf-8")
        lines = []
        for port, peer in zip(self.ports, PEERS, strict=True):
            net = f"10.0.{port.number}"
            lines += [f"addr replace {net}.1/24 dev {port.ifname}",
                      f"link set {port.ifname} up",
                      f"neigh replace {net}.2 lladdr {peer} dev {port.ifname} nud permanent"]
        ip_batch(lines)
        self.card.wait_up()

    def both(self, state):
        """ Set both ports up or down. """
        ip_batch(f"link set {port.ifname} {state}" for port in self.ports)

    def request(self, count, size=60, port=0, **fields):
        """
        Build a request for frames from the peer at @port to the other peer.
        """
        to = 1 - port
        return {"from": port, "to": to, "count": count, "size": size,
                "src_mac": PEERS[port], "dst_mac": self.ports[port].mac(),
                "expect_src_mac": self.ports[to].mac(),
                "expect_dst_mac": PEERS[to],
                "src_ip": f"10.0.{port}.2", "dst_ip": f"10.0.{to}.2",
                "window": 128, "drain_ms": 1000, "timeout_ms": 60000, **fields}

    def generate(self, count, size=60, port=0, **fields):
        """ Send frames and return the result of the checker. """
        return self.model.ask("generate",
                              **self.request(count, size, port, **fields))

    def check_forwarded(self, count, size=60, port=0, **fields):
        """ Check that each frame comes out once, whole and in order. """
        # On a busy machine, frames that come late are not lost; nor do others take their place, for
        # which queues may have no room.
        patient = {"stall_ms": PATIENCE_MS, "drain_ms": PATIENCE_MS} | fields
        answer = self.generate(count, size, port, **patient)
        for what in ("sent", "forwarded"):
            ksft_eq(answer[what], count, f"{what}: {answer}")
        for what in ("duplicated", "damaged", "reordered"):
            ksft_eq(answer[what], 0, f"{what}: {answer}")
        return answer

    def settle(self):
        """
        Wait until all that was on its way has left, which a further frame leaves behind, and the
        drivers know that.
        """
        self.card.wait_up()
        self.check_forwarded(1)
        wait_until(lambda: not any(port.tx_queue_sum(INFLIGHT) for port in self.ports), 20,
                   "the ports have sent everything")

    def check_works(self, count=500):
        """ Check that the driver forwards every frame. """
        self.set_up()
        if self.traffic:
            # A case that was skipped has started it.
            self.check_traffic()
        self.settle()
        self.check_forwarded(count)

    def hang_transmitter(self):
        """
        Let port 1 send packets that the card does not report as sent, until
        the watchdog has restarted the port.
        """
        provokes("netdev")
        port = self.ports[1]
        before = port.tx_queue_sum("tx_timeout")
        self.model.fault(1, "tx_no_done", 8)
        self.generate(700, timeout_ms=4000)
        wait_until(lambda: port.tx_queue_sum("tx_timeout") > before, 40,
                   "the watchdog barks")
        self.model.mend(1)
        self.card.wait_up([port])

    def start_traffic(self, count=2000, **fields):
        """
        Send bursts in the background until check_traffic(). Those that get lost in part end soon.
        """
        self.traffic = Traffic(self.request(count, **{"drain_ms": 100} | fields))

    def check_traffic(self):
        """ Stop the bursts and check the frames that came out. """
        if not self.traffic:
            raise KsftFailEx("the case before this one started no traffic")
        traffic, self.traffic = self.traffic, None
        traffic.stop()
        traffic.check()


def forwards_after(what, count=500):
    """ Return a case: the driver forwards every frame. """
    def case(cfg):
        cfg.check_works(count)
    case.__name__ = f"forwards_after_{what}"
    return case


def traffic_intact(during):
    """ Return a case: no frame of the traffic was damaged or duplicated. """
    def case(cfg):
        cfg.check_traffic()
    case.__name__ = f"traffic_intact_{during}"
    return case


def is_up(ifname, **where):
    """ Return whether the link of an interface is up, and the stack lets packets out. """
    # The kernel waits for its link watch before it answers.
    return ip(f"link show dev {ifname}", json=True, **where)[0]["operstate"] == "UP"


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


class CableEnv(NetDrvEpEnv):
    """
    A local and a remote endpoint. NETIF and the other variables of NetDrvEpEnv
    name them; without NETIF they are the ports of the modelled card, and the
    only ones if @modelled is set.
    """

    def __init__(self, src_path, drivers=None, why="", native=False, v6=True, modelled=False):
        if native and is_emulated():
            skip_program("takes too long where the machine is emulated")
        if modelled and "NETIF" in os.environ:
            skip_program("needs the modelled card")
        self.card = None
        self.cable = None
        if "NETIF" not in os.environ:
            self.card = Card(drivers, why)
            self.cable = Cable(self.card, v6)
            os.environ.update(self.cable.variables())
        try:
            super().__init__(src_path, nsim_test=False)
        except BaseException:
            self.unplug()
            raise

    def unplug(self):
        """ Remove the cable and release the card. """
        if self.cable:
            self.cable.close()
            self.cable = None
        if self.card:
            self.card.close()
            self.card = None

    def __exit__(self, ex_type, ex_value, ex_tb):
        super().__exit__(ex_type, ex_value, ex_tb)
        self.unplug()

    def reach(self, seconds=60):
        """ Wait until the ends are up and reach each other. """
        ends = ((self.ifname, None), (self.remote_ifname, self.remote))
        wait_until(lambda: all(is_up(ifname, host=host) for ifname, host in ends), seconds,
                   "both ends are up", 0.02)
        # The first packet of all may wait for an address.
        ping = f"ping -q -c 1 -W 1 {self.remote_addr_v['4']}"
        wait_until(lambda: cmd(ping, fail=False).ret == 0, seconds, "the ends reach each other")

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
        if os.environ["REMOTE_TYPE"] != "netns":
            raise KsftSkipEx("needs the remote end in a namespace of this machine")
        return self.remote.name

    def remote_stat(self, name):
        """ Return a counter of the remote interface. """
        link = ip(f"-s link show dev {self.remote_ifname}", json=True, host=self.remote)
        direction, _, what = name.partition("_")
        return link[0]["stats64"][direction][what]

    @property
    def model(self):
        """ The control line of the model; skips the case on other devices. """
        if not self.card:
            raise KsftSkipEx("needs the modelled card")
        return self.card.model
