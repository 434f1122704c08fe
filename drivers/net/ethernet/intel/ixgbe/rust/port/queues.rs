// SPDX-License-Identifier: GPL-2.0

//! The restart of one receive queue, while the others go on.

use kernel::{
    net::{
        device::{
            queue_mgmt::{
                QueueMgmtOps,
                RxQueueAlloc, //
            },
            Device,
            Feature,
            OpsLocked, //
        },
        napi::{
            RxClosed,
            RxStopped, //
        }, //
    },
    prelude::*, //
};

use crate::{
    flow,
    regs::queue::Pair,
    rx::{
        Offloads,
        RxRing, //
    }, //
};

use super::{
    state::Running,
    Poller,
    Port,
    PortDriver, //
};

impl QueueMgmtOps for PortDriver {
    type Rx<'bound> = RxRing;

    fn rx<'a, 'bound: 'a>(poller: &'a mut Poller<'bound>) -> &'a mut RxRing {
        &mut poller.rx
    }

    fn alloc_rx<'bound>(cx: &mut RxQueueAlloc<'_, 'bound, Self>) -> Result<RxRing> {
        let port = cx.data().get_ref();
        // Buffers of another sort come with a restart of the port.
        let Running { lro, limit, .. } = *port.running.get(cx.ops_lock());

        RxRing::new(
            port.pdev.as_ref(),
            cx.napi(),
            Pair::new(cx.queue()).ok_or(EINVAL)?,
            cx.ring_sizes().rx,
            limit,
            Offloads::of(cx.device().features()).with_lro(lro),
            &port.program,
            true,
            &port.stats.pair(cx.queue())?.poll,
        )
    }

    fn stop_rx<'bound>(
        port: Pin<&Port<'bound>>,
        _netdev: &Device,
        queue: u16,
        rx: &mut RxRing,
        _lock: &mut OpsLocked<'bound>,
    ) -> Result {
        rx.stop(&port.bar, Pair::new(queue).ok_or(EINVAL)?)
    }

    fn start_rx<'bound>(
        port: Pin<&Port<'bound>>,
        netdev: &Device,
        stopped: RxStopped<'_>,
        queue: u16,
        rx: &mut RxRing,
        lock: &mut OpsLocked<'bound>,
    ) -> Result {
        let counters = &port.stats.pair(queue)?.poll;
        let drop = flow::drops(*port.pause.get(lock), port.pairs(lock));
        let strips = netdev.features().contains(Feature::VlanStrip);

        // It may have been in use before.
        let registers = rx.rewind(stopped, strips, counters)?;
        let running = port.running.get_mut(lock);
        if !registers.takes(running.limit) {
            // It was made for another limit, which does not happen.
            return Err(EINVAL);
        }
        if let Some(longest) = running.longest.get_mut(usize::from(queue)) {
            *longest = registers.longest_of_users();
        }
        registers.start(port.device(), &port.bar, drop)
    }

    fn closed_rx<'bound>(port: Pin<&Port<'bound>>, queue: u16, rx: RxRing, closed: &RxClosed<'_>) {
        if let Ok(stats) = port.stats.pair(queue) {
            rx.count_lost(closed, &stats.poll);
        }
    }
}
