//@ pass
// SPDX-License-Identifier: GPL-2.0

//! The control: correct use of everything that the other cases misuse.

#![forbid(unsafe_code)]

use core::cell::Cell;
use kernel::{
    cpu::CpuId,
    device::{
        Bound,
        Device, //
    },
    kthread,
    mm::qmempool::{
        Options,
        QMemPool, //
    },
    net::{
        combiner::{
            Combiner,
            Disposition, //
        },
        inflight::{
            self,
            Limits,
            TxConsumer,
            TxProducer, //
        },
        napi::{
            Napi,
            Poll, //
        },
        queue::RingSize,
        rx_list::{
            Protocol,
            RxList, //
        },
        skb_free::{
            BulkStats,
            SkbFreeList, //
        },
        skbuff::SkBuff, //
    },
    percpu::PerCpu,
    prelude::*,
    slab::{
        Batch,
        Cache, //
    },
    softirq::{
        BhGuard,
        Softirq, //
    },
    sync::{
        alf_queue::{
            self,
            Chunk,
            Mpmc, //
        },
        llist::{
            HasNode,
            LockLessList, //
        },
        SpinLock, //
    },
    workqueue, //
};

pub fn queue() -> Result {
    let (mut tx, mut rx) = alf_queue::spsc::<u32>(8, GFP_KERNEL)?;

    workqueue::system().try_spawn(GFP_KERNEL, move || {
        let _ = tx.push(1);
    })?;
    let oldest = rx.peek().copied();
    if rx.pop() != oldest {
        return Err(EINVAL);
    }
    Ok(())
}

pub fn shared_queue(queue: &Mpmc<u32>, cx: Softirq<'_>) -> Option<u32> {
    let mut chunk = Chunk::from([1, 2]);
    let _ = queue.push_bulk(cx, &mut chunk);
    queue.pop(cx)
}

pub fn many_producers() -> Result {
    let (tx, rx) = alf_queue::mpsc::<u32>(8, GFP_KERNEL)?;
    drop((tx.clone(), tx, rx));
    Ok(())
}

pub fn list<T: HasNode>(list: &LockLessList<KBox<T>>, element: KBox<T>) -> Option<KBox<T>> {
    list.push(element);
    list.take_all().reverse().pop()
}

pub fn combine<T: HasNode>(
    list: &Combiner<KBox<T>>,
    element: KBox<T>,
    sent: &SpinLock<usize>,
) -> bool {
    let lock = || sent.lock();
    let submitted = list.submit(element, 1000, 64, lock, |sent, batch| **sent += batch.len());
    matches!(submitted, Ok(Disposition::Done))
}

pub fn thread(cpu: CpuId) -> Result {
    let number = 1;
    kthread::scope(|scope| {
        scope.spawn_on(cpu, c"control", || {
            let _ = number + 1;
        })
    })
}

pub fn slab() -> Result<u64> {
    let cache = Cache::<u64>::new(c"control", 8)?;
    let object = cache.alloc(1, GFP_KERNEL)?;
    let mut batch = Batch::<_, 8>::new(&cache);

    batch.alloc(4, GFP_KERNEL, |i| Ok::<_, Error>(i as u64))?;
    let _ = batch.push(object);
    Ok(batch.pop().map_or(0, |object| *object))
}

fn send<T: Send>(_: T) {}

pub fn slab_shared(batch: &mut Batch<'_, u64, 8>) -> u64 {
    let first = batch.iter().next().copied();
    send(batch.pop());
    batch.clear();
    first.unwrap_or(0)
}

pub fn pool(counts: &PerCpu<Cell<u32>>) -> Result<u64> {
    let pool = QMemPool::<u64>::new(c"control", Cache::new(c"control", 8)?, Options::new())?;
    let guard = BhGuard::new().ok_or(EINVAL)?;
    let local = pool.local(guard.softirq());

    local.free(local.alloc(1, GFP_ATOMIC)?);
    counts.get(guard.softirq()).set(1);
    drop(guard);
    let object = pool.alloc(2, GFP_KERNEL)?;
    let value = *object;
    pool.free(object);
    Ok(value)
}

pub fn open<'a>(dev: &'a Device<Bound>, napi: &Napi) -> Result<(TxProducer<'a>, TxConsumer<'a>)> {
    inflight::pair(
        dev,
        napi,
        RingSize::of::<512>(),
        Limits {
            segment_len: 4096,
            descriptors: 40,
        },
    )
}

pub fn xmit(tx: &mut TxProducer<'_>, skb: SkBuff) -> usize {
    match tx.submit(skb, 0, |_, _| ()) {
        Ok(submitted) => submitted.next_slot,
        Err(refused) => {
            refused.skb.consume();
            tx.next_slot()
        }
    }
}

pub fn poll(cx: &Poll<'_>, rx: &mut TxConsumer<'_>, stats: &BulkStats) -> usize {
    let mut free = SkbFreeList::new(cx, stats);
    rx.complete(&mut free, cx.budget(), |slot| slot == 0)
        .packets
}

pub fn loop_back(cx: &Poll<'_>, transmitted: SkBuff) -> Result<(), SkBuff> {
    let mut list = RxList::new(cx);
    let mut skb = transmitted.into_unique(GFP_ATOMIC)?;

    skb.data_mut().reverse();
    list.push(skb, Protocol::Other);
    Ok(())
}
