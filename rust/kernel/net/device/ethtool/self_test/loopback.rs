// SPDX-License-Identifier: GPL-2.0

//! The test of a NIC that is in loopback: frames that it sends come back to it.
//!
//! The device goes up with its own rings, interrupts and poll functions, and each transmit queue
//! sends frames of several lengths to the address of the device. They have a type of their own, for
//! which GRO has a handler meanwhile. That takes them out before anything else in the stack sees
//! them, sniffers included, and compares them with what was sent. A generic XDP program would see
//! them, so with one the test fails with `EBUSY`.
//!
//! Queueing disciplines are deactivated meanwhile, and keep their packets. The carrier is off, for
//! the sake of those who pass queueing disciplines by. The driver receives by
//! [`Poll::receive`](crate::net::napi::Poll::receive) or an `RxList`, and does not turn the carrier
//! on in loopback. The frames count as packets of the device.
//!
//! The first queue that fails ends the test. The code of a failure below 65536 is that of an error,
//! of the driver's function for instance. Another one is 65536 times the number of the queue,
//! counted from 1, plus 256 times the number of frames that came twice or damaged, plus the number
//! of those that did not come; a damaged frame counts as both.
//!
//! C header: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h)

use super::{
    super::super::{
        inner::Inner,
        ops_lock::Locks,
        Device,
        Driver,
        Features,
        MacAddress,
        Rtnl, //
    },
    Switch,
    TestFailure,
    TestResult, //
};

use crate::{
    bindings,
    net::skbuff::{
        set_protocol,
        SkBuff,
        UniqueSkBuff, //
    },
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    types::Opaque, //
};

use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// The type of the frames, that of Ethernet's own loopback protocol, which Linux does not speak.
const TYPE: u16 = bindings::ETH_P_LOOPBACK as u16;

const HEADER: usize = bindings::ETH_HLEN as usize;

/// The lengths of frames without the frame check sequence, as far as the MTU allows: the shortest
/// one, lengths around powers of two, and the longest one.
const LENS: [usize; COUNT] = [60, 61, 64, 127, 256, 513, 1024, usize::MAX];
const COUNT: usize = 8;

/// Frames are made and compared in pieces of so many bytes.
const PIECE: usize = 64;

/// The place of the token in a frame, and of the number behind it.
const TOKEN: usize = HEADER;
const NUMBER: usize = TOKEN + 8;

/// The time in which the frames of a queue have to come back.
const PATIENCE_MS: u32 = 2_000;

/// The time in which a frame comes that the NIC has duplicated.
const AFTERMATH: Delta = Delta::from_millis(10);

/// The frames of a test, for those that receive them.
struct Frames {
    dev: *mut bindings::net_device,
    address: MacAddress,
    /// The length of the longest one.
    max_len: usize,
    /// The frames of no other test have it.
    token: u64,
    /// The queue that sends.
    queue: Atomic<u32>,
    /// How often each frame of that queue has come.
    seen: [Atomic<u32>; COUNT],
    /// Frames that have come as none was sent.
    wrong: Atomic<u32>,
}

impl Frames {
    fn new(dev: &Device) -> Self {
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        let max_len = (dev.mtu() as usize + HEADER).max(LENS[0]);

        Self {
            dev: dev.as_raw(),
            address: dev.mac_address(),
            max_len,
            // SAFETY: There are no requirements.
            token: unsafe { bindings::get_random_u64() },
            queue: Atomic::new(0),
            seen: [const { Atomic::new(0) }; COUNT],
            wrong: Atomic::new(0),
        }
    }

    /// Goes on with the frames of a queue.
    fn begin(&self, queue: u16) {
        self.queue.store(queue.into(), Relaxed);
        for seen in &self.seen {
            seen.store(0, Relaxed);
        }
    }

    /// The length of a frame.
    fn len(&self, number: usize) -> usize {
        LENS.get(number).map_or(0, |len| (*len).min(self.max_len))
    }

    /// Makes piece `index` of a frame of this queue.
    fn piece(&self, queue: u32, number: usize, index: usize) -> [u8; PIECE] {
        let mut piece = [0; PIECE];
        // CAST: All of them are small.
        let place = u64::from(queue) << 40 | (number as u64) << 32 | index as u64;
        let mut state = self.token ^ place;

        // Eight bytes at a time of a generator whose steps are those of splitmix64.
        for bytes in piece.chunks_exact_mut(size_of::<u64>()) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = state;
            word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            bytes.copy_from_slice(&(word ^ word >> 31).to_le_bytes());
        }
        if index == 0 {
            let address = self.address.octets();

            piece[..6].copy_from_slice(address);
            piece[6..12].copy_from_slice(address);
            piece[12..HEADER].copy_from_slice(&TYPE.to_be_bytes());
            piece[TOKEN..NUMBER].copy_from_slice(&self.token.to_le_bytes());
            // CAST: There are `COUNT`.
            piece[NUMBER] = number as u8;
        }
        piece
    }

    /// Makes a frame.
    fn make(&self, queue: u32, number: usize) -> Result<UniqueSkBuff> {
        let len = self.len(number);
        let mut skb = UniqueSkBuff::alloc(u32::try_from(len)?, GFP_KERNEL)?;

        for (index, at) in (0..len).step_by(PIECE).enumerate() {
            let piece = self.piece(queue, number, index);

            skb.put(&piece[..PIECE.min(len - at)])?;
        }
        Ok(skb)
    }

    /// Notes a frame that has come.
    fn take(&self, skb: &SkBuff) {
        match self.number_of(skb).and_then(|number| self.seen.get(number)) {
            Some(seen) if seen.fetch_add(1, Relaxed) == 0 => (),
            _ => {
                self.wrong.fetch_add(1, Relaxed);
            }
        }
    }

    /// The number of a frame, if it is as it was sent.
    fn number_of(&self, skb: &SkBuff) -> Option<usize> {
        let queue = self.queue.load(Relaxed);
        let mut found = [0; PIECE];

        copy(skb, 0, &mut found[..LENS[0]])?;
        let number = usize::from(found[NUMBER]);
        let len = self.len(number);
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        if len == 0 || skb.len() as usize != len {
            return None;
        }
        for (index, at) in (0..len).step_by(PIECE).enumerate() {
            let some = PIECE.min(len - at);

            copy(skb, at, found.get_mut(..some)?)?;
            if self.piece(queue, number, index).get(..some)? != found.get(..some)? {
                return None;
            }
        }
        Some(number)
    }

    /// The number of frames that have not come.
    fn missing(&self) -> u32 {
        let missing = self.seen.iter().filter(|seen| seen.load(Relaxed) == 0);

        // CAST: There are `COUNT`.
        missing.count() as u32
    }

    /// Returns whether all frames of the queue have come, and no others.
    fn check(&self) -> TestResult {
        match (self.missing(), self.wrong.load(Relaxed)) {
            (0, 0) => Ok(()),
            (missing, wrong) => {
                let queue = self.queue.load(Relaxed);

                Err(TestFailure::with_code(
                    (queue + 1) << 16 | wrong.min(0xff) << 8 | missing,
                ))
            }
        }
    }

    /// Waits until all frames of the queue have come.
    fn wait(&self) {
        // Sleeps are counted, since a busy host may keep a virtual machine from its CPUs for longer
        // than all of them take.
        for _ in 0..PATIENCE_MS {
            if self.missing() == 0 {
                return;
            }
            fsleep(Delta::from_millis(1));
        }
    }
}

/// Copies bytes of a packet, from `at` on, if it has that many.
fn copy(skb: &SkBuff, at: usize, bytes: &mut [u8]) -> Option<()> {
    let at = c_int::try_from(at).ok()?;
    let len = c_int::try_from(bytes.len()).ok()?;

    // SAFETY: The packet is valid, and `bytes` has room for `len` bytes. What the packet does not
    // have is not copied.
    let result =
        unsafe { bindings::skb_copy_bits(skb.as_raw(), at, bytes.as_mut_ptr().cast(), len) };
    (result == 0).then_some(())
}

/// The frames of the test that is being made. RTNL is held for that.
///
/// It is null, or points to frames that are valid until [`Handler`] is dropped.
static RUNNING: Atomic<*const Frames> = Atomic::new(ptr::null());

/// Takes frames of the test from GRO.
///
/// # Safety
///
/// To be called by GRO, as long as a [`Handler`] exists, for a packet without another owner whose
/// Ethernet header has been pulled.
unsafe extern "C" fn take_from_gro(
    _held: *mut bindings::list_head,
    skb: *mut bindings::sk_buff,
) -> *mut bindings::sk_buff {
    // SAFETY: The frames are valid while the handler exists. To drop it waits for us.
    let frames = unsafe { RUNNING.load(Acquire).as_ref() };
    // SAFETY: The packet is valid.
    let dev = unsafe {
        (*skb)
            .__bindgen_anon_1
            .__bindgen_anon_1
            .__bindgen_anon_1
            .dev
    };

    match (frames, NonNull::new(skb)) {
        (Some(frames), Some(own)) if ptr::eq(frames.dev, dev) => {
            // SAFETY: The header lies in front of the data. From here on the packet is ours: the
            // error tells GRO so.
            let skb = unsafe {
                bindings::skb_push(skb, bindings::ETH_HLEN);
                SkBuff::from_raw(own)
            };

            frames.take(&skb);
            skb.consume();
            EINPROGRESS.to_ptr()
        }
        _ => {
            // SAFETY: GRO handles this packet, and gets it back.
            unsafe { bindings::skb_gro_pass(skb) };
            ptr::null_mut()
        }
    }
}

/// GRO's handler of the frames, until it is dropped.
struct Handler<'a> {
    offload: KBox<Opaque<bindings::packet_offload>>,
    _frames: PhantomData<&'a Frames>,
}

impl<'a> Handler<'a> {
    /// To be dropped before `frames` are.
    fn new(frames: &'a Frames, _rtnl: &mut Rtnl) -> Result<Self> {
        let offload = bindings::packet_offload {
            type_: TYPE.to_be(),
            callbacks: bindings::offload_callbacks {
                gro_receive: Some(take_from_gro),
                ..pin_init::zeroed()
            },
            ..pin_init::zeroed()
        };
        let offload = KBox::new(Opaque::new(offload), GFP_KERNEL)?;

        RUNNING.store(frames, Release);
        // SAFETY: It is valid, and is removed before it is freed.
        unsafe { bindings::dev_add_offload(offload.get()) };
        Ok(Self {
            offload,
            _frames: PhantomData,
        })
    }
}

impl Drop for Handler<'_> {
    fn drop(&mut self) {
        // SAFETY: It was added by `new()`. This waits for GRO, in process context.
        unsafe { bindings::dev_remove_offload(self.offload.get()) };
        RUNNING.store(ptr::null(), Relaxed);
    }
}

/// Has transmit queue `queue` of a device send a frame; whether it does shows when it comes back.
///
/// As `__dev_direct_xmit()`, but the device need neither run nor have a carrier.
fn send(dev: &Device, queue: u16, mut skb: UniqueSkBuff) {
    set_protocol(&mut skb, TYPE.to_be());
    let skb = SkBuff::from(skb);
    let (raw, dev) = (skb.as_raw(), dev.as_raw());

    // SAFETY: The device is up, and has this queue. The packet is ours, and holds a frame in its
    // linear part. This is process context.
    let taken = unsafe {
        let txq = bindings::netdev_get_tx_queue(dev, queue.into());

        (*raw)
            .__bindgen_anon_1
            .__bindgen_anon_1
            .__bindgen_anon_1
            .dev = dev;
        bindings::skb_reset_mac_header(raw);
        bindings::skb_set_network_header(raw, bindings::ETH_HLEN as c_int);
        (*raw).queue_mapping = queue;

        bindings::__netif_tx_lock_bh(txq);
        let taken = !bindings::netif_xmit_frozen_or_drv_stopped(txq)
            && bindings::netdev_start_xmit(raw, dev, txq, false)
                == bindings::netdev_tx::NETDEV_TX_OK;
        bindings::__netif_tx_unlock_bh(txq);
        taken
    };
    if taken {
        // The driver owns it.
        let _ = skb.into_raw();
    }
}

/// Sends frames, and waits until they have come back. The code of a failure has the number of the
/// first transmit queue that fails, counted from 1, in its upper 16 bits, then the number of its
/// frames that have come wrongly, and, in the last 8 bits, of those that have not come.
fn exchange(dev: &Device, rtnl: &mut Rtnl) -> TestResult {
    // SAFETY: The device is valid, and RTNL is held.
    let queues = unsafe { (*dev.as_raw()).real_num_tx_queues };
    let frames = Frames::new(dev);
    let _handler = Handler::new(&frames, rtnl)?;

    // CAST: The number of queues is a `u16`.
    for queue in 0..queues as u16 {
        frames.begin(queue);
        for number in 0..COUNT {
            send(dev, queue, frames.make(queue.into(), number)?);
        }
        frames.wait();
        frames.check()?;
    }
    fsleep(AFTERMATH);
    frames.check()
}

/// [`exchange`] with GRO on, whatever users want.
fn exchange_by_gro(dev: &Device, rtnl: &mut Rtnl) -> TestResult {
    let before = dev.features();
    let gro = Features::from_raw(1 << bindings::NETIF_F_GRO_BIT);

    dev.set_features(before.union(gro), rtnl);
    // SAFETY: The device is valid.
    let result = if unsafe { bindings::netif_elide_gro(dev.as_raw()) } {
        // A program for XDP, which the driver knows nothing of, would get the frames.
        Err(EBUSY.into())
    } else {
        exchange(dev, rtnl)
    };
    dev.set_features(before, rtnl);
    result
}

/// Lets the queueing disciplines of a device pass on no packets: they keep those that they have,
/// and take no others.
fn stop_disciplines(dev: &Device, _rtnl: &mut Rtnl) {
    // SAFETY: The device is registered, and RTNL is held.
    unsafe { bindings::dev_deactivate(dev.as_raw(), false) };
}

/// Lets the disciplines of a device that runs go on. Without a carrier, they do so when that comes.
pub(super) fn start_disciplines(dev: &Device, _rtnl: &mut Rtnl) {
    // SAFETY: As above.
    unsafe { bindings::dev_activate(dev.as_raw()) };
}

/// Makes the test with a device that is down, and takes it down again.
pub(super) fn run<T: Driver>(
    inner: &Inner<T>,
    switch: Switch<T>,
    locks: &mut Locks<'static>,
) -> TestResult {
    let dev = inner.dev();

    // If the device is to go on after this, the stack believes that it is up.
    if dev.is_running() {
        stop_disciplines(dev, locks);
    }
    inner.go_up(locks)?;
    let result = match switch(inner.data(), dev, true, locks) {
        Ok(()) => {
            // The stack has no use for the link of a loopback.
            dev.carrier_off();
            exchange_by_gro(dev, locks)
        }
        Err(error) => Err(error.into()),
    };
    // Before the switch, or frames that the NIC has not sent yet would leave.
    inner.go_down(locks);
    result.and(switch(inner.data(), dev, false, locks).map_err(Into::into))
}
