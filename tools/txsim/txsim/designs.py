# SPDX-License-Identifier: GPL-2.0
"""Ways in which many CPUs share a queue that only one of them can use at a time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Design:
    """How packets reach the resource behind the lock, and how many at a time."""

    # Its name in the benchmark's module.
    name: str
    label: str
    # None: each sender takes the lock. False: the sender that finds the list empty takes
    # the lock, then the list, once. True: the same, until the list is empty.
    combines: bool | None
    # A call and a doorbell per batch, not per packet.
    batched: bool
    # The resource is a ring with a doorbell, not a queue.
    ring: bool
    # There is a second lock, for senders that find the first one held.
    busylock: bool = False


LOCK = Design("lock", "spinlock", None, batched=False, ring=False, busylock=True)
LLIST = Design("llist", "llist, as in __dev_xmit_skb()", False, batched=False, ring=False)
COMBINER = Design("combiner", "combiner", True, batched=False, ring=False)
BATCH = Design("batch", "combiner, batch enqueue", True, batched=True, ring=False)
RING_LOCK = Design("ring-lock", "ring, TX queue lock", None, batched=False, ring=True)
RING = Design("ring", "ring, combiner, doorbell per batch", True, batched=True, ring=True)

DESIGNS = (LOCK, LLIST, COMBINER, BATCH, RING_LOCK, RING)
BY_NAME = {design.name: design for design in DESIGNS}
