// SPDX-License-Identifier: GPL-2.0

//! A queueing discipline that belongs to a device, but is not attached to it.

use super::super::{
    Dump,
    ExtAck,
    FifoOptions,
    Ops,
    Options,
    Qdisc,
    QdiscDropReason,
    QueuedSkBuff,
    Rejected, //
};

use crate::{
    bindings,
    error::{
        from_err_ptr,
        to_result, //
    },
    net::skbuff::{
        SkBuff,
        UniqueSkBuff, //
    },
    prelude::*,
    softirq::Softirq,
    sync::alf_queue::{
        self,
        Consumer,
        SharedProducer, //
    }, //
};

use core::{
    ops::Range,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// A FIFO, whose limit must be a power of two.
pub(super) struct Fifo;

pub(super) static OPS: Ops<Fifo> = Ops::new();

pub(super) type Input = SharedProducer<QueuedSkBuff>;
type Output = Consumer<QueuedSkBuff>;

/// Makes a queue for `limit` packets, unless there is one.
fn resize(input: &Input, limit: u32) -> Result<Option<(Input, Output)>> {
    if input.capacity() == limit as usize {
        return Ok(None);
    }
    Fifo::init(limit).map(Some)
}

#[vtable]
impl Qdisc for Fifo {
    const NAME: &'static CStr = c"rust_kunit_fifo";
    const CAN_BYPASS: bool = true;

    type Config = u32;
    type Input = Input;
    type Output = Output;

    fn parse(
        tx_queue_len: u32,
        options: Option<Options<'_>>,
        extack: &mut ExtAck<'_>,
    ) -> Result<u32> {
        let Some(options) = options else {
            return Ok(tx_queue_len.next_power_of_two());
        };
        match FifoOptions::parse(options, extack)?.limit() {
            0 => Err(extack.refuse(EINVAL, fmt!("limit 0"))),
            u32::MAX => Err(extack.refuse(E2BIG, fmt!("{}", Long))),
            limit => Ok(limit),
        }
    }

    fn init(limit: u32) -> Result<(Self::Input, Self::Output)> {
        alf_queue::mpsc(limit as usize, GFP_KERNEL)
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
        Consumer::peek(output)
    }

    fn change(input: &Input, limit: u32) -> Result<Option<(Input, Output)>> {
        resize(input, limit)
    }

    fn change_tx_queue_len(input: &Input, tx_queue_len: u32) -> Result<Option<(Input, Output)>> {
        resize(input, tx_queue_len)
    }

    fn dump(input: &Self::Input, dump: &mut Dump<'_>) -> Result {
        dump.options(&FifoOptions::new(input.capacity() as u32))
    }
}

/// Options that do not fit into a message.
struct Long;

impl crate::fmt::Display for Long {
    fn fmt(&self, f: &mut crate::fmt::Formatter<'_>) -> crate::fmt::Result {
        (0..200).try_for_each(|_| f.write_str("x"))
    }
}

/// An attribute with options.
#[repr(C, align(4))]
struct Attribute {
    header: bindings::nlattr,
    payload: [u8; 8],
}

impl Attribute {
    fn new(bytes: &[u8]) -> Self {
        let mut payload = [0xff; 8];
        payload[..bytes.len()].copy_from_slice(bytes);

        Self {
            header: bindings::nlattr {
                nla_len: (size_of::<bindings::nlattr>() + bytes.len()) as u16,
                nla_type: bindings::TCA_OPTIONS as u16,
            },
            payload,
        }
    }

    fn as_raw(&mut self) -> *mut bindings::nlattr {
        ptr::from_mut(self).cast()
    }
}

/// The result of enqueuing a packet.
#[derive(PartialEq, Eq)]
pub(super) enum Outcome {
    Taken,
    /// The number of the packet that is to be freed, and why.
    Rejected(u8, u32),
    Wrong,
}

/// A packet of `100 + number` bytes, as the stack hands it to a discipline of the loopback device.
fn packet(number: u8) -> Result<NonNull<bindings::sk_buff>> {
    let skb = packet_without_device(number)?;

    // SAFETY: The packet is ours. The loopback device is never gone.
    unsafe {
        (*skb.as_ptr())
            .__bindgen_anon_1
            .__bindgen_anon_1
            .__bindgen_anon_1
            .dev = bindings::init_net.loopback_dev;
    }
    Ok(skb)
}

/// As [`packet`], but new, and on no device.
fn packet_without_device(number: u8) -> Result<NonNull<bindings::sk_buff>> {
    let mut skb = UniqueSkBuff::alloc(64, GFP_KERNEL)?;
    skb.put(&[number])?;
    let skb = SkBuff::from(skb).into_raw();

    // SAFETY: The packet is ours.
    unsafe {
        let cb = (&raw mut (*skb.as_ptr()).cb).cast::<bindings::qdisc_skb_cb>();
        (*cb).pkt_len = 100 + c_uint::from(number);
        (*cb).pkt_segs = 1;
    }
    Ok(skb)
}

/// The number of a packet, which is freed.
///
/// # Safety
///
/// The packet must be ours.
unsafe fn number(skb: NonNull<bindings::sk_buff>) -> u8 {
    // SAFETY: By the safety requirements.
    let skb = unsafe { SkBuff::from_raw(skb) };
    skb.data().first().copied().unwrap_or(u8::MAX)
}

/// Calls `f` with RTNL held. A case that fails does not return: it must not hold RTNL then, which
/// the next one would wait for.
fn locked<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: Tests run in process context.
    unsafe { bindings::rtnl_lock() };
    let result = f();
    // SAFETY: Locked above.
    unsafe { bindings::rtnl_unlock() };
    result
}

/// A discipline of the loopback device, which does not know of it.
pub(super) struct Discipline(*mut bindings::Qdisc);

impl Discipline {
    pub(super) fn new(options: Option<&[u8]>) -> Result<Self> {
        Self::make(options, ptr::null_mut())
    }

    /// How options are refused: the error, and the message.
    pub(super) fn refused(options: &[u8]) -> Result<(Option<Error>, KVec<u8>)> {
        let mut extack = bindings::netlink_ext_ack::default();
        let error = Self::make(Some(options), &raw mut extack).err();
        let mut message = KVec::new();

        if !extack._msg.is_null() {
            // SAFETY: A message ends with a zero, and is valid as long as `extack`.
            let bytes = unsafe { CStr::from_char_ptr(extack._msg) }.to_bytes();
            message.extend_from_slice(bytes, GFP_KERNEL)?;
        }
        Ok((error, message))
    }

    fn make(options: Option<&[u8]>, extack: *mut bindings::netlink_ext_ack) -> Result<Self> {
        let mut attribute = options.map(Attribute::new);
        let attribute = attribute
            .as_mut()
            .map_or(ptr::null_mut(), Attribute::as_raw);

        // SAFETY: The loopback device is never gone. This is what the core does to create a
        // discipline.
        let sch = locked(|| unsafe {
            let queue = bindings::netdev_get_tx_queue(bindings::init_net.loopback_dev, 0);
            let sch = from_err_ptr(bindings::qdisc_alloc(queue, OPS.as_raw(), extack))?;
            (*sch).parent = bindings::TC_H_ROOT;
            Ok::<_, Error>(sch)
        })?;
        // If it cannot be initialised, this frees it.
        let new = Self(sch);

        // SAFETY: As above.
        locked(|| unsafe {
            let init = (*OPS.as_raw()).init.ok_or(EINVAL)?;
            to_result(init(sch, attribute, extack))
        })?;
        Ok(new)
    }

    /// Runs `f` as the core does.
    fn bh_disabled<R>(&self, f: impl FnOnce(&bindings::Qdisc_ops, *mut bindings::Qdisc) -> R) -> R {
        // SAFETY: The operations are valid. Bottom halves are enabled in tests.
        unsafe {
            bindings::local_bh_disable();
            let result = f(&*OPS.as_raw(), self.0);
            bindings::local_bh_enable();
            result
        }
    }

    pub(super) fn enqueue(&self, number: u8) -> Result<Outcome> {
        self.put(packet(number)?)
    }

    /// As if the discipline made a packet of its own.
    pub(super) fn enqueue_foreign(&self, number: u8) -> Result<Outcome> {
        self.put(packet_without_device(number)?)
    }

    /// As if the discipline had kept a packet of another queue, which this device need not have.
    pub(super) fn enqueue_of_queue(&self, number: u8, queue: u16) -> Result<Outcome> {
        let skb = packet(number)?;

        // SAFETY: The packet is ours.
        unsafe { (*skb.as_ptr()).queue_mapping = queue };
        self.put(skb)
    }

    fn put(&self, skb: NonNull<bindings::sk_buff>) -> Result<Outcome> {
        let mut to_free = ptr::null_mut();

        // SAFETY: The packet is ours, and is given away.
        let result = self.bh_disabled(|ops, sch| unsafe {
            ops.enqueue
                .map(|enqueue| enqueue(skb.as_ptr(), sch, &mut to_free))
        });
        Ok(match (result, NonNull::new(to_free)) {
            (Some(0), None) => Outcome::Taken,
            // SAFETY: The discipline has given it back.
            (Some(1), Some(skb)) => unsafe {
                let cb = (&raw const (*skb.as_ptr()).cb).cast::<bindings::tc_skb_cb>();
                let reason = (*cb).drop_reason;
                Outcome::Rejected(self::number(skb), reason)
            },
            _ => Outcome::Wrong,
        })
    }

    /// Enqueues packets one by one, and returns how many are refused.
    pub(super) fn enqueue_all(&self, numbers: Range<u8>) -> Result<usize> {
        let mut refused = 0;
        for number in numbers {
            match self.enqueue(number)? {
                Outcome::Taken => {}
                Outcome::Rejected(..) => refused += 1,
                Outcome::Wrong => return Err(EINVAL),
            }
        }
        Ok(refused)
    }

    pub(super) fn dequeue(&self) -> Option<u8> {
        // SAFETY: Nobody else uses the discipline.
        let skb =
            self.bh_disabled(|ops, sch| unsafe { ops.dequeue.map(|dequeue| dequeue(sch)) })?;
        // SAFETY: The packet is ours.
        NonNull::new(skb).map(|skb| unsafe {
            // The stack expects one that is alone.
            if (*skb.as_ptr())
                .__bindgen_anon_1
                .__bindgen_anon_1
                .next
                .is_null()
            {
                number(skb)
            } else {
                u8::MAX
            }
        })
    }

    pub(super) fn peek(&self) -> Option<u8> {
        // SAFETY: Nobody else uses the discipline. The packet stays in it.
        self.bh_disabled(|ops, sch| unsafe {
            let skb = ops.peek.map(|peek| peek(sch))?;
            NonNull::new(skb).map(|skb| *(*skb.as_ptr()).data)
        })
    }

    pub(super) fn reset(&self) {
        // SAFETY: Nobody else uses the discipline.
        locked(|| self.bh_disabled(|_, sch| unsafe { bindings::qdisc_reset(sch) }));
    }

    pub(super) fn change(&self, options: &[u8]) -> Result {
        // SAFETY: Nobody else uses the discipline, and RTNL is held.
        locked(|| unsafe {
            let change = (*OPS.as_raw()).change.ok_or(EINVAL)?;
            to_result(change(
                self.0,
                Attribute::new(options).as_raw(),
                ptr::null_mut(),
            ))
        })
    }

    pub(super) fn change_tx_queue_len(&self, packets: u32) -> Result {
        // SAFETY: Nobody else uses the discipline, and RTNL is held.
        locked(|| unsafe {
            let change = (*OPS.as_raw()).change_tx_queue_len.ok_or(EINVAL)?;
            to_result(change(self.0, packets))
        })
    }

    /// Tells enqueueing sides apart.
    pub(super) fn enqueueing_side(&self) -> *const Input {
        // SAFETY: The discipline is valid, and RTNL is held.
        locked(|| ptr::from_ref(unsafe { Ops::<Fifo>::input(self.0) }))
    }

    /// How many dequeueing sides there are from before changes.
    pub(super) fn older_sides(&self) -> usize {
        // SAFETY: The discipline is valid, and nobody else uses it.
        unsafe { Ops::<Fifo>::output(self.0) }.older_sides()
    }

    /// The limit that the discipline says it has.
    pub(super) fn limit(&self) -> Result<u32> {
        let skb = UniqueSkBuff::alloc(64, GFP_KERNEL)?;

        // SAFETY: RTNL is held.
        let len = locked(|| unsafe {
            let dump = (*OPS.as_raw()).dump.ok_or(EINVAL)?;
            Ok::<_, Error>(dump(self.0, skb.as_raw()))
        })?;
        let data = skb.data();
        if len != 8 || data.len() != 8 {
            return Err(EMSGSIZE);
        }
        let mut limit = [0; 4];
        limit.copy_from_slice(&data[4..]);
        Ok(u32::from_ne_bytes(limit))
    }

    pub(super) fn tx_queue_len(&self) -> u32 {
        // SAFETY: The discipline is valid.
        unsafe { bindings::qdisc_tx_queue_len(self.0) }.next_power_of_two()
    }

    pub(super) fn may_be_bypassed(&self) -> bool {
        // SAFETY: The discipline is valid.
        unsafe { (*self.0).flags & bindings::TCQ_F_CAN_BYPASS != 0 }
    }

    fn stats(&self) -> bindings::gnet_stats_queue {
        let mut sum = bindings::gnet_stats_queue::default();
        // SAFETY: The discipline is valid. As a child, it has no counters per CPU.
        unsafe {
            let per_cpu = if (*self.0).flags & bindings::TCQ_F_CPUSTATS != 0 {
                (*self.0).cpu_qstats
            } else {
                ptr::null_mut()
            };
            bindings::gnet_stats_add_queue(&mut sum, per_cpu, &raw const (*self.0).qstats);
            if per_cpu.is_null() {
                sum.qlen = (*self.0).q.qlen;
            }
        }
        sum
    }

    /// Packets and bytes in the discipline.
    pub(super) fn waiting(&self) -> (u32, u32) {
        let sum = self.stats();
        (sum.qlen, sum.backlog)
    }

    pub(super) fn drops(&self) -> u32 {
        self.stats().drops
    }

    /// Runs `f` while the discipline looks as if it were the child of one with a lock.
    pub(super) fn as_child(&self, f: impl FnOnce() -> Result) -> Result {
        let flags = bindings::TCQ_F_NOLOCK | bindings::TCQ_F_CPUSTATS;

        // SAFETY: The discipline is valid, and nobody else uses it.
        unsafe {
            (*self.0).flags &= !flags;
            let result = f();
            (*self.0).flags |= flags;
            result
        }
    }

    /// A CPU could not run the discipline.
    pub(super) fn set_missed(&self) {
        // SAFETY: The discipline is valid, and nobody else uses it.
        unsafe { (*self.0).state |= 1 << bindings::qdisc_state_t___QDISC_STATE_MISSED };
    }

    pub(super) fn is_missed(&self) -> bool {
        // SAFETY: The discipline is valid, and nobody else uses it.
        unsafe { (*self.0).state & 1 << bindings::qdisc_state_t___QDISC_STATE_MISSED != 0 }
    }
}

impl Drop for Discipline {
    fn drop(&mut self) {
        // SAFETY: The discipline is not attached to anything.
        locked(|| unsafe { bindings::qdisc_put(self.0) });
    }
}
