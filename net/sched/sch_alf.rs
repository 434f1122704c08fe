// SPDX-License-Identifier: GPL-2.0

//! Lockless FIFO on an array-based queue.
//!
//! Any number of CPUs enqueue packets, with one atomic operation each. The CPU that runs the qdisc
//! dequeues them in batches. See `Documentation/networking/sch_alf.rst`.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        sched::{
            Dump,
            ExtAck,
            FifoOptions,
            Options,
            Qdisc,
            QdiscDropReason,
            QueuedSkBuff,
            Rejected, //
        }, //
    },
    prelude::*,
    softirq::Softirq,
    sync::alf_queue::{
        self,
        Chunk,
        Consumer,
        SharedProducer, //
    }, //
};

kernel::module_qdisc! {
    type: Alf,
    name: "sch_alf",
    authors: ["The skbulk authors"],
    description: "Lockless FIFO queueing discipline",
    license: "GPL",
    alias: ["net-sch-alf"],
}

/// Maximum limit, in packets: the slots take 8 MiB.
const MAX_LIMIT: u32 = 1 << 20;

/// The most packets that are taken out of the queue at once.
const BATCH: usize = 32;

/// The capacity of the queue.
#[derive(Clone, Copy)]
struct Limit {
    /// A power of two, at most [`MAX_LIMIT`].
    slots: u32,
    /// Set by the user, so it does not follow the device's `tx_queue_len`.
    given: bool,
}

impl Limit {
    /// Returns the default limit of a device.
    fn of_device(tx_queue_len: u32) -> Option<Self> {
        let packets = tx_queue_len.min(MAX_LIMIT);

        (packets != 0).then(|| Self {
            slots: packets.next_power_of_two(),
            given: false,
        })
    }
}

/// The enqueueing side.
struct Input {
    queue: SharedProducer<QueuedSkBuff>,
    given: bool,
}

/// The dequeueing side.
struct Output {
    queue: Consumer<QueuedSkBuff>,
    /// Packets already taken out of the queue, the next one last.
    ready: Chunk<QueuedSkBuff, BATCH>,
}

impl Output {
    /// Takes a batch out of the queue if no packets are ready.
    #[inline]
    fn refill(&mut self) {
        if self.ready.is_empty() && self.queue.pop_bulk(&mut self.ready, BATCH) > 1 {
            self.ready.as_mut_slice().reverse();
        }
    }
}

/// Makes a queue for another limit, unless it is the same.
fn resize(input: &Input, limit: Limit) -> Result<Option<(Input, Output)>> {
    if input.queue.capacity() == limit.slots as usize && input.given == limit.given {
        return Ok(None);
    }
    Alf::init(limit).map(Some)
}

struct Alf;

#[vtable]
impl Qdisc for Alf {
    const NAME: &'static CStr = c"alf";
    const CAN_BYPASS: bool = true;

    type Config = Limit;
    type Input = Input;
    type Output = Output;

    fn parse(
        tx_queue_len: u32,
        options: Option<Options<'_>>,
        extack: &mut ExtAck<'_>,
    ) -> Result<Limit> {
        let Some(options) = options else {
            return Limit::of_device(tx_queue_len).ok_or_else(|| {
                extack.refuse(
                    EINVAL,
                    fmt!("the device has no transmit queue length: give a limit"),
                )
            });
        };

        match FifoOptions::parse(options, extack)?.limit() {
            0 => Err(extack.refuse(EINVAL, fmt!("limit 0: no packet could wait"))),
            packets @ 1..=MAX_LIMIT => Ok(Limit {
                slots: packets.next_power_of_two(),
                given: true,
            }),
            packets => {
                Err(extack.refuse(EINVAL, fmt!("limit {packets}: must be at most {MAX_LIMIT}")))
            }
        }
    }

    fn init(limit: Limit) -> Result<(Input, Output)> {
        let (producer, consumer) = alf_queue::mpsc(limit.slots as usize, GFP_KERNEL)?;

        Ok((
            Input {
                queue: producer,
                given: limit.given,
            },
            Output {
                queue: consumer,
                ready: Chunk::new(),
            },
        ))
    }

    #[inline]
    fn enqueue(input: &Input, cx: Softirq<'_>, skb: QueuedSkBuff) -> Result<(), Rejected> {
        input
            .queue
            .push(cx, skb)
            .map_err(|skb| Rejected::new(skb, QdiscDropReason::OverLimit))
    }

    #[inline]
    fn dequeue(output: &mut Output) -> Option<QueuedSkBuff> {
        output.refill();
        output.ready.pop()
    }

    fn peek(output: &mut Output) -> Option<&QueuedSkBuff> {
        output.refill();
        output.ready.as_slice().last()
    }

    fn change(input: &Input, limit: Limit) -> Result<Option<(Input, Output)>> {
        resize(input, limit)
    }

    fn change_tx_queue_len(input: &Input, tx_queue_len: u32) -> Result<Option<(Input, Output)>> {
        if input.given {
            return Ok(None);
        }
        resize(input, Limit::of_device(tx_queue_len).ok_or(EINVAL)?)
    }

    fn dump(input: &Input, dump: &mut Dump<'_>) -> Result {
        // CAST: At most `MAX_LIMIT`.
        dump.options(&FifoOptions::new(input.queue.capacity() as u32))
    }
}
