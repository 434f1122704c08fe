# SPDX-License-Identifier: GPL-2.0

""" Helpers for device tests: modules, counters, processes that send. """

import contextlib
import errno
import json
import os
import select
import socket
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path

from net.lib.py import ktap_result
from lib.py import KsftFailEx, cmd, ip, ksft_pr

SOL_PACKET = 263
PACKET_STATISTICS = 6
PACKET_QDISC_BYPASS = 20
_SO_RCVBUFFORCE = 33
# The ring of the driver is full, or its queue is stopped.
BUSY = (errno.ENOBUFS, errno.EAGAIN)
GONE = (errno.ENETDOWN, errno.ENETUNREACH, errno.ENXIO)
# A frame with an experimental EtherType (IEEE 802) and an unused address.
FRAME = bytes.fromhex("02feedfeedfe02feedfeed0188b5") + bytes(86)


def skip_program(why):
    """ End the program with one skipped case. """
    print("TAP version 13\n1..1")
    ktap_result(True, comment=f"SKIP {why}")
    sys.exit(4)


def wait_until(cond, seconds, what, sleep=0.01):
    """
    Poll a condition, and fail the case on a timeout. A round counts as its pause
    and 0.2 s at most: in the rest of a longer one the host did not run an emulated
    machine, and what is waited for had no time either.
    """
    left = seconds
    while left > 0:
        start = time.monotonic()
        if cond():
            return
        time.sleep(sleep)
        left -= min(time.monotonic() - start, sleep + 0.2)
    raise KsftFailEx(f"{what}: not after {seconds} s")


def make_room(sock, size):
    """ Let so many bytes wait to be read, beyond the limit of the system. """
    sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, size)


def is_emulated():
    """
    Check for a virtual machine, where instructions may be emulated. Emulated
    CPUs take turns and rarely run at the same time. User-Mode Linux does not
    count.
    """
    if os.environ.get("EMULATED"):
        return False
    cpus = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return "hypervisor" in cpus and "User Mode Linux" not in cpus


def rounds(cfg, many, few):
    """
    Return a number of rounds: few for the C driver, which is slow to probe, and
    where instructions are emulated.
    """
    return few if cfg.driver == "ixgbe" or is_emulated() else many


def provokes(kind):
    """ Announce a kernel warning that the case triggers on purpose. """
    Path("/dev/kmsg").write_text(f"skbulk: provokes {kind}\n", encoding="utf-8")


def kernel_log():
    """ Return the kernel log. """
    return cmd("dmesg").stdout


def ip_batch(lines, ns=None):
    """ Run several ip commands in one process. """
    with tempfile.NamedTemporaryFile("w", suffix=".ip") as batch:
        batch.write("\n".join(lines) + "\n")
        batch.flush()
        ip(f"-batch {batch.name}", ns=ns)


def is_up(ifname, **where):
    """ Return whether the link of an interface is up, and the stack lets packets out. """
    # The kernel waits for its link watch before it answers.
    return ip(f"link show dev {ifname}", json=True, **where)[0]["operstate"] == "UP"


def netdev_stat(ifname, name):
    """ Return a counter of struct rtnl_link_stats64. """
    path = f"/sys/class/net/{ifname}/statistics/{name}"
    return int(Path(path).read_text(encoding="utf-8"))


def driver_stats(ifname, host=None):
    """ Return the driver's own counters, those of ethtool -S. """
    stats = {}
    said = cmd(f"ethtool -S {ifname}", host=host, timeout=60).stdout
    for line in said.splitlines():
        name, _, value = line.rpartition(":")
        if value.strip().isdigit():
            stats[name.strip()] = int(value)
    return stats


def sum16(data):
    """ Return the sum of the Internet checksum over @data. """
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def insert_module(name, parameters=""):
    """ Load a module and its dependencies. """
    cmd(f"modprobe {name} {parameters}")


def remove_module(name):
    """ Unload a module, but not its dependencies. """
    cmd(f"rmmod {name}")


def restart_rx_queue(ifindex, queue):
    """ Restart a receive queue; the module is gone after that, whatever the result. """
    module = "rx_queue_restart"
    insert_module(module, f"ifindex={ifindex} queue={queue}")
    remove_module(module)


def pages_back():
    """
    Receive a packet on each CPU. An skb freed by another CPU waits for that,
    and so does the page of the driver's page pool in it. The kernel reports
    the pool as stalled if the interface is removed while such pages are
    missing.
    """
    cpus = os.sched_getaffinity(0)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            sock.settimeout(1)
            for cpu in cpus:
                os.sched_setaffinity(0, {cpu})
                with contextlib.suppress(TimeoutError):
                    sock.sendto(b"", sock.getsockname())
                    sock.recv(1)
    finally:
        os.sched_setaffinity(0, cpus)


@contextlib.contextmanager
def beside(work, *args, seconds=60):
    """
    Do work in a thread beside a block. It may outlast the block by @seconds;
    that it takes longer, or fails, is a failure of the case.
    """
    errors = []

    def run():
        try:
            work(*args)
        except Exception as error:  # pylint: disable=broad-except
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield thread
    thread.join(seconds)
    if thread.is_alive():
        raise KsftFailEx(f"{work.__name__}: not done after {seconds} s")
    for error in errors:
        raise error


@contextlib.contextmanager
def repeated(work, *args):
    """ Do work again and again beside a block, at least once. """
    over = threading.Event()

    def loop():
        work(*args)
        while not over.is_set():
            work(*args)

    with beside(loop):
        try:
            yield
        finally:
            over.set()


class Task:
    """
    A function in a child process, optionally in another namespace. The return
    value has to be representable in JSON.
    """

    def __init__(self, func, *args, ns=None, cpu=None):
        self._read, write = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid:
            os.close(write)
            return
        code = 1
        try:
            os.close(self._read)
            if ns:
                with open(f"/run/netns/{ns}", encoding="utf-8") as path:
                    os.setns(path.fileno(), os.CLONE_NEWNET)
            if cpu is not None:
                os.sched_setaffinity(0, {cpu})
            os.write(write, json.dumps(func(*args)).encode() + b"\n")
            code = 0
        except BaseException as error:  # the parent raises it
            ksft_pr(f"{func.__name__}: {error!r}")
        finally:
            os._exit(code)

    def result(self, seconds=60):
        """ Wait for the return value of the function. """
        data = b""
        end = time.monotonic() + seconds
        while not data.endswith(b"\n"):
            left = max(0, end - time.monotonic())
            if not select.select([self._read], [], [], left)[0]:
                self.kill()
                raise KsftFailEx(f"a task did not end within {seconds} s")
            piece = os.read(self._read, 1 << 16)
            if not piece:
                self.kill()
                raise KsftFailEx("a task has failed")
            data += piece
        self._reap()
        return json.loads(data)

    def running(self):
        """ Check whether the function is still running. """
        return self.pid and not select.select([self._read], [], [], 0)[0]

    def kill(self, number=9):
        """ Kill the process. """
        if self.pid:
            os.kill(self.pid, number)
            self._reap()

    def _reap(self):
        if self.pid:
            os.waitpid(self.pid, 0)
            os.close(self._read)
            self.pid = 0


def frames_since(sock):
    """ Return the number of frames for a packet socket since this was last asked. """
    # Those that the socket had no room for are among them.
    return struct.unpack("=II", sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[0]


def flood(ifname, limit, seconds):
    """
    Send frames past the queueing discipline until the interface goes down, or
    up to a limit. Return the number of frames that the driver accepted.
    """
    taken = 0
    end = time.monotonic() + seconds
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
        sender.bind((ifname, 0))
        while taken < limit and time.monotonic() < end:
            try:
                sender.send(FRAME)
            except OSError as error:
                if error.errno in GONE:
                    break
                if error.errno not in BUSY:
                    raise
            else:
                taken += 1
    return taken
