// SPDX-License-Identifier: GPL-2.0

//! Reasons for refusals.
//!
//! C header: [`include/linux/netlink.h`](srctree/include/linux/netlink.h)

use crate::{
    bindings,
    fmt,
    prelude::*,
    str::{
        CStr,
        NullTerminatedFormatter, //
    }, //
};

use core::{
    fmt::Write,
    marker::PhantomData, //
};

/// The means to tell the user why a request is refused.
pub struct ExtAck<'a> {
    raw: *mut bindings::netlink_ext_ack,
    _request: PhantomData<&'a ()>,
}

impl ExtAck<'_> {
    /// # Safety
    ///
    /// `raw` must be null, or valid during the lifetime.
    pub(in crate::net::device) unsafe fn new(raw: *mut bindings::netlink_ext_ack) -> Self {
        Self {
            raw,
            _request: PhantomData,
        }
    }

    /// Notes the reason for a refusal, and returns `error`.
    pub fn refuse(&self, error: Error, reason: &'static CStr) -> Error {
        if !self.raw.is_null() {
            // SAFETY: The pointer is valid. The reason is static.
            unsafe { (*self.raw)._msg = reason.as_char_ptr() };
        }
        error
    }

    /// As [`Self::refuse`], with a reason of up to 79 characters that depends on the case.
    pub fn refuse_with(&self, error: Error, reason: fmt::Arguments<'_>) -> Error {
        if !self.raw.is_null() {
            // SAFETY: The pointer is valid, and the buffer there is for such messages. Its
            // characters are bytes.
            let buffer = unsafe {
                &mut *(&raw mut (*self.raw)._msg_buf)
                    .cast::<[u8; bindings::NETLINK_MAX_FMTMSG_LEN as usize]>()
            };

            if let Some(mut buffer) = NullTerminatedFormatter::new(buffer) {
                // It is truncated if it does not fit.
                let _ = buffer.write_fmt(reason);
            }
            // SAFETY: The pointer is valid, and the message ends within the buffer.
            unsafe { (*self.raw)._msg = (&raw const (*self.raw)._msg_buf).cast() };
        }
        error
    }
}
