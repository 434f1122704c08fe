//@ error: E0382 borrow of moved value: `skb`
// SPDX-License-Identifier: GPL-2.0

//! A packet in the queue belongs to the consumer, which may have dequeued it already.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        sched::{
            ExtAck,
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
        Consumer,
        SharedProducer, //
    }, //
};

kernel::module_qdisc! {
    type: Discipline,
    name: "discipline",
    authors: ["The skbulk authors"],
    description: "Misused",
    license: "GPL",
}

struct Discipline;

#[vtable]
impl Qdisc for Discipline {
    const NAME: &'static CStr = c"discipline";

    type Config = ();
    type Input = SharedProducer<QueuedSkBuff>;
    type Output = Consumer<QueuedSkBuff>;

    fn parse(_: u32, _: Option<Options<'_>>, _: &mut ExtAck<'_>) -> Result {
        Ok(())
    }

    fn init((): ()) -> Result<(Self::Input, Self::Output)> {
        alf_queue::mpsc(8, GFP_KERNEL)
    }

    fn enqueue(input: &Self::Input, cx: Softirq<'_>, skb: QueuedSkBuff) -> Result<(), Rejected> {
        input
            .push(cx, skb)
            .map_err(|skb| Rejected::new(skb, QdiscDropReason::OverLimit))?;
        //~
        let _ = skb.len();
        Ok(())
    }

    fn dequeue(output: &mut Self::Output) -> Option<QueuedSkBuff> {
        output.pop()
    }

    fn peek(output: &mut Self::Output) -> Option<&QueuedSkBuff> {
        output.peek()
    }
}
