# SPDX-License-Identifier: GPL-2.0

"""
What tests of a device do besides: modules, counters, processes that send.
"""

import contextlib
import errno
import json
import os
import select
import socket
import sys
import tempfile
import time
from pathlib import Path

from net.lib.py import ktap_result
from lib.py import KsftFailEx, cmd, ip, ksft_pr

SOL_PACKET = 263
PACKET_QDISC_BYPASS = 20
# The driver's ring is full, or its queue is stopped for another reason.
BUSY = (errno.ENOBUFS, errno.EAGAIN)
GONE = (errno.ENETDOWN, errno.ENETUNREACH, errno.ENXIO)
# A frame of a type that is for experiments (IEEE 802), to nobody.
FRAME = bytes.fromhex("02feedfeedfe02feedfeed0188b5") + bytes(86)


def skip_program(why):
    """ End the program as one case that was skipped. """
    print("TAP version 13\n1..1")
    ktap_result(True, comment=f"SKIP {why}")
    sys.exit(4)


def wait_until(cond, seconds, what, sleep=0.1):
    """ Poll a condition; fail the case if it does not come about. """
    end = time.monotonic() + seconds
    while not cond():
        if time.monotonic() > end:
            raise KsftFailEx(f"{what}: not after {seconds} s")
        time.sleep(sleep)


def is_emulated():
    """
    Is this a virtual machine, where each instruction may be emulated? CPUs
    take turns then, and hardly meet. User-Mode Linux is none.
    """
    if os.environ.get("EMULATED"):
        return False
    cpus = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return "hypervisor" in cpus and "User Mode Linux" not in cpus


def provokes(kind):
    """ Announce a complaint of the kernel that a case brings about. """
    Path("/dev/kmsg").write_text(f"skbulk: provokes {kind}\n", encoding="utf-8")


def kernel_log():
    """ What the kernel has said so far. """
    return cmd("dmesg").stdout


def ip_batch(lines, ns=None):
    """ Several ip commands in one process. """
    with tempfile.NamedTemporaryFile("w", suffix=".ip") as batch:
        batch.write("\n".join(lines) + "\n")
        batch.flush()
        ip(f"-batch {batch.name}", ns=ns)


def netdev_stat(ifname, name):
    """ A counter of struct rtnl_link_stats64. """
    path = f"/sys/class/net/{ifname}/statistics/{name}"
    return int(Path(path).read_text(encoding="utf-8"))


def driver_stats(ifname, host=None):
    """ The driver's own counters, as ethtool -S has them. """
    stats = {}
    said = cmd(f"ethtool -S {ifname}", host=host, timeout=60).stdout
    for line in said.splitlines():
        name, _, value = line.rpartition(":")
        if value.strip().isdigit():
            stats[name.strip()] = int(value)
    return stats


def insert_module(name, parameters=""):
    """ Load a module and what it depends on. """
    cmd(f"modprobe {name} {parameters}")


def remove_module(name):
    """ Remove a module; what it depends on stays. """
    cmd(f"rmmod {name}")


def pages_back():
    """
    Have each CPU receive something: an skb that another CPU has freed, and
    the page of the driver's pool that it holds, waits until then. If the
    interface goes away meanwhile, the kernel reports the pool as stalled.
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


class Task:
    """
    A function in a process of its own, in another namespace if one is named.
    What it returns must be representable in JSON.
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
        """ Wait for what the function returns. """
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
        """ Has it not ended yet? """
        return self.pid and not select.select([self._read], [], [], 0)[0]

    def kill(self, number=9):
        """ End it, whatever it does. """
        if self.pid:
            os.kill(self.pid, number)
            self._reap()

    def _reap(self):
        if self.pid:
            os.waitpid(self.pid, 0)
            os.close(self._read)
            self.pid = 0


def flood(ifname, limit, seconds):
    """
    Send frames past the queueing discipline until the interface goes down, or
    a number of them. Returns how many the driver has taken: the sender is told
    of the others.
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
