# SPDX-License-Identifier: GPL-2.0
"""Reports to a guest its processor time.

A guest of User-Mode Linux has a clock, but not the host's accounting of its
threads: its clock goes on while other processes run. A serial line answers each
line from the guest with nanoseconds of processor time.
"""

import ctypes
import os
import socket
import threading
import time


def processor_time(pid: int) -> int:
    """Nanoseconds that all threads of a process have run, up to now."""
    clock = ctypes.c_int()
    # Returns the error instead of setting errno.
    error = ctypes.CDLL(None).clock_getcpuclockid(ctypes.c_int(pid), ctypes.byref(clock))
    if error:
        raise OSError(error, f"{os.strerror(error)}: the processor time of process {pid}")
    return time.clock_gettime_ns(clock.value)


class UsageLine:
    """The two ends of the line; the guest inherits one of them."""

    def __init__(self) -> None:
        self._here, self._guest = socket.socketpair()
        self._thread: threading.Thread | None = None
        self.descriptor = self._guest.fileno()

    def answer_for(self, pid: int) -> None:
        """Answer from now on, for this process, until the line is closed."""
        self._guest.close()
        self._thread = threading.Thread(target=self._serve, args=(pid,), daemon=True)
        self._thread.start()

    def _serve(self, pid: int) -> None:
        try:
            with self._here.makefile("rb") as questions:
                while questions.readline(80):
                    self._here.sendall(b"%d\n" % processor_time(pid))
        except OSError:
            # The guest has ended, or is about to.
            return

    def close(self) -> None:
        """Close both ends, which ends the answers."""
        self._guest.close()
        try:
            self._here.shutdown(socket.SHUT_RDWR)
        except OSError:
            # It is closed already.
            pass
        if self._thread:
            self._thread.join()
        self._here.close()
