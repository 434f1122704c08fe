// SPDX-License-Identifier: GPL-2.0

//! Functions in the place of programs, and a device that takes the frames that they redirect.

use crate::{
    bindings,
    error::to_result,
    net::skbuff::SkBuff,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use core::ptr::{
    self,
    NonNull, //
};

/// The result of a program, and by how many bytes it moves the start, the end, and the start of the
/// metadata before that.
pub(super) static ACTION: Atomic<u32> = Atomic::new(0);
pub(super) static MOVES: [Atomic<i32>; 3] = [const { Atomic::new(0) }; 3];
/// Headroom, length, metadata and tailroom of the last frame, and its queue and sort of memory.
pub(super) static SEEN: [Atomic<u32>; 6] = [const { Atomic::new(0) }; 6];

/// # Safety
///
/// It must be run as a program of XDP, for a frame.
pub(super) unsafe extern "C" fn act(
    context: *const c_void,
    _: *const bindings::bpf_insn,
) -> c_uint {
    // SAFETY: It is run for a frame, which is exclusively its own.
    let buff = unsafe { &mut *context.cast_mut().cast::<bindings::xdp_buff>() };
    // SAFETY: It is that of a ring in use.
    let rxq = unsafe { &*buff.rxq };
    let info =
        size_of::<bindings::skb_shared_info>().next_multiple_of(1 << bindings::L1_CACHE_SHIFT);
    // SAFETY: All `struct xdp_buff` have this one.
    let size = unsafe { buff.__bindgen_anon_1.__bindgen_anon_1.frame_sz } as usize;
    let seen = [
        buff.data.addr() - buff.data_hard_start.addr(),
        buff.data_end.addr() - buff.data.addr(),
        buff.data.addr() - buff.data_meta.addr(),
        buff.data_hard_start.addr() + size - info - buff.data_end.addr(),
        rxq.queue_index as usize,
        rxq.mem.type_ as usize,
    ];
    for (place, value) in SEEN.iter().zip(seen) {
        place.store(value as u32, Relaxed);
    }

    let by = |index: usize| MOVES[index].load(Relaxed) as isize;
    buff.data = buff.data.wrapping_byte_offset(by(0));
    buff.data_end = buff.data_end.wrapping_byte_offset(by(1));
    buff.data_meta = buff.data.wrapping_byte_offset(by(2));
    ACTION.load(Relaxed)
}

/// # Safety
///
/// None.
pub(super) unsafe extern "C" fn drop_it(_: *const c_void, _: *const bindings::bpf_insn) -> c_uint {
    bindings::xdp_action_XDP_DROP
}

/// The length of the first buffer, the flags, the number of other buffers, and the bytes in them,
/// of the last frame.
pub(super) static PARTS: [Atomic<u32>; 4] = [const { Atomic::new(0) }; 4];
/// The number of frames.
pub(super) static RUNS: Atomic<u32> = Atomic::new(0);
/// The result of the helper.
pub(super) static RESULT: Atomic<i32> = Atomic::new(0);

/// As [`act`], but the end is moved by the helper for that, which knows of several buffers.
///
/// # Safety
///
/// It must be run as a program of XDP, for a frame.
pub(super) unsafe extern "C" fn act_on_all(
    context: *const c_void,
    _: *const bindings::bpf_insn,
) -> c_uint {
    // SAFETY: It is run for a frame, which is exclusively its own.
    let buff = unsafe { &mut *context.cast_mut().cast::<bindings::xdp_buff>() };
    // SAFETY: All `struct xdp_buff` have this one.
    let flags = unsafe { buff.__bindgen_anon_1.__bindgen_anon_1.flags };
    let (mut count, mut bytes) = (0, 0);

    if flags != 0 {
        // SAFETY: This is where the other buffers are listed.
        unsafe {
            let info = &*bindings::xdp_get_shared_info_from_buff(buff);
            count = info.nr_frags.into();
            bytes = info.__bindgen_anon_2.__bindgen_anon_1.xdp_frags_size;
        }
    }
    let head = (buff.data_end.addr() - buff.data.addr()) as u32;
    for (place, value) in PARTS.iter().zip([head, flags, count, bytes]) {
        place.store(value, Relaxed);
    }
    RUNS.fetch_add(1, Relaxed);

    let by = |index: usize| MOVES[index].load(Relaxed) as isize;
    buff.data = buff.data.wrapping_byte_offset(by(0));
    buff.data_meta = buff.data.wrapping_byte_offset(by(2));
    if by(1) != 0 {
        // SAFETY: It is run for this frame.
        let result = unsafe { bpf_xdp_adjust_tail(context.addr() as u64, by(1) as u64, 0, 0, 0) };
        RESULT.store(result as i32, Relaxed);
    }
    ACTION.load(Relaxed)
}

unsafe extern "C" {
    /// The helpers of programs.
    fn bpf_xdp_adjust_tail(frame: u64, by: u64, _: u64, _: u64, _: u64) -> u64;
    fn bpf_xdp_redirect(index: u64, flags: u64, _: u64, _: u64, _: u64) -> u64;
}

/// The index of the device that frames are redirected to.
pub(super) static TARGET: Atomic<u32> = Atomic::new(0);
/// The number of frames that it has taken.
pub(super) static TAKEN: Atomic<u32> = Atomic::new(0);

/// # Safety
///
/// It must be run as a program of XDP, for a frame.
pub(super) unsafe extern "C" fn redirect(_: *const c_void, _: *const bindings::bpf_insn) -> c_uint {
    // SAFETY: It is run as a program of XDP, in a poll function.
    let action = unsafe { bpf_xdp_redirect(TARGET.load(Relaxed).into(), 0, 0, 0, 0) };

    action as c_uint
}

/// # Safety
///
/// Must only be called by the core, for a device of ours.
unsafe extern "C" fn take_frames(
    _: *mut bindings::net_device,
    count: c_int,
    frames: *mut *mut bindings::xdp_frame,
    _: u32,
) -> c_int {
    for index in 0..count as usize {
        // SAFETY: The core gives us so many frames, in the poll function that has received them.
        unsafe { bindings::xdp_return_frame_rx_napi(*frames.add(index)) };
    }
    TAKEN.fetch_add(count as u32, Relaxed);
    count
}

/// # Safety
///
/// Must only be called by the core, for a device of ours.
unsafe extern "C" fn take_packet(
    skb: *mut bindings::sk_buff,
    _: *mut bindings::net_device,
) -> bindings::netdev_tx_t {
    if let Some(skb) = NonNull::new(skb) {
        // SAFETY: The core gives us the packet.
        drop(unsafe { SkBuff::from_raw(skb) });
    }
    bindings::netdev_tx::NETDEV_TX_OK
}

/// A device that takes redirected frames.
pub(super) struct Target(NonNull<bindings::net_device>);

impl Target {
    const OPS: &'static bindings::net_device_ops = &bindings::net_device_ops {
        ndo_start_xmit: Some(take_packet),
        ndo_xdp_xmit: Some(take_frames),
        ..pin_init::zeroed()
    };

    pub(super) fn new() -> Result<Self> {
        // SAFETY: There are no requirements.
        let dev = NonNull::new(unsafe { bindings::alloc_etherdev_mqs(0, 1, 1) }).ok_or(ENOMEM)?;

        // SAFETY: The device is ours, and not registered yet.
        let registered = unsafe {
            (*dev.as_ptr()).netdev_ops = Self::OPS;
            (*dev.as_ptr()).xdp_features = bindings::netdev_xdp_act_NETDEV_XDP_ACT_NDO_XMIT
                | bindings::netdev_xdp_act_NETDEV_XDP_ACT_NDO_XMIT_SG;
            // The core does not redirect longer frames.
            (*dev.as_ptr()).mtu = 9000;
            bindings::eth_hw_addr_random(dev.as_ptr());
            bindings::netdev_add_priv_flags(
                dev.as_ptr(),
                bindings::netdev_priv_flags_IFF_NO_ADDRCONF,
            );
            to_result(bindings::register_netdev(dev.as_ptr()))
        };
        registered.inspect_err(|_| {
            // SAFETY: The device is ours.
            unsafe { bindings::free_netdev(dev.as_ptr()) };
        })?;
        let this = Self(dev);

        // SAFETY: Tests run in process context, and the device is registered.
        unsafe {
            TARGET.store((*dev.as_ptr()).ifindex as u32, Relaxed);
            TAKEN.store(0, Relaxed);
            bindings::rtnl_lock();
            let opened = bindings::dev_open(dev.as_ptr(), ptr::null_mut());
            bindings::rtnl_unlock();
            to_result(opened)?;
        }
        Ok(this)
    }
}

impl Target {
    pub(super) fn set_mtu(&self, mtu: c_int) -> Result {
        // SAFETY: The device is registered, and RTNL is held.
        unsafe {
            bindings::rtnl_lock();
            let result = bindings::dev_set_mtu(self.0.as_ptr(), mtu);
            bindings::rtnl_unlock();
            to_result(result)
        }
    }

    pub(super) fn down(&self) {
        // SAFETY: As above.
        unsafe {
            bindings::rtnl_lock();
            bindings::dev_close(self.0.as_ptr());
            bindings::rtnl_unlock();
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // SAFETY: The device is ours, and registered.
        unsafe {
            bindings::unregister_netdev(self.0.as_ptr());
            bindings::free_netdev(self.0.as_ptr());
        }
    }
}

pub(super) type Function = unsafe extern "C" fn(*const c_void, *const bindings::bpf_insn) -> c_uint;

/// A function as a program, of which this is the first reference.
pub(super) struct Program(NonNull<bindings::bpf_prog>);

impl Program {
    pub(super) fn new(function: Function) -> Result<Self> {
        // SAFETY: This is process context. A program of one page has room for no instruction.
        let program = unsafe { bindings::bpf_prog_alloc(64, GFP_KERNEL.as_raw()) };
        let program = NonNull::new(program).ok_or(ENOMEM)?;

        // SAFETY: It is ours.
        unsafe {
            (*program.as_ptr()).bpf_func = Some(function);
            (*(*program.as_ptr()).aux).refcnt.counter = 1;
        }
        Ok(Self(program))
    }

    /// One that can do with frames in several buffers.
    pub(super) fn for_fragments(function: Function) -> Result<Self> {
        let this = Self::new(function)?;

        // SAFETY: It is ours.
        unsafe { (*(*this.as_raw()).aux).xdp_has_frags = true };
        Ok(this)
    }

    pub(super) fn as_raw(&self) -> *mut bindings::bpf_prog {
        self.0.as_ptr()
    }

    /// The number of references.
    pub(super) fn references(&self) -> i64 {
        // SAFETY: It is valid.
        unsafe { (&raw const (*(*self.0.as_ptr()).aux).refcnt.counter).read_volatile() }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The rest of it would use memory that was freed.
        if self.references() != 1 {
            return;
        }
        // SAFETY: This is the last reference. RCU readers are waited for.
        unsafe {
            bindings::synchronize_net();
            bindings::bpf_prog_free(self.0.as_ptr());
        }
    }
}

/// Lets programs act so from now on.
pub(super) fn program_acts(action: bindings::xdp_action, moves: [i32; 3]) {
    ACTION.store(action, Relaxed);
    for (place, by) in MOVES.iter().zip(moves) {
        place.store(by, Relaxed);
    }
}
