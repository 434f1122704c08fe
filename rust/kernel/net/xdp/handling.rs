// SPDX-License-Identifier: GPL-2.0

//! Frames that a handler decides on, in place of a program.

use super::{
    handler::{
        Action,
        Hook,
        Port, //
    },
    Verdict,
    XdpBuff,
    XdpFormat,
    XdpPolling, //
};

use crate::{
    bindings,
    net::page_pool::DeviceBuffer,
    prelude::*, //
};

use core::{
    mem,
    ptr::NonNull,
    slice, //
};

impl<'p, F: XdpFormat> XdpPolling<'_, 'p, F> {
    /// As [`Self::run`], of a handler.
    #[inline(always)]
    pub(super) fn handle(&mut self, hook: &'p Hook, buff: XdpBuff<'p, F>) -> Verdict<'p, F> {
        if buff.has_fragments() {
            return self.refuse_several(buff);
        }
        let start = buff
            .buffer
            .address(F::LAYOUT)
            .wrapping_byte_add(buff.headroom as usize);
        // SAFETY: By the invariants of `XdpBuff`, the frame is there, which is ours alone, and the
        // NIC does not use it. It is initialized, for the purposes of Rust: a device wrote it, or a
        // program has added to it.
        let bytes = unsafe { slice::from_raw_parts_mut(start.cast::<u8>(), buff.len as usize) };

        // SAFETY: By the invariants of `Hook`: it was not revoked when the poll began, which is a
        // section of RCU readers.
        match unsafe { (hook.call)(hook.data, bytes) } {
            Action::Pass => Verdict::Pass(buff),
            Action::Drop => {
                self.give_back(buff.into_buffer());
                Verdict::Dropped
            }
            Action::SendBack => self.send_back(buff),
            Action::Forward(port) => self.forward(port, buff, start),
        }
    }

    /// Drops a frame in several buffers.
    #[cold]
    #[inline(never)]
    fn refuse_several(&mut self, buff: XdpBuff<'p, F>) -> Verdict<'p, F> {
        self.ring.context.raw.data_hard_start = buff.buffer.address(F::LAYOUT);
        *self.flags() = buff.flags;
        self.recycle(buff.into_buffer(), true);
        *self.flags() = 0;
        Verdict::Aborted
    }

    /// Sends a frame back.
    #[inline(always)]
    fn send_back(&mut self, buff: XdpBuff<'p, F>) -> Verdict<'p, F> {
        // CAST: They are within a page.
        let (headroom, len) = (buff.headroom as u16, buff.len as u16);
        let buffer = buff.into_buffer();
        let (mut rx, tx) = self.rings();

        // SAFETY: By the type invariants, this is the transmit ring. By those of `XdpBuff`, the
        // frame is in the buffer, with room for a `struct skb_shared_info` behind it.
        match unsafe { rx.transmit(tx, buffer, headroom, len) } {
            Ok(sent) => Verdict::Transmitted(sent.into()),
            Err(buffer) => {
                self.give_back(buffer);
                Verdict::Aborted
            }
        }
    }

    /// Forwards a frame, which begins at `start`, to another device. `port` is the handler's, so it
    /// exists until the poll is over.
    #[inline(always)]
    fn forward(&mut self, port: &Port, buff: XdpBuff<'p, F>, start: *mut c_void) -> Verdict<'p, F> {
        let dev = port.dev();
        // SAFETY: The device exists, as a poll function is a section of RCU readers.
        let is_ready = !dev.is_null() && unsafe { bindings::xdp_ok_fwd_dev(dev, buff.len) } == 0;
        if !is_ready {
            return self.lose(port, buff.into_buffer());
        }
        let raw = &mut self.ring.context.raw;

        // Here, so that it is still known what C reads.
        raw.data_hard_start = start.wrapping_byte_sub(buff.headroom as usize);
        raw.data = start;
        raw.data_end = raw.data.wrapping_byte_add(buff.len as usize);
        raw.data_meta = raw.data.wrapping_byte_sub(buff.metasize as usize);
        let buffer = buff.into_buffer();
        // SAFETY: The context describes the frame, which is ours alone.
        let frame = NonNull::new(unsafe { bindings::xdp_convert_buff_to_frame(raw) });
        let Some(frame) = frame else {
            return self.lose(port, buffer);
        };

        // It is the frame's.
        mem::forget(buffer);
        // SAFETY: The frame is valid, in memory of a pool of this instance: there is no other
        // `XdpBuff` in this poll. It is not netpoll, or there would be none at all.
        unsafe { self.cx.forward(port, frame) };
        Verdict::Redirected
    }

    /// Drops a frame that cannot be forwarded.
    #[cold]
    #[inline(never)]
    fn lose(&mut self, port: &Port, buffer: DeviceBuffer) -> Verdict<'p, F> {
        port.count_dropped(1);
        self.give_back(buffer);
        Verdict::Aborted
    }
}
