//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A discipline links the packets that it drops. Other references to them share the links, so they
//! have to be packets that the core has given to it.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        sched::{
            Drops,
            ExtAck,
            Options,
            Qdisc,
            QdiscDropReason,
            QueuedSkBuff,
            Rejected, //
        },
        skbuff::SkBuff, //
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

    fn dequeue(output: &mut Self::Output) -> Option<QueuedSkBuff> {
        output.pop()
    }

    fn peek(output: &mut Self::Output) -> Option<&QueuedSkBuff> {
        output.peek()
    }

    fn reset(_: &mut Self::Output, drops: &mut Drops) {
        let kept: Option<SkBuff> = None;

        if let Some(skb) = kept {
            //~ drop((skb, drops));
            drops.push(skb);
        }
    }
}
