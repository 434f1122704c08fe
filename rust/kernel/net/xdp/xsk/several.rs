// SPDX-License-Identifier: GPL-2.0

//! Received frames in several buffers in memory of users.

use super::{
    parts::{
        Several,
        PARTS, //
    },
    XskCopy,
    XskFrame,
    XskPolling,
    XskVerdict, //
};

use crate::{
    bindings,
    net::{
        queue::RingSlots,
        xdp::{
            BpfProgram,
            XdpFormat, //
        }, //
    }, //
};

use core::ptr;

/// A frame that is not in one buffer, or that is damaged.
pub struct XskOther {
    /// The first word of its last descriptor.
    pub info: u64,
    /// The second word.
    pub status: u64,
    /// The number of bytes.
    pub len: u32,
    /// The decision of the program, with a copy of a frame that passes. [`None`] if there is no
    /// frame: it is damaged or a part of one, or the NIC lies about it.
    pub verdict: Option<XskVerdict<XskCopy>>,
}

/// The rest of the next frame.
enum Rest {
    /// The NIC is done with so many descriptors only.
    Missing(usize),
    /// So many descriptors. If the last of them is not the end, it is longer than a frame can be.
    There(usize),
}

impl<'p, F: XdpFormat> XskPolling<'_, 'p, F> {
    /// Looks for the end of the next frame. The words are read again when its descriptors are
    /// taken: a NIC may have changed them.
    fn rest(&self) -> Rest {
        let ring = &*self.ring;
        let most = PARTS.min(ring.slots.len() - 1);

        for number in 0..most {
            let position = ring.next_done.wrapping_add(RingSlots::position(number));
            // SAFETY: By the type invariants, the instance has the memory.
            let status = unsafe { ring.slots.second(ring.slots.place(position)) };

            if position == ring.next_free || status & F::DONE == 0 {
                return Rest::Missing(number);
            }
            if F::is_end(status) {
                return Rest::There(number + 1);
            }
        }
        Rest::There(most)
    }

    /// Takes the next frame, if the NIC is done with all of its descriptors, has a program decide
    /// on it, and does what that wants. It may be any frame, but this is for those that are in
    /// several buffers, or damaged: see [`XskNext::Other`](super::XskNext::Other).
    ///
    /// Without a program it passes. A program that cannot do with several buffers does not see it:
    /// it is dropped.
    #[cold]
    #[inline(never)]
    pub fn take_other(&mut self, program: Option<BpfProgram<'p>>) -> Option<XskOther> {
        let count = match self.rest() {
            Rest::Missing(done) => {
                self.ring.waiting = done;
                return None;
            }
            Rest::There(count) => count,
        };
        let mut several = None;
        let mut is_good = !self.ring.is_lost;
        let mut words = None;

        self.ring.waiting = 0;
        for _ in 0..count {
            let place = self.ring.slots.place(self.ring.next_done);
            // SAFETY: By the type invariants, the instance has the memory.
            let status = unsafe { self.ring.slots.second(place) };
            let Some((part, info, status)) = self.take(place, status) else {
                // The NIC has changed its mind.
                is_good = false;
                break;
            };

            words = Some([info, status]);
            is_good = is_good && self.add(&mut several, part, F::len(status), count == 1);
        }
        let words @ [info, status] = words?;
        // The rest of it has to be dropped.
        self.ring.is_lost = !F::is_end(status);
        is_good &= F::is_ordinary(status) && F::is_end(status);
        let several = several.filter(|several: &Several<'_>| {
            // The stack looks for the header there.
            is_good && several.head_len() >= bindings::ETH_HLEN
        });

        Some(XskOther {
            info,
            status,
            len: several.as_ref().map_or(0, Several::len),
            verdict: several.map(|several| self.decide(program, several, words)),
        })
    }

    /// Adds a buffer to a frame. Fails if the NIC cannot have written so many bytes.
    fn add(
        &self,
        several: &mut Option<Several<'p>>,
        mut part: XskFrame<'p>,
        len: u16,
        is_whole: bool,
    ) -> bool {
        let room = self.ring.room;
        let most = if is_whole {
            room.whole
        } else {
            room.part.unwrap_or(0)
        };

        // One comparison: zero wraps.
        if u32::from(len).wrapping_sub(1) >= most {
            return false;
        }
        // SAFETY: Just checked. The descriptor is done, and all of them are of the pool of this
        // ring, of which there is no other `Several`: it does not outlive a call.
        unsafe {
            match several {
                Some(several) => several.append(part, len, self.syncs),
                None => {
                    part.set_size(len, self.syncs);
                    *several = Some(Several::new(part, len));
                    true
                }
            }
        }
    }

    /// Has a program decide on a frame, and does what it wants.
    fn decide(
        &mut self,
        program: Option<BpfProgram<'p>>,
        mut several: Several<'p>,
        words: [u64; 2],
    ) -> XskVerdict<XskCopy> {
        let Some(program) = program else {
            return XskVerdict::Pass(XskCopy::of(several, self.cx));
        };

        if !several.is_alone() && !program.program().takes_fragments() {
            return self.abort(program, bindings::xdp_action_XDP_ABORTED);
        }
        several.describe(words, self.offered);
        // SAFETY: As in `run()`. The flags and the list tell of all buffers.
        let action = unsafe {
            bindings::bpf_prog_run_xdp(program.program().as_raw(), several.head().as_raw())
        };

        match action {
            bindings::xdp_action_XDP_PASS => XskVerdict::Pass(XskCopy::of(several, self.cx)),
            bindings::xdp_action_XDP_DROP => XskVerdict::Dropped,
            bindings::xdp_action_XDP_TX => {
                let (tx, pool) = (&mut self.ring.tx, &self.ring.pool);

                // SAFETY: By the type invariants. The frame is of the pool of this ring.
                match unsafe { tx.send_back_several(pool, several.into_parts()) } {
                    Some(len) => XskVerdict::Transmitted(len),
                    None => self.abort(program, action),
                }
            }
            bindings::xdp_action_XDP_REDIRECT if self.redirect_several(program, several) => {
                XskVerdict::Redirected
            }
            other => self.abort(program, other),
        }
    }

    /// Gives a frame to the socket that the program wants. Returns whether that has it. There is no
    /// copy of such a frame for other devices and CPUs.
    fn redirect_several(&self, program: BpfProgram<'p>, mut several: Several<'p>) -> bool {
        let raw = several.head().as_raw();

        self.cx.set_redirected();
        // SAFETY: This is a poll function, with the context of programs that redirect, and the
        // program has run for this frame, which has the description of this queue. Without a
        // frame, C traces that.
        let error = unsafe {
            let (dev, program) = ((*(*raw).rxq).dev, program.program().as_raw());

            if (*bindings::bpf_net_ctx_get_ri()).map_type
                == bindings::bpf_map_type_BPF_MAP_TYPE_XSKMAP
            {
                bindings::xdp_do_redirect(dev, raw, program)
            } else {
                bindings::xdp_do_redirect_frame(dev, raw, ptr::null_mut(), program)
            }
        };

        if error != 0 {
            // C may have given the buffers back. To do so again, as this does, changes nothing.
            return false;
        }
        // C has all of them that it knows of.
        several.clear();
        let _ = several.into_head().into_raw();
        true
    }
}
