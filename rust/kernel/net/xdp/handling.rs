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

use crate::bindings;

use core::{
    mem,
    ptr::NonNull,
    slice, //
};

impl<'p, F: XdpFormat> XdpPolling<'_, 'p, F> {
    /// As [`Self::run`], of a handler.
    #[inline(never)]
    pub(super) fn handle(&mut self, hook: &'p Hook, buff: XdpBuff<'p, F>) -> Verdict<'p, F> {
        if buff.has_fragments() {
            self.ring.context.raw.data_hard_start = buff.buffer.address(F::LAYOUT);
            *self.flags() = buff.flags;
            self.recycle(buff.into_buffer(), true);
            *self.flags() = 0;
            return Verdict::Aborted;
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
            Action::Forward(port) => self.forward(port, buff),
        }
    }

    /// Sends a frame back.
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

    /// Forwards a frame to another device. `port` is the handler's, so it exists until the poll is
    /// over.
    fn forward(&mut self, port: &Port, buff: XdpBuff<'p, F>) -> Verdict<'p, F> {
        let len = buff.len;
        let raw = &mut self.ring.context.raw;

        raw.data_hard_start = buff.buffer.address(F::LAYOUT);
        raw.data = raw
            .data_hard_start
            .wrapping_byte_add(buff.headroom as usize);
        raw.data_end = raw.data.wrapping_byte_add(len as usize);
        raw.data_meta = raw.data.wrapping_byte_sub(buff.metasize as usize);
        let buffer = buff.into_buffer();
        let dev = port.dev();
        // SAFETY: The device exists, as a poll function is a section of RCU readers.
        let is_ready = !dev.is_null() && unsafe { bindings::xdp_ok_fwd_dev(dev, len) } == 0;
        let frame = if is_ready {
            // SAFETY: The context describes the frame, which is ours alone.
            NonNull::new(unsafe { bindings::xdp_convert_buff_to_frame(raw) })
        } else {
            None
        };

        match frame {
            Some(frame) => {
                // It is the frame's.
                mem::forget(buffer);
                // SAFETY: The frame is valid, in memory of a pool of this instance: there is no
                // other `XdpBuff` in this poll. It is not netpoll, or there would be none at all.
                unsafe { self.cx.forward(port, frame) };
                Verdict::Redirected
            }
            None => {
                port.count_dropped(1);
                self.give_back(buffer);
                Verdict::Aborted
            }
        }
    }
}
