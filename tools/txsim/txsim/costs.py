# SPDX-License-Identifier: GPL-2.0
"""Costs in the simulation, in nanoseconds, of two machines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Costs:
    """The costs of a machine, and of what is behind the lock.

    Lines are counted as the CPU waits for them: two that it fetches at the same
    time are one. So they need not be whole numbers.

    The defaults are assumed until the benchmark has measured this machine: a core of an
    AMD EPYC (Zen 3, one L3 for all) at about 3 GHz. A transfer within an L3 and a locked
    operation are what microbenchmarks of that generation commonly give, 20 cycles for
    an atomic operation; the sink's own costs are the defaults of the benchmark's
    parameters.
    """

    # A cache line from one CPU to another one.
    transfer: float = 35.0
    # An atomic operation on a line that is here.
    atomic: float = 6.0
    # What a sender does for a packet before it transmits it.
    think: float = 35.0
    # To take and release a lock that no other CPU wants.
    lock: float = 10.0
    # To put a packet on a list and to take it off again, apart from atomics.
    listed: float = 4.0
    # A call of what is behind the lock; a packet in it; a doorbell.
    call: float = 17.0
    packet: float = 35.0
    doorbell: float = 70.0
    # Lines that change hands when a lock is passed on.
    handoff_lines: float = 2.0
    # Likewise for the second lock that the old way takes under contention.
    busylock_lines: float = 0.0
    # Lines behind the lock that each new holder needs.
    state_lines: float = 2.0
    # Lines of a packet that another CPU works on.
    packet_lines: float = 1.0
    # Packets that a sender may have on their way before it sleeps.
    window: int = 256
    # After how many packets a combiner hands over.
    bound: int = 64
    # Length of the list from which on packets are dropped (net.core.qdisc_max_burst).
    limit: int = 1000

    def with_times(self, **times: Any) -> Costs:
        """The same with other times, by name."""
        return replace(self, **times)


# The machine of commit 100dfa74ca (two sockets of Xeon 6985P-C, 480 hyperthreads)
# and fq in front of a 100 Gbit/s card. What is not in that commit is an estimate:
# - the work on a packet, enqueue to descriptor, is some 1,200 cycles at 3.3 GHz;
# - behind the lock, CPUs that take turns need the qdisc's counters, fq's state and
#   the ring's: three times waiting;
# - a lock is passed on by a store that another CPU waits for, and the word itself
#   is fetched then: two. The old way passes two locks on, and the second one goes
#   to and fro between CPUs that add packets and those that take them out: half a
#   time more;
# - of a packet: three lines of the sk_buff and one of its data, prefetched in part;
# - a sender's own work: 110 busy CPUs made 29 Mpps, 30 of them worked the queues
#   off; the rest is 2.7 us per packet, waiting on lines included.
# How long a transfer takes depends on where senders ran: it is fitted, see seed.py.
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
