//@ error: E0277 cannot be shared between threads safely
// SPDX-License-Identifier: GPL-2.0

//! Many CPUs enqueue packets at the same time.

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
        Consumer, //
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
    //~ type Input = alf_queue::SharedProducer<QueuedSkBuff>;
    type Input = alf_queue::Producer<QueuedSkBuff>;
    type Output = Consumer<QueuedSkBuff>;

    fn parse(_: u32, _: Option<Options<'_>>, _: &mut ExtAck<'_>) -> Result {
        Ok(())
    }

    fn init((): ()) -> Result<(Self::Input, Self::Output)> {
        Err(ENOMEM)
    }

    fn enqueue(_: &Self::Input, _: Softirq<'_>, skb: QueuedSkBuff) -> Result<(), Rejected> {
        Err(Rejected::new(skb, QdiscDropReason::Generic))
    }

    fn dequeue(output: &mut Self::Output) -> Option<QueuedSkBuff> {
        output.pop()
    }

    fn peek(output: &mut Self::Output) -> Option<&QueuedSkBuff> {
        output.peek()
    }
}
