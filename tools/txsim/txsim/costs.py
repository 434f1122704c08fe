# SPDX-License-Identifier: GPL-2.0
"""Costs in the simulation, in nanoseconds, of two machines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Costs:
    """The costs of a machine, and of the resource behind the lock.

    Lines are counted by the time that the CPU waits: two fetched at the same time are
    one. So they need not be integers.

    The defaults are assumptions until the benchmark has measured this machine: a core
    of an AMD EPYC (Zen 3, one L3 for all) at about 3 GHz. The times of a transfer
    within an L3 and of a locked operation are common results of microbenchmarks for
    that generation, 20 cycles for an atomic operation; the sink's own costs are the
    defaults of the benchmark's parameters.
    """

    # A cache line from one CPU to another one.
    transfer: float = 35.0
    # An atomic operation on a local line.
    atomic: float = 6.0
    # A sender's work on a packet before the transmission.
    think: float = 35.0
    # Taking and releasing an uncontended lock.
    lock: float = 10.0
    # Adding a packet to a list and removing it, apart from atomics.
    listed: float = 4.0
    # Behind the lock: a call; a packet in it; a doorbell.
    call: float = 17.0
    packet: float = 35.0
    doorbell: float = 70.0
    # Lines that change hands when a lock is passed on.
    handoff_lines: float = 2.0
    # The same for the second lock of the old design under contention.
    busylock_lines: float = 0.0
    # Lines behind the lock that each new holder needs.
    state_lines: float = 2.0
    # Lines of a packet that another CPU processes.
    packet_lines: float = 1.0
    # Packets that a sender may have in flight before it sleeps.
    window: int = 256
    # The packets of a combiner before it hands over.
    bound: int = 64
    # The maximum length of the list (net.core.qdisc_max_burst).
    limit: int = 1000

    def with_times(self, **times: Any) -> Costs:
        """The same with other times, by name."""
        return replace(self, **times)


# The machine of commit 100dfa74ca (two sockets of Xeon 6985P-C, 480 hyperthreads)
# and fq in front of a 100 Gbit/s card. Values that are not in that commit are estimates:
# - the work on a packet, from enqueue to descriptor, is some 1,200 cycles at 3.3 GHz;
# - behind the lock, alternating CPUs need the qdisc's counters, fq's state and the
#   ring's: three waits;
# - a lock is passed on by a store that another CPU waits for, and then the word
#   itself is fetched: two waits. The old design passes two locks on, and the second
#   one bounces between CPUs that enqueue and those that dequeue: half a wait more;
# - of a packet: three lines of the sk_buff and one of its data, partly prefetched;
# - a sender's own work: 110 busy CPUs sent 29 Mpps, 30 of them served the queues;
#   the rest is 2.7 us per packet, including waits for lines.
# The transfer time depends on the placement of the senders: it is fitted, see seed.py.
SEED = Costs(
    transfer=100.0,
    think=2000.0,
    lock=15.0,
    listed=5.0,
    call=30.0,
    packet=330.0,
    doorbell=0.0,
    busylock_lines=2.5,
    state_lines=3.0,
    packet_lines=3.3,
)
