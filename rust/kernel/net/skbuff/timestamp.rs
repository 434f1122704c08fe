// SPDX-License-Identifier: GPL-2.0

//! Time stamps of packets by the clock of a NIC.

use super::{
    SkBuff,
    UniqueSkBuff, //
};

use crate::{
    bindings,
    net::device::Device, //
};

use core::ptr::NonNull;

impl UniqueSkBuff {
    /// Sets the time at which the packet was received, in nanoseconds of the clock of its NIC.
    pub fn set_timestamp(&mut self, nanoseconds: u64) {
        // SAFETY: The shared info of a valid packet is valid, and it is ours alone.
        //
        // CAST: `ktime_t` has a sign.
        unsafe {
            (*self.shared_info())
                .__bindgen_anon_1
                .hwtstamps
                .__bindgen_anon_1
                .hwtstamp = nanoseconds as bindings::ktime_t
        };
    }
}

impl SkBuff {
    /// Whether the sender wants to know when the NIC sends the packet, by the clock of the NIC.
    #[inline(always)]
    pub fn wants_timestamp(&self) -> bool {
        // The flag of BPF programs stands for any time stamp.
        const WANTED: u32 = bindings::SKBTX_HW_TSTAMP_NOBPF | bindings::SKBTX_BPF;

        // SAFETY: The shared info of a valid packet is valid.
        u32::from(unsafe { (*self.shared_info()).tx_flags }) & WANTED != 0
    }

    /// Whether the sender wants to know when the packet is sent, by the clock of the NIC or by the
    /// system's.
    #[inline(always)]
    pub(in crate::net) fn wants_any_time(&self) -> bool {
        const WANTED: u32 =
            bindings::SKBTX_HW_TSTAMP_NOBPF | bindings::SKBTX_SW_TSTAMP | bindings::SKBTX_BPF;

        // SAFETY: The shared info of a valid packet is valid.
        u32::from(unsafe { (*self.shared_info()).tx_flags }) & WANTED != 0
    }

    /// Promises the sender of a packet, which is about to be sent, the time at which the NIC does.
    ///
    /// Until that is known, there is one more reference to the packet: those who have a
    /// [`UniqueSkBuff`], or one that the stack may get back, cannot call this. Meanwhile the sender
    /// gets no time in software, unless it has asked for both.
    pub fn promise_timestamp(&mut self) -> TxTimestamp {
        let raw = self.as_raw();

        // SAFETY: The packet is valid, and we add a reference for the result. As in C, whoever
        // sends the packet writes the flags, which clones share.
        unsafe {
            // CAST: The flags have 8 bits.
            (*self.shared_info()).tx_flags |= bindings::SKBTX_IN_PROGRESS as u8;
            let skb = NonNull::new_unchecked(bindings::skb_get(raw));
            TxTimestamp(SkBuff::from_raw(skb))
        }
    }
}

/// The time of a packet that is being sent, for its sender, see [`SkBuff::promise_timestamp`].
///
/// If it is dropped, the sender does not get it.
pub struct TxTimestamp(SkBuff);

impl TxTimestamp {
    /// Tells the sender when `dev` has sent the packet, in nanoseconds of the clock of the NIC.
    ///
    /// If it was given to another device to send, the sender does not get to know it: the report
    /// would name that one, which may be gone. Any context but hard interrupts.
    pub fn report(self, dev: &Device, nanoseconds: u64) {
        // SAFETY: The packet is valid, and it has this field until it is received.
        let sender = unsafe {
            (*self.0.as_raw())
                .__bindgen_anon_1
                .__bindgen_anon_1
                .__bindgen_anon_1
                .dev
        };
        if sender != dev.as_raw() {
            return self.give_up();
        }
        let mut stamp = bindings::skb_shared_hwtstamps::default();

        // CAST: `ktime_t` has a sign.
        stamp.__bindgen_anon_1.hwtstamp = nanoseconds as bindings::ktime_t;
        // SAFETY: The packet is valid, and C copies the stamp.
        unsafe { bindings::skb_tstamp_tx(self.0.as_raw(), &raw mut stamp) };
        self.0.consume();
    }

    /// Whether others have the packet, too: while a ring does, it may still be sent.
    ///
    /// Once it is false, it stays so.
    pub fn is_pending(&self) -> bool {
        self.0.is_shared()
    }

    /// The sender does not get to know it.
    pub fn give_up(self) {
        self.0.consume();
    }
}
