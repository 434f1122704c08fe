//@ error: E0053 method `dequeue` has an incompatible type for trait
// SPDX-License-Identifier: GPL-2.0

//! One context at a time dequeues packets, whatever the discipline declares.

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
            .map_err(|skb| Rejected::new(skb, QdiscDropReason::OverLimit))
    }

    //~ fn dequeue(_: &mut Self::Output) -> Option<QueuedSkBuff> {
    fn dequeue(_: &Self::Output) -> Option<QueuedSkBuff> {
        None
    }

    fn peek(output: &mut Self::Output) -> Option<&QueuedSkBuff> {
        output.peek()
    }
}
