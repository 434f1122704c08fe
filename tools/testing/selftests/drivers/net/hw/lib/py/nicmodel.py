# SPDX-License-Identifier: GPL-2.0

"""
A modelled network card with two ports, and what may be plugged into them.

The model of an Intel 82599 (tools/nicmodel of the skbulk project) has a
control line: one JSON object per line each way. It generates frames into one
port and checks each that leaves the other one, connects ports by a cable, and
makes the card lie on request.

  NicModelEnv   both ports are local, and forward between two peers that exist
                in the generator only
  CableEnv      what NetDrvEpEnv is; without NETIF the second port is the
                remote end, in a network namespace, if there is a model

Where there is no control line, a program that needs one is skipped as a whole.
"""

import contextlib
import fcntl
import glob
import json
import os
import select
import threading
import time
from pathlib import Path

from lib.py import KsftFailEx, KsftSkipEx, NetDrvEnv, NetDrvEpEnv, NetNS
from lib.py import cmd, ip, ksft_eq, ksft_gt

from .support import insert_module, ip_batch, is_emulated, netdev_stat
from .support import pages_back, remove_module, skip_program, wait_until

CONTROL_LINES = "/dev/virtio-ports/org.skbulk.wire*"
# The peers of port 0 and port 1, for which the generator speaks.
PEERS = ("02:00:00:00:00:02", "02:00:00:00:01:02")
MODULES = {"rust": "ixgbe_rust", "c": "ixgbe"}
CABLE_V4 = ("10.9.0.1", "10.9.0.2")
CABLE_V6 = ("2001:db8:9::1", "2001:db8:9::2")


class NicModelError(Exception):
    """ The model refuses a request. """


class NicModel:
    """ A control line to the model, which nobody else uses meanwhile. """

    def __init__(self):
        self._fd, self._lock = self._free_line()
        self._rest = b""
        self._resync()

    @staticmethod
    def there():
        """ Is there a modelled card? """
        return bool(glob.glob(CONTROL_LINES))

    @staticmethod
    def _free_line():
        end = time.monotonic() + 60
        while lines := sorted(glob.glob(CONTROL_LINES), reverse=True):
            for line in lines:
                # The wire command takes the same locks.
                lock = open(f"/run/{os.path.basename(line)}.lock", "w",
                            encoding="utf-8")
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return os.open(line, os.O_RDWR), lock
                except OSError:
                    lock.close()
            if time.monotonic() > end:
                raise NicModelError("no free control line")
            time.sleep(0.1)
        raise KsftSkipEx("needs the modelled card")

    def close(self):
        """ Let others have the line. """
        if self._fd is not None:
            os.close(self._fd)
            self._lock.close()
            self._fd = None

    def _resync(self):
        """
        A program that was killed may have left an answer on its way: find the
        end of such by a request whose refusal names it.
        """
        tag = f"resync-{os.getpid()}-{time.monotonic_ns()}"
        self._write({"cmd": tag})
        while tag not in self._readline(60):
            pass

    def _write(self, request):
        data = json.dumps(request).encode() + b"\n"
        while data:
            data = data[os.write(self._fd, data):]

    def _readline(self, seconds):
        end = time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._fd], [], [], left)[0]:
                raise NicModelError(f"no answer within {seconds} s")
            data = os.read(self._fd, 1 << 16)
            if not data:
                raise NicModelError("the model is gone")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def ask(self, request, **fields):
        """ One request; returns the answer. """
        self._write({"cmd": request, **fields})
        answer = json.loads(self._readline(600))
        if not answer.get("ok"):
            raise NicModelError(f"{request}: {answer.get('error', answer)}")
        return answer

    def wire(self, port, kind="sink", **fields):
        """ Plug something into a port. """
        self.ask("wire", port=port, kind=kind, **fields)

    def link(self, port, up=True):
        """ The link of a port comes or goes. """
        self.ask("link", port=port, up=up)

    def inject(self, port, frame):
        """ One frame into a port. """
        self.ask("inject", port=port, hex=frame.hex())

    def stats(self, port):
        """ What the card has counted, whatever its driver says. """
        return self.ask("stats", port=port)

    def fault(self, port, kind, count=None, value=None):
        """ Make the card lie on the next occasions. """
        fields = {"count": count, "value": value}
        self.ask("fault", port=port, kind=kind,
                 **{key: v for key, v in fields.items() if v is not None})

    def mend(self, port):
        """ The truth again. """
        self.ask("fault", port=port, kind="clear")

    def reset(self):
        """ Both ports with nothing plugged in, a link, and no faults. """
        for port in (0, 1):
            self.mend(port)
            self.wire(port)
            self.link(port)


class Port:
    """ A port of the card: its PCI device, and the interface that it has. """

    def __init__(self, number, pci):
        self.number = number
        self.pci = pci
        self.ifname = None

    @property
    def _device(self):
        return Path("/sys/bus/pci/devices") / self.pci

    def find(self):
        """ The interface may come anew, with another driver or name. """
        nets = glob.glob(f"{self._device}/net/*")
        self.ifname = os.path.basename(nets[0]) if nets else None
        return self.ifname is not None

    def driver(self):
        """ The name of the driver that is bound. """
        link = self._device / "driver"
        return link.resolve().name if link.exists() else None

    def unbind(self):
        """ Take the port from its driver. """
        (self._device / "driver/unbind").write_text(self.pci, encoding="utf-8")

    def bind(self, driver):
        """ Give it to a driver. """
        path = Path("/sys/bus/pci/drivers") / driver / "bind"
        path.write_text(self.pci, encoding="utf-8")

    def stat(self, name):
        """ A counter of the interface. """
        return netdev_stat(self.ifname, name)

    def attr(self, name):
        """ An attribute of the interface, without the end of line. """
        path = Path("/sys/class/net") / self.ifname / name
        return path.read_text(encoding="utf-8").strip()

    def ifindex(self):
        """ That of the interface. """
        return int(self.attr("ifindex"))

    def mac(self):
        """ Its present address. """
        return self.attr("address")

    def queues(self, kind):
        """ How many rx or tx queues it has. """
        return len(glob.glob(f"/sys/class/net/{self.ifname}/queues/{kind}-*"))

    def tx_queue_sum(self, name):
        """ An attribute of all transmit queues: which is used depends on the CPU. """
        paths = glob.glob(f"/sys/class/net/{self.ifname}/queues/tx-*/{name}")
        return sum(int(Path(path).read_text(encoding="utf-8")) for path in paths)

    @staticmethod
    def all():
        """ Those of the model, in the order of their wires. """
        found = []
        for device in sorted(Path("/sys/bus/pci/devices").iterdir()):
            ids = [(device / name).read_text(encoding="utf-8").strip()
                   for name in ("vendor", "class")]
            if ids == ["0x8086", "0x020000"]:
                found.append(Port(len(found), device.name))
        return found


class Card:
    """ The modelled card, its ports, and the driver under test. """

    def __init__(self, drivers=None, why=""):
        if not NicModel.there():
            skip_program("needs the modelled card")
        self.ports = Port.all()
        if len(self.ports) < 2:
            skip_program("needs two ports of the modelled card")
        self.driver = (self.ports[0].driver() or
                       MODULES[os.environ.get("DRIVER", "rust")])
        if drivers and self.driver not in drivers:
            skip_program(why or f"only for {', '.join(drivers)}")
        if not Path(f"/sys/module/{self.driver}").exists():
            insert_module(self.driver)
        self.find()
        self.model = NicModel()
        self.model.reset()

    def close(self):
        """ Leave it as others expect it. """
        with contextlib.suppress(NicModelError):
            self.model.reset()
        self.model.close()

    def find(self):
        """ Wait until each port has an interface. """
        wait_until(lambda: False not in [port.find() for port in self.ports], 20,
                   f"{self.driver} makes an interface for each port")

    def wait_up(self, ports=None):
        """
        Wait until ports may send. The carrier alone is too early: queues drop
        everything until the link watch has seen it too.
        """
        ports = ports or self.ports
        wait_until(lambda: all(port.attr("operstate") == "up" for port in ports),
                   20, "the ports are up")
        time.sleep(0.2)

    def load(self, parameters="", wait=True):
        """ The driver under test. """
        insert_module(self.driver, parameters)
        if wait:
            self.find()

    def unload(self):
        """ The driver under test; what it depends on stays. """
        remove_module(self.driver)


class Traffic(threading.Thread):
    """ Bursts of frames through the guest, until stop(). """

    def __init__(self, request):
        super().__init__(daemon=True)
        self._request = request
        self._stop_asked = threading.Event()
        self._came_through = threading.Event()
        self.answers = []
        self.error = None
        self.start()

    def run(self):
        """ No timeout ends a burst before its frames are accounted for. """
        try:
            model = NicModel()
            while not self._stop_asked.is_set():
                self.answers.append(model.ask("generate", **self._request))
                if self.answers[-1]["forwarded"]:
                    self._came_through.set()
            model.close()
        except Exception as error:  # told by whoever stops it
            self.error = error

    def stop(self, seconds=30):
        """
        A burst is lost as a whole if the ports were away for all of it, so
        there is one more until one comes through.
        """
        self._came_through.wait(seconds)
        self._stop_asked.set()
        self.join(120)
        if self.error:
            raise self.error

    def check(self):
        """ Some came out, and whatever came out was right. """
        for answer in self.answers:
            for what in ("duplicated", "damaged"):
                ksft_eq(answer[what], 0, f"frames {what}: {answer}")
        ksft_gt(sum(answer["forwarded"] for answer in self.answers), 0,
                "frames that came out at all")


class NicModelEnv(NetDrvEnv):
    """
    Both ports of the modelled card in this namespace, as a router between two
    peers. @drivers names those that the program is for, @why says why.
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
        """ Skip a case of other drivers. """
        if self.driver != driver:
            raise KsftSkipEx(why)

    def set_up(self):
        """ Addresses, routes and neighbours for 10.0.0.2 <-> 10.0.1.2. """
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
        """ Both ports up or down. """
        ip_batch(f"link set {port.ifname} {state}" for port in self.ports)

    def request(self, count, size=60, port=0, **fields):
        """ Frames from the peer at @port to the other one, each checked. """
        to = 1 - port
        return {"from": port, "to": to, "count": count, "size": size,
                "src_mac": PEERS[port], "dst_mac": self.ports[port].mac(),
                "expect_src_mac": self.ports[to].mac(),
                "expect_dst_mac": PEERS[to],
                "src_ip": f"10.0.{port}.2", "dst_ip": f"10.0.{to}.2",
                "window": 128, "drain_ms": 1000, "timeout_ms": 60000, **fields}

    def generate(self, count, size=60, port=0, **fields):
        """ Send them; returns what the checker found. """
        return self.model.ask("generate",
                              **self.request(count, size, port, **fields))

    def check_forwarded(self, count, size=60, port=0, **fields):
        """ Each frame comes out once, whole and in order. """
        answer = self.generate(count, size, port, **fields)
        for what in ("sent", "forwarded"):
            ksft_eq(answer[what], count, f"{what}: {answer}")
        for what in ("duplicated", "damaged", "reordered"):
            ksft_eq(answer[what], 0, f"{what}: {answer}")
        return answer

    def settle(self):
        """
        Wait until nothing leaves any more: what a slow machine has queued
        would look like damage to the next burst.
        """
        last, end = None, time.monotonic() + 20
        while time.monotonic() < end:
            sent = [port.stat("tx_packets") for port in self.ports]
            if sent == last:
                return
            last = sent
            time.sleep(0.7)

    def check_works(self, count=500):
        """ Whatever happened, the driver forwards every frame. """
        self.set_up()
        self.settle()
        self.check_forwarded(count)

    def start_traffic(self):
        """ Bursts in the background until check_traffic(). """
        self.traffic = Traffic(self.request(2000))

    def check_traffic(self):
        """ End the traffic: what came out was right. """
        if not self.traffic:
            raise KsftFailEx("the case before this one started no traffic")
        traffic, self.traffic = self.traffic, None
        traffic.stop()
        traffic.check()


def forwards_after(what, count=500):
    """ A case: the driver forwards every frame. """
    def case(cfg):
        cfg.check_works(count)
    case.__name__ = f"forwards_after_{what}"
    return case


def traffic_intact(during):
    """ A case: the traffic of the case before was right, and ends. """
    def case(cfg):
        cfg.check_traffic()
    case.__name__ = f"traffic_intact_{during}"
    return case


class Cable:
    """ The ports wired to each other, the second in a namespace of its own. """

    def __init__(self, card, v6=True):
        self.card = card
        self.v6 = v6 and os.path.exists("/proc/net/if_inet6")
        self.ns = NetNS()
        card.model.wire(0, "cable", peer=1)
        self.plug_in()

    def plug_in(self):
        """ Addresses for both; the second port goes into its namespace. """
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
        wait_until(self.reaches, 30, "the ports reach each other")

    @staticmethod
    def _set_v6(ifname, ns, state):
        """ Without IPv6 nothing leaves an interface but what a test sends. """
        path = f"/proc/sys/net/ipv6/conf/{ifname}/disable_ipv6"
        if os.path.exists("/proc/net/if_inet6"):
            cmd(["sh", "-c", f"echo {int(not state)} >{path}"] if not ns else
                ["ip", "netns", "exec", ns, "sh", "-c", f"echo {int(not state)} >{path}"],
                shell=False)

    @staticmethod
    def reaches():
        """ Does the other end answer? """
        return cmd(f"ping -q -c 1 -W 1 {CABLE_V4[1]}", fail=False).ret == 0

    def variables(self):
        """ What NetDrvEpEnv reads. """
        found = {"NETIF": self.card.ports[0].ifname,
                 "LOCAL_V4": CABLE_V4[0], "REMOTE_V4": CABLE_V4[1],
                 "REMOTE_TYPE": "netns", "REMOTE_ARGS": self.ns.name}
        if self.v6:
            found |= {"LOCAL_V6": CABLE_V6[0], "REMOTE_V6": CABLE_V6[1]}
        return found

    def close(self):
        """
        An interface leaves its namespace by itself when that goes, but not at
        once.
        """
        local = self.card.ports[0].ifname
        ip(f"addr flush dev {local}")
        self._set_v6(local, None, True)
        self.ns.__exit__(None, None, None)
        self.card.find()
        self.card.model.reset()
        pages_back()


class CableEnv(NetDrvEpEnv):
    """
    A local and a remote end. NETIF and its like name them, as for any other
    test; otherwise they are the ports of the modelled card.
    """

    def __init__(self, src_path, drivers=None, why="", native=False, v6=True):
        if native and is_emulated():
            skip_program("takes too long where the machine is emulated")
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
        """ Give the ports back. """
        if self.cable:
            self.cable.close()
            self.cable = None
        if self.card:
            self.card.close()
            self.card = None

    def __exit__(self, ex_type, ex_value, ex_tb):
        super().__exit__(ex_type, ex_value, ex_tb)
        self.unplug()

    def know_each_other(self):
        """
        Neither end asks for the other's address: no packet waits for it, and
        queues have nothing in them but what a test sends.
        """
        ip(f"neigh replace {self.remote_addr_v['4']} lladdr {self.remote_dev['address']} "
           f"dev {self.ifname} nud permanent")
        ip(f"neigh replace {self.addr_v['4']} lladdr {self.dev['address']} "
           f"dev {self.remote_ifname} nud permanent", host=self.remote)

    def remote_stat(self, name):
        """ A counter of the remote interface. """
        link = ip(f"-s link show dev {self.remote_ifname}", json=True, host=self.remote)
        direction, _, what = name.partition("_")
        return link[0]["stats64"][direction][what]

    @property
    def model(self):
        """ The model at the other end of the wire, or a reason to skip. """
        if not self.card:
            raise KsftSkipEx("needs the modelled card")
        return self.card.model
