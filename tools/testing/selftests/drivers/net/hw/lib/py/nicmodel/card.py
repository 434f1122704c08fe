# SPDX-License-Identifier: GPL-2.0

"""
The network card as the guest sees it: two PCI functions, their interfaces, and
the driver under test. The card is the modelled one, or one of QEMU's whose far
side is the model.
"""

import contextlib
import glob
import os
from pathlib import Path

from .cable import Cable
from .control_line import NicModel, NicModelError
from .judge import judged, looks_away
from ..support import insert_module, ip_batch, netdev_stat, pages_back
from ..support import remove_module, skip_program, wait_until

IXGBE = {"rust": "ixgbe_rust", "c": "ixgbe"}
# By card: its drivers.
MODULES = {
    "82599": IXGBE,
    "82599-kx4": IXGBE,
    "e1000e": {"rust": "rust_driver_e1000e", "c": "e1000e"},
}
# Drivers under test; those of C are the measure.
RUST = tuple(drivers["rust"] for drivers in MODULES.values())


class Port:
    """ A port of the card: a PCI device and its network interface. """

    def __init__(self, number, pci):
        self.number = number
        self.pci = pci
        self.ifname = None

    @property
    def _device(self):
        return Path("/sys/bus/pci/devices") / self.pci

    def find(self):
        """ Look up the interface, which changes when a driver binds again. """
        nets = glob.glob(f"{self._device}/net/*")
        self.ifname = os.path.basename(nets[0]) if nets else None
        return self.ifname is not None

    def driver(self):
        """ Return the name of the bound driver. """
        link = self._device / "driver"
        return link.resolve().name if link.exists() else None

    def unbind(self):
        """ Unbind the driver from the port. """
        (self._device / "driver/unbind").write_text(self.pci, encoding="utf-8")

    def bind(self, driver):
        """ Bind a driver to the port. """
        path = Path("/sys/bus/pci/drivers") / driver / "bind"
        path.write_text(self.pci, encoding="utf-8")

    def reset_function(self):
        """ Have the kernel reset the port. Return whether it can. """
        path = self._device / "reset"
        if not path.exists():
            return False
        path.write_text("1", encoding="utf-8")
        return True

    def users(self):
        """ Return how often the device has been enabled without being disabled. """
        return int((self._device / "enable").read_text(encoding="utf-8"))

    def is_bus_master(self):
        """ Return whether the port may access memory. """
        command = (self._device / "config").read_bytes()[4:6]
        return bool(int.from_bytes(command, "little") & 1 << 2)

    def stat(self, name):
        """ Return a counter of the interface. """
        return netdev_stat(self.ifname, name)

    def attr(self, name):
        """ Return an attribute of the interface from sysfs. """
        path = Path("/sys/class/net") / self.ifname / name
        return path.read_text(encoding="utf-8").strip()

    def can_transmit(self):
        """
        Whether the queues take packets. The link watch opens them after it has set the state, and
        learns of a lost carrier up to a second late: to read the carrier waits for it, and has it
        look.
        """
        try:
            return [self.attr(name) for name in ("carrier", "operstate", "carrier")] == [
                "1", "up", "1"]
        except OSError:
            # There is no carrier to read while the interface is down.
            return False

    def ifindex(self):
        """ Return the index of the interface. """
        return int(self.attr("ifindex"))

    def mac(self):
        """ Return the current MAC address. """
        return self.attr("address")

    def queues(self, kind):
        """ Return the number of rx or tx queues. """
        return len(glob.glob(f"/sys/class/net/{self.ifname}/queues/{kind}-*"))

    def tx_queue_sum(self, name):
        """
        Sum up an attribute over all transmit queues: the CPU selects the
        queue.
        """
        paths = glob.glob(f"/sys/class/net/{self.ifname}/queues/tx-*/{name}")
        return sum(int(Path(path).read_text(encoding="utf-8")) for path in paths)

    @staticmethod
    def all():
        """ Return the ports of the model, in the order of their wires. """
        found = []
        for device in sorted(Path("/sys/bus/pci/devices").iterdir()):
            ids = [(device / name).read_text(encoding="utf-8").strip()
                   for name in ("vendor", "class")]
            if ids == ["0x8086", "0x020000"]:
                found.append(Port(len(found), device.name))
        return found


class Card:
    """ The modelled card with its ports and the driver under test. """

    def __init__(self, drivers=None, why=""):
        if not NicModel.there():
            skip_program("needs the modelled card")
        self.ports = Port.all()
        if len(self.ports) < 2:
            skip_program("needs two ports of the modelled card")
        self.driver = (self.ports[0].driver() or
                       MODULES[os.environ.get("CARD", "82599")]
                       [os.environ.get("DRIVER", "rust")])
        if drivers and self.driver not in drivers:
            skip_program(why or f"only for {', '.join(drivers)}")
        if not Path(f"/sys/module/{self.driver}").exists():
            insert_module(self.driver)
        self.find()
        self.model = NicModel()
        self.model.reset()

    @property
    def sums_as_told(self):
        """
        Whether the card inserts any checksum that a descriptor asks for. QEMU's
        cards insert those of TCP and UDP, by the headers that they find.
        """
        return self.model.can("fault")

    def lay_cable(self, v6=True):
        """ Connect the two ports by a cable. """
        return Cable(self, v6)

    @staticmethod
    def judged(cases):
        """ Return the cases such that each fails if the driver breaks a rule in it. """
        return judged(cases)

    def unjudged(self):
        """ Have the judge look away from what no driver may do. """
        return looks_away(self.model)

    def close(self):
        """
        Reset the model and leave the ports down, as they are after loading the
        driver. The link watch would read counters of a port that is up, up to
        a second later, when the machine may already power off.
        """
        with contextlib.suppress(NicModelError):
            self.model.reset()
        self.model.close()
        ip_batch(f"link set {port.ifname} down" for port in self.ports if port.find())
        pages_back()

    def find(self):
        """ Wait until each port has an interface. """
        wait_until(lambda: False not in [port.find() for port in self.ports], 20,
                   f"{self.driver} makes an interface for each port")

    def wait_up(self, ports=None):
        """ Wait until the ports can transmit. """
        ports = ports or self.ports
        # A debug kernel on emulated CPUs takes 3 s to restart a port.
        wait_until(lambda: all(port.can_transmit() for port in ports), 60, "the ports are up")

    def load(self, parameters="", wait=True):
        """ Load the driver under test. """
        insert_module(self.driver, parameters)
        if wait:
            self.find()

    def unload(self):
        """ Unload the driver under test, but not the modules it depends on. """
        remove_module(self.driver)
