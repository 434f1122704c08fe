# SPDX-License-Identifier: GPL-2.0

"""
The control line of the modelled network card (tools/nicmodel of the skbulk
project): one JSON object per line in each direction.
"""

import fcntl
import glob
import json
import os
import select
import time

from lib.py import KsftSkipEx

CONTROL_LINES = "/dev/virtio-ports/org.skbulk.wire*"


class NicModelError(Exception):
    """ The model has refused a request. """


class NicModel:
    """ A control line to the model, locked for exclusive use. """

    def __init__(self):
        self._fd, self._lock = self._free_line()
        self._rest = b""
        self._resync()
        self._known = {}

    @staticmethod
    def there():
        """ Check whether the machine has a modelled card. """
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
        """ Release the line. """
        if self._fd is not None:
            os.close(self._fd)
            self._lock.close()
            self._fd = None

    def _resync(self):
        """
        Skip answers to a program that was killed: send an unknown command with
        a unique name and read until the refusal quotes that name.
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

    def can(self, request):
        """
        Check whether the model takes a request. A model that is only the far
        side of a card that others have modelled has none about the card.
        """
        # One at a time: an answer with all of them is too long for a serial line.
        if request not in self._known:
            self._write({"cmd": "help", "request": request})
            self._known[request] = json.loads(self._readline(600))["ok"]
        return self._known[request]

    def _need(self, request, what):
        """ Skip the case if the model lacks a request. """
        if not self.can(request):
            raise KsftSkipEx(f"needs a modelled card, for {what}")

    def ask(self, request, **fields):
        """ Send one request and return the answer. """
        self._write({"cmd": request, **fields})
        answer = json.loads(self._readline(600))
        if not answer.get("ok"):
            raise NicModelError(f"{request}: {answer.get('error', answer)}")
        return answer

    def wire(self, port, kind="sink", **fields):
        """ Connect a port to a sink, a cable, or another kind of wire. """
        self.ask("wire", port=port, kind=kind, **fields)

    def link(self, port, up=True, speed=None, trains=()):
        """
        Set the link of a port up or down, with a far end of one speed only, or over a backplane
        on which only these lanes train.
        """
        self._need("link", "changes of the link")
        fields = ({"speed": speed} if speed else {}) | ({"trains": trains} if trains else {})
        self.ask("link", port=port, up=up, **fields)

    def module(self, port, kind="sr", **fields):
        """ Put another module into the cage of a port, or none ("absent"). """
        self._need("module", "its modules")
        self.ask("module", port=port, kind=kind, **fields)

    def inject(self, port, frame):
        """ Send one frame into a port. """
        self.ask("inject", port=port, hex=frame.hex())

    def stats(self, port):
        """ Return the counters of the card, independent of its driver. """
        self._need("stats", "counters independent of the driver")
        return self.ask("stats", port=port)

    def fault(self, port, kind, count=None, value=None):
        """ Inject a fault, for a number of occasions. """
        self._need("fault", "faults")
        fields = {"count": count, "value": value}
        self.ask("fault", port=port, kind=kind,
                 **{key: v for key, v in fields.items() if v is not None})

    def mend(self, port):
        """ Clear all faults of a port. """
        self.ask("fault", port=port, kind="clear")

    def _wait(self, port, until, **fields):
        self._need("wait", "what its driver does")
        self.ask("wait", port=port, until=until, **fields)

    def wait_reads(self, port, register, count):
        """ Wait until the driver has read a register so many times from now on. """
        self._wait(port, "reads", register=register, count=count)

    def wait_check_ups(self, port, count):
        """
        Wait until the driver has begun so many check-ups from now on, of which all but the last
        one have ended. In each it reads all counters.
        """
        self.wait_reads(port, "BPRC", count)

    def wait_link(self, port):
        """
        Wait until the link is up, the driver has started it over the module that is in the cage
        now, and knows.
        """
        self._wait(port, "link")

    def _accesses(self, port, register, kind):
        return sum(one[kind] for phase in self.ask("accesses", port=port)["phases"]
                   for one in phase["registers"] if one["name"] == register)

    def reads(self, port, register):
        """ Count the reads of a register while it was traced, since the model runs. """
        return self._accesses(port, register, "reads")

    def writes(self, port, register):
        """ Count the writes to a register while it was traced, since the model runs. """
        return self._accesses(port, register, "writes")

    def reset(self):
        """ Restore both ports: no wire, link up, its first module, no faults. """
        for port in (0, 1):
            self.wire(port)
            if self.can("fault"):
                self.mend(port)
            if self.can("module"):
                self.module(port)
            if self.can("link"):
                self.link(port)
