# SPDX-License-Identifier: GPL-2.0
"""Texts about benchmarks: names, references, and sentences of RESULTS.md.

A benchmark of bulk memory has an entry here, and its two modules in
samples/rust/bulk_bench: bench_NAME.rs and reference/bench_NAME_reference.c.
"""

from __future__ import annotations

from collections.abc import Mapping

# The benchmarks of bulk memory, by name.
MEMORY: Mapping[str, str] = {
    "slab": "objects of a slab cache in bulk",
    "alf_queue": "a lockless queue against ptr_ring",
    "qmempool": "a memory pool against the slab allocator",
}

# The reference of each table.
REFERENCES = {
    "slab": "kmem_cache_*_bulk",
    "slab-sized": "kmem_cache_*_bulk",
    "slab-loop": "kmem_cache_alloc/free",
    "slab-single": "kmem_cache_alloc/free",
    "alf_queue": "ptr_ring",
    "alf_queue-2cpu": "ptr_ring",
    "qmempool": "kmem_cache_alloc/free",
    "qmempool-xcpu": "kmem_cache",
    "insn": "the C driver",
    "insn-option": "option off",
    "insn-senders": "the list in C",
    "forward": "the C driver",
    "forward-option": "option off",
    "forward-cost": "the C driver",
    "forward-option-cost": "option off",
    "forward-option-events": "option off",
    "forward-scaling": "the C driver",
    "window": "the C driver",
    "window-cost": "the C driver",
    "window-events": "the C driver",
    "tcp": "the C driver",
    "tcp-cost": "the C driver",
    "tcp-events": "the C driver",
    "xmit": "the list of __dev_xmit_skb()",
    "xmit-lock": "a spinlock",
    "xmit-ring": "TX queue lock",
    "xmit-qdisc": "the list in C",
}

# The sections of RESULTS.md in their order, by the name of the record.
TITLES: Mapping[str, str] = {
    "demo": "make demo: both drivers forward, emulated",
    "durations": "How long the commands take",
    "forward": "Forwarding, natively",
    "window": "Forwarding with few packets under way, and with many",
    "tcp": "TCP over a cable, natively",
    "insn": "Instructions per forwarded packet",
    "memory": "Bulk memory",
    "xmit": "Transmitting from many CPUs",
    "xmit-sim": "Transmitting, simulated",
    "selftests": "The kernel's own network selftests",
    "checks": "Checks of make test",
    "coverage": "Functions that the programs of make test enter",
    "notes": "Measured once, outside make bench",
}

# By table, or by record where it has one table: the comparison, and the limits of its meaning.
ABOUT: Mapping[str, str] = {
    "demo": "Compares both drivers in the same kernel and the same boot, in turn. Packets per "
    "second are those of an emulated CPU: they mean nothing as rates, and as a ratio only on a "
    "quiet machine. Instructions are counted by a QEMU plugin and hardly vary. The C driver calls "
    "`napi_consume_skb()` once per SKB, counted in a shorter run and scaled. The last column is "
    "Rust divided by C in each row, so that fewer instructions are below 1.",
    "durations": "Compares a run without any cache (build root, kernel and model are built) with "
    "one where nothing has changed; means nothing for another machine or package mirror.",
    "forward": "Compares the Rust driver with the C driver: time between two forwarded packets. "
    "In the rows transmit, pktgen sends them past the qdisc; in a burst, one packet so many times, "
    "and one doorbell at its end. "
    "Means nothing where the guest waits for the model or for another virtual CPU, as in the rows "
    "with 2 queues on a machine with two processors.",
    "forward-cost": "Compares the drivers by processor time of the guest per packet, as the host "
    "counts it: waiting for the model costs nothing here. In the rows UDP sink, a process "
    "receives the packets from a socket. Means nothing for latency.",
    "forward-option": "Compares a driver with itself, option on against off. Means nothing where "
    "the spread includes 1.",
    "forward-option-cost": "The same by processor time. A CPU that is done with its packets sooner "
    "waits for more, and an interrupt takes some 15 us of it in User-Mode Linux: an option that "
    "saves work can cost time that way (forward-option-events). So the rows with conntrack tell "
    "most of bulk free: there the CPU has no time to wait. Means nothing where the spread includes "
    "1.",
    "forward-option-events": "Interrupts of both ports and other events per 1000 packets in these "
    "measurements: an option that changes their number changes the processor time by that. Means "
    "nothing by itself.",
    "forward-scaling": "Compares the slowdown of 64 flows on two queue pairs against one flow. "
    "Means little on two processors, where it mostly reflects contention with the model.",
    "window": "Compares the drivers with a number of packets under way: up to 256 the sender waits "
    "for answers, as TCP does; beyond, rings and queues are full. Time between two forwarded "
    "packets. Means nothing for a stream that does not wait.",
    "window-cost": "The same by processor time of the guest. Means nothing for latency.",
    "window-events": "Losses, packets that the queueing discipline dropped or got back from a full "
    "ring, interrupts of both ports, and doorbells, per 1000 packets. The C driver rings one "
    "doorbell per packet, and does not count them. Means nothing for a card with other rings.",
    "tcp": "Compares the drivers at both ends of a cable between two ports of the model: payload "
    "that arrives, in Mbit/s, on warm connections; reverse is from the peer to the first port. "
    "Writes and windows are those of the sockets: TCP makes the window smaller by the memory that "
    "received frames take, half a page each. Delay is "
    "netem at the sender, and UDP waits for reports of the receiver. Both ends share one "
    "processor, so the rates are those of its work, and mean nothing for a link.",
    "tcp-cost": "The same by processor time of the guest, both ends together, in nanoseconds per "
    "KiB. Means nothing for latency.",
    "tcp-events": "Segments (or datagrams) that were sent again, frames lost because a port had "
    "no receive buffer, and interrupts of both ports, per MiB. Means nothing for a card with other "
    "rings.",
    "insn": "Compares instructions per forwarded packet, counted in an emulated processor. The row "
    "memory has those that allocate, free and recycle SKBs and receive buffers, wherever "
    "they are; with the Rust driver, they also set the fields of a received SKB. With the C "
    "driver, they vary with the packets that pile up until caches overflow. In the rows "
    "transmit, pktgen sends packets of its own past the qdisc, and its code is not counted. "
    "Means nothing for time: an instruction is no nanosecond.",
    "insn-option": "Compares the Rust driver with itself, option on against off, in instructions. "
    "Means nothing for time: a CPU that is done sooner is interrupted more often "
    "(forward-option-cost).",
    "xmit": "Compares the combiner with the list of `__dev_xmit_skb()`, both in front of a sink of "
    "fixed cost. Means nothing if the senders' CPUs also wait for the host's other work.",
    "insn-senders": "Compares the list in Rust with the list in C, by instructions per packet that "
    "all processors execute, pktgen's included; rows with waiting have those of processors that "
    "wait for a lock. Means nothing for time, nor if there are fewer processors than senders.",
    "xmit-lock": "Compares lists with a spinlock in front of the same sink. Means nothing in the "
    "same case.",
    "xmit-ring": "Compares the combiner with the TX queue lock in front of a simulated ring; rows "
    "with doorbells count them per 1000 packets. Means nothing in the same case.",
    "xmit-qdisc": "Compares the list in Rust with the list in C, in front of a dummy device. Rows "
    "with rings and udp mean little: system calls are the limit on two CPUs, and not queues. With "
    "udp batches, one call sends 256 datagrams.",
    "slab": "Compares `Batch` with `kmem_cache_*_bulk()`, allocation and free of 232-byte objects. "
    "The plain cache has sheaves of the default capacity. Means nothing for caches that other CPUs "
    "free to.",
    "slab-sized": "The same, with sheaves as large as those of `Batch`: the cost of the type. "
    "Means nothing in the same case.",
    "slab-loop": "Compares `Batch` with a loop of single calls. Means nothing for caches that "
    "other CPUs free to.",
    "slab-single": "Compares `Cache::alloc()` with `kmem_cache_alloc()`, one object at a time. "
    "Means nothing for batches.",
    "alf_queue": "Compares queues with `ptr_ring` and its locks, put in and taken out on one CPU. "
    "Means nothing for contention.",
    "alf_queue-2cpu": "The same with producers and consumers on two CPUs. Means nothing if the two "
    "virtual CPUs do not run at the same time.",
    "alf_queue-unlocked": "`ptr_ring` without its locks, for one user on each side, to be read "
    "beside the rows of spsc. Means nothing for contention.",
    "qmempool": "Compares pools with single calls of `kmem_cache`, and with bulk calls above one "
    "object; process context shows when not to use a pool. Means nothing for objects that another "
    "CPU frees.",
    "qmempool-xcpu": "Compares pools with `kmem_cache` where another CPU frees. In User-Mode Linux "
    "the reference pays for interrupts that are signals of the host: the direction counts, and the "
    "size means nothing.",
    "seed": "Compares the rates that commit 100dfa74ca tells after its change with those that the "
    "simulation predicts from the rates before. Rests on estimates made with all four rates known: "
    "it checks that the model has the right parts, and means nothing as a proof of a number.",
    "sensitivity": "The same with one estimate wrong by a quarter and the transfer times fitted "
    "anew. Means nothing for several estimates that are wrong at once.",
    "selftests": "Compares the drivers by the cases of `drivers/net` and `drivers/net/hw` that "
    "pass, fail and are skipped on a port of the modelled card. Programs that need what User-Mode "
    "Linux lacks, as interrupts for each processor, run in QEMU. Means nothing for hardware.",
    "coverage": "Functions of the sources, by folder, and those that the end-to-end programs of "
    "`make test` enter in e2e-uml and e2e-kx4 (`make test COVERAGE=1`). A generic function is one, "
    "whatever its types; closures and tests in the kernel do not count. Functions that only run in "
    "the compiler are never entered. Means nothing about what the programs check.",
    "checks": "Counts the checks that passed by suite, in the run of that commit; a skipped check "
    "is not counted, nor is a suite that runs only on request. Means nothing about what they "
    "check.",
}
