# SPDX-License-Identifier: GPL-2.0

""" A test environment on the two ports of the modelled card. """

import os
import threading
import time
from pathlib import Path

from lib.py import KsftFailEx, KsftSkipEx, NetDrvEnv, ksft_eq, ksft_gt

from .card import Card
from .control_line import NicModel
from ..support import ip_batch, is_emulated, provokes, skip_program
from ..support import wait_until

# The bytes that a transmit queue has given to the card, in sysfs.
INFLIGHT = "byte_queue_limits/inflight"
# The peers of port 0 and port 1, for which the generator speaks.
PEERS = ("02:00:00:00:00:02", "02:00:00:00:01:02")
# The longest time for which a frame that is not lost may stay in the machine.
PATIENCE_MS = 10_000


class Traffic(threading.Thread):
    """
    Bursts of frames in the background until stop() is called. With @pauses, each is followed by as
    much time without one: a slow machine would do nothing but receive.
    """

    def __init__(self, request, *, pauses=False):
        super().__init__(daemon=True)
        self._request, self._pauses = request, pauses
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
            request = dict(self._request)
            while not self._stop_asked.is_set():
                begin = time.monotonic()
                answer = model.ask("generate", **request)
                self.answers.append(answer)
                if self._pauses:
                    self._stop_asked.wait(time.monotonic() - begin)
                # Frames of a slow machine may come out when their burst has ended, each time.
                request["drain_ms"] = min(2 * request["drain_ms"], PATIENCE_MS)
                if answer["forwarded"]:
                    request["drain_ms"] = self._request["drain_ms"]
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

    # For NetDrvEnv, if the program is skipped.
    _ns = None

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

    def bind_again(self):
        """ Mend the card, and bind the driver to port 0. Traffic of before may be lost. """
        self.model.mend(0)
        self.ports[0].bind(self.driver)
        self.card.find()
        traffic, self.traffic = self.traffic, None
        traffic.stop(0)

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
