# SPDX-License-Identifier: GPL-2.0

""" AF_XDP sockets, without a library. """

import contextlib
import ctypes
import errno
import mmap
import os
import select
import socket
import struct
import subprocess
import threading
import time

_AF_XDP, _SOL_XDP = 44, 283
_MMAP_OFFSETS, _RX_RING, _TX_RING, _UMEM_REG = 1, 2, 3, 4
_FILL, _COMPLETION, _STATISTICS, _OPTIONS = 5, 6, 7, 8
# Where the rings are in the file of the socket.
_RX_PAGE, _TX_PAGE, _FILL_PAGE, _COMPLETION_PAGE = 0, 0x80000000, 0x100000000, 0x180000000
_IS_ZEROCOPY, _NEEDS_WAKEUP = 1, 1
_SO_BUSY_POLL, _SO_PREFER_BUSY_POLL, _SO_BUSY_POLL_BUDGET = 46, 69, 70
COPY, ZEROCOPY, NEED_WAKEUP, SEVERAL = 1 << 1, 1 << 2, 1 << 3, 1 << 4
# The frame goes on with the next descriptor; there are metadata in front of it.
_GOES_ON, _HAS_METADATA = 1, 2
_METADATA = struct.Struct("=QHHIQ")
_HAS_METADATA_LEN, _CHECKSUM = 1 << 2, 1 << 1
# The addresses of IPv4 in a frame, its UDP header, and where in that the checksum is.
_ADDRESSES, _UDP, _UDP_CHECKSUM = 26, 34, 6
_ENTRIES = 256
_PIDFD_GETFD = 438


class _Ring:
    """ A ring that is shared with the kernel, of items of one format. """

    def __init__(self, sock, page, offsets, item):
        self._producer, self._consumer, self._items, self._flags = offsets
        self._item = struct.Struct(item)
        self._map = mmap.mmap(sock.fileno(), self._items + _ENTRIES * self._item.size,
                              mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=page)

    # The kernel accesses the indices at the same time. pack_into() writes zeroes first.
    def _get(self, at):
        return ctypes.c_uint32.from_buffer(self._map, at).value

    def _set(self, at, index):
        ctypes.c_uint32.from_buffer(self._map, at).value = index

    def _place(self, index):
        return self._items + index % _ENTRIES * self._item.size

    def needs_wakeup(self):
        """ Return whether the kernel waits for a system call. """
        return bool(self._get(self._flags) & _NEEDS_WAKEUP)

    def room(self):
        """ Return the number of items for which there is room. """
        return _ENTRIES - (self._get(self._producer) - self._get(self._consumer)) % (1 << 32)

    def put(self, items):
        """ Give items to the kernel, for which there has to be room. """
        index = self._get(self._producer)
        for item in items:
            self._item.pack_into(self._map, self._place(index), *item)
            index += 1
        self._set(self._producer, index)

    def take(self):
        """ Take all items that the kernel has put there. """
        first, count = self._get(self._consumer), _ENTRIES - self.room()
        items = [self._item.unpack_from(self._map, self._place(first + number))
                 for number in range(count)]
        self._set(self._consumer, first + count)
        return items

    def close(self):
        """ Unmap the ring. """
        self._map.close()


class XdpSocket:
    """ A socket that is bound to a queue, with memory of its own, and chunks given to receive. """

    def __init__(self, ifindex, queue, flags, chunk=2048, given=_ENTRIES, asks=False):
        self.chunk, self.given, self.flags = chunk, given, flags
        # Received frames go back by descriptors of so many bytes, of which these are not the first
        # ones of a chunk.
        self.cut, self._within = 0, set()
        chunks = given + _ENTRIES
        self._memory = mmap.mmap(-1, chunk * chunks)
        self._sock = socket.socket(_AF_XDP, socket.SOCK_RAW)
        first = ctypes.c_char.from_buffer(self._memory)
        # With @asks, what is reflected leaves its checksum to the card.
        self._asks = asks
        metadata = (_HAS_METADATA_LEN, _METADATA.size) if asks else (0, 0)
        self._set(_UMEM_REG, struct.pack("=QQIIII", ctypes.addressof(first), chunk * chunks, chunk,
                                         0, *metadata))
        del first
        for ring in (_FILL, _COMPLETION, _RX_RING, _TX_RING):
            self._set(ring, struct.pack("=I", _ENTRIES))
        said = struct.unpack("=16Q", self._sock.getsockopt(_SOL_XDP, _MMAP_OFFSETS, 128))
        offsets = [said[first:first + 4] for first in range(0, 16, 4)]
        self.rx = _Ring(self._sock, _RX_PAGE, offsets[0], "=QII")
        self.tx = _Ring(self._sock, _TX_PAGE, offsets[1], "=QII")
        self.fill = _Ring(self._sock, _FILL_PAGE, offsets[2], "=Q")
        self.completion = _Ring(self._sock, _COMPLETION_PAGE, offsets[3], "=Q")
        self.fill.put((number * chunk, ) for number in range(given))
        # The others are for frames of our own.
        self.free = [number * chunk for number in range(given, chunks)]
        self._bind(ifindex, queue)

    def _set(self, option, value):
        self._sock.setsockopt(_SOL_XDP, option, value)

    def _bind(self, ifindex, queue):
        libc = ctypes.CDLL(None, use_errno=True)
        address = struct.pack("=HHIII", _AF_XDP, self.flags, ifindex, queue, 0)
        end = time.monotonic() + 20
        # The one before may not have gone yet.
        while libc.bind(self._sock.fileno(), address, len(address)) < 0:
            number = ctypes.get_errno()
            if number != errno.EBUSY or time.monotonic() > end:
                self.close()
                raise OSError(number, f"bind(): {os.strerror(number)}")
            time.sleep(0.01)

    def fileno(self):
        """ Return the file descriptor. """
        return self._sock.fileno()

    def is_zerocopy(self):
        """ Return whether the NIC uses our memory. """
        said = self._sock.getsockopt(_SOL_XDP, _OPTIONS, 4)
        return bool(struct.unpack("=I", said)[0] & _IS_ZEROCOPY)

    def statistics(self):
        """ Return the numbers of frames that were lost, and why. """
        said = struct.unpack("=6Q", self._sock.getsockopt(_SOL_XDP, _STATISTICS, 48))
        return dict(zip(("rx_dropped", "rx_invalid", "tx_invalid", "rx_ring_full", "rx_fill_empty",
                         "tx_empty"), said, strict=True))

    def poll_busily(self):
        """ Have system calls poll the queue, and not its interrupt. """
        for option, value in ((_SO_PREFER_BUSY_POLL, 1), (_SO_BUSY_POLL, 20),
                              (_SO_BUSY_POLL_BUDGET, 64)):
            self._sock.setsockopt(socket.SOL_SOCKET, option, value)

    def call(self):
        """ Ask the kernel to send. """
        self._sock.send(b"", socket.MSG_DONTWAIT)

    def kick(self):
        """ The same, whatever it answers. """
        with contextlib.suppress(BlockingIOError, OSError):
            self.call()

    def wait(self, seconds=0.02):
        """ Wait until there is a frame, or until the time is over. """
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        poll.poll(seconds * 1000)

    def frame(self, at, length):
        """ Return the bytes of a frame. """
        return self._memory[at:at + length]

    def write(self, at, data):
        """ Write a frame. """
        self._memory[at:at + len(data)] = data

    def ask(self, at, start, offset):
        """ Ask for a checksum, with a frame. Return the options that its descriptor needs. """
        self.write(at - _METADATA.size, _METADATA.pack(_CHECKSUM, start, offset, 0, 0))
        return _HAS_METADATA

    def _ask_udp(self, at):
        """ As ask(), of a frame of UDP over IPv4, whose checksum is that of the pseudo header. """
        header = self.frame(at, _UDP + 8)
        words = struct.unpack("!4H", header[_ADDRESSES:_UDP])
        total = sum(words) + 17 + struct.unpack("!H", header[_UDP + 4:_UDP + 6])[0]
        while total > 0xffff:
            total = (total & 0xffff) + (total >> 16)
        self.write(at + _UDP + _UDP_CHECKSUM, struct.pack("!H", total))
        return self.ask(at, _UDP, _UDP_CHECKSUM)

    def receive(self, seconds=10):
        """ Return the bytes of the next frames, whose memory goes back to the kernel. """
        return [b"".join(parts) for parts in self.receive_parts(seconds)]

    def receive_parts(self, seconds=10):
        """ As receive(), with the bytes in each buffer of a frame. """
        end = time.monotonic() + seconds
        while not (items := self.rx.take()) and time.monotonic() < end:
            self.wait()
        found, parts = [], []
        for at, length, options in items:
            parts.append(self.frame(at, length))
            if not options & _GOES_ON:
                found.append(parts)
                parts = []
        self.fill.put((at, ) for at, _, _ in items)
        return found

    def send(self, frames, seconds=10):
        """ Send frames, and wait until all of them have been sent. """
        return self.send_parts(([data] for data in frames), seconds)

    def send_parts(self, frames, seconds=10):
        """ As send(), of frames each of which is in several buffers. """
        items = []
        for parts in frames:
            for left, data in zip(reversed(range(len(parts))), parts, strict=True):
                at = self.free.pop()
                self.write(at, data)
                items.append((at, len(data), _GOES_ON if left else 0))
        self.tx.put(items)
        places = [at for at, _, _ in items]
        end, back = time.monotonic() + seconds, []
        while len(back) < len(places) and time.monotonic() < end:
            self.kick()
            back += [at for at, in self.completion.take()]
            time.sleep(0.001)
        self.free += back
        return back == places

    def _cut(self, at, length, goes_on, asked):
        """ Return the descriptors of a buffer, whose bytes may be sent by several of them. """
        while self.cut and length > self.cut:
            yield at, self.cut, _GOES_ON | asked
            at, length, asked = at + self.cut, length - self.cut, 0
            self._within.add(at)
        yield at, length, goes_on | asked

    def reflect(self):
        """ Send all frames back that have come, and give memory back. Return their number. """
        self.fill.put((at, ) for at, in self.completion.take() if at not in self._within)
        items, begins = self.rx.take(), True
        for at, length, options in items:
            goes_on = options & _GOES_ON
            asked = self._ask_udp(at) if self._asks and begins else 0
            self.tx.put(self._cut(at, length, goes_on, asked))
            begins = not goes_on
        if not self.flags & NEED_WAKEUP or self.tx.needs_wakeup():
            self.kick()
        return len(items)

    def close(self):
        """ Unbind and close the socket. """
        self._sock.close()
        for ring in (self.rx, self.tx, self.fill, self.completion):
            ring.close()


class LibrarySocket:
    """
    A socket of a process that uses a library for AF_XDP which is not ours, xdpilone, and sends back
    what the queue receives.
    """

    PROGRAM = "xskreflect"

    def __init__(self, ifname, queue, flags):
        self._process = subprocess.Popen(
            [self.PROGRAM, ifname, str(queue), str(flags)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        number = int(self._process.stdout.readline())
        process = os.pidfd_open(self._process.pid)
        self._file = ctypes.CDLL(None).syscall(_PIDFD_GETFD, process, number, 0)
        os.close(process)

    def fileno(self):
        """ Return a file descriptor of this process. """
        return self._file

    def close(self):
        """ End the process, and close the socket. """
        os.close(self._file)
        self._process.communicate(timeout=20)


class Reflector:
    """ Sockets that send back what they receive, in a thread. """

    def __init__(self, sockets):
        self.sockets, self._over, self.error = sockets, threading.Event(), None
        self.frames = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        poll = select.poll()
        for sock in self.sockets:
            poll.register(sock, select.POLLIN)
        try:
            while not self._over.is_set():
                if not sum(sock.reflect() for sock in self.sockets):
                    poll.poll(20)
        except Exception as error:  # stop() raises it
            self.error = error

    def stop(self):
        """ End the thread. """
        self._over.set()
        self._thread.join(20)
        if self.error:
            raise self.error


def bound(ifindex, queues, flags, **kwargs):
    """ Bind a socket to each queue, all of them or none. """
    sockets = []
    try:
        for queue in range(queues):
            sockets.append(XdpSocket(ifindex, queue, flags, **kwargs))
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    return sockets
