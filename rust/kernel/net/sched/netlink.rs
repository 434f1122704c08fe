// SPDX-License-Identifier: GPL-2.0

//! Messages between `tc` and a queueing discipline.

use crate::{
    bindings,
    error::to_result,
    fmt,
    prelude::*,
    str::Formatter,
    transmute::{
        AsBytes,
        FromBytes, //
    }, //
};
use core::{
    marker::PhantomData,
    mem::size_of,
    ptr::NonNull,
    slice, //
};

/// Options, as `tc` sent them.
///
/// # Invariants
///
/// `attribute` points to an attribute that is valid during `'a`, with its payload.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    attribute: NonNull<bindings::nlattr>,
    _message: PhantomData<&'a bindings::nlattr>,
}

impl<'a> Options<'a> {
    /// Returns [`None`] if there are no options.
    ///
    /// # Safety
    ///
    /// `attribute` must be null or point to an attribute that is valid during `'a`, payload and
    /// all, and is at least as long as its header.
    pub(super) unsafe fn from_raw(attribute: *const bindings::nlattr) -> Option<Self> {
        // INVARIANT: By the safety requirements.
        Some(Self {
            attribute: NonNull::new(attribute.cast_mut())?,
            _message: PhantomData,
        })
    }

    /// The payload.
    pub fn bytes(self) -> &'a [u8] {
        let header = size_of::<bindings::nlattr>();

        // SAFETY: By the type invariants, the attribute is valid during `'a`, with the payload that
        // follows its header. The length is that of both.
        unsafe {
            let len = usize::from((*self.attribute.as_ptr()).nla_len).saturating_sub(header);
            slice::from_raw_parts(self.attribute.as_ptr().cast::<u8>().add(header), len)
        }
    }
}

/// The options of a queue that holds a number of packets, `struct tc_fifo_qopt`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct FifoOptions(bindings::tc_fifo_qopt);

// SAFETY: It is an integer.
unsafe impl FromBytes for FifoOptions {}

// SAFETY: It is an integer.
unsafe impl AsBytes for FifoOptions {}

impl FifoOptions {
    /// Returns the options for a limit.
    pub fn new(limit: u32) -> Self {
        Self(bindings::tc_fifo_qopt { limit })
    }

    /// Parses the options.
    ///
    /// # Errors
    ///
    /// `EINVAL`, with a message, if the options are not of this size.
    pub fn parse(options: Options<'_>, extack: &mut ExtAck<'_>) -> Result<Self> {
        let bytes = options.bytes();
        Self::from_bytes_copy(bytes).ok_or_else(|| {
            extack.refuse(
                EINVAL,
                fmt!(
                    "options have {} bytes, and must have {}",
                    bytes.len(),
                    size_of::<Self>()
                ),
            )
        })
    }

    /// The number of packets that the queue can hold.
    pub fn limit(self) -> u32 {
        self.0.limit
    }
}

/// Reports the error in a request to its sender.
///
/// # Invariants
///
/// `raw` is null or points to a `struct netlink_ext_ack` that has no other users during `'a`.
pub struct ExtAck<'a> {
    raw: *mut bindings::netlink_ext_ack,
    _ack: PhantomData<&'a mut bindings::netlink_ext_ack>,
}

impl ExtAck<'_> {
    /// # Safety
    ///
    /// `raw` must be null or point to a `struct netlink_ext_ack` that has no other users during the
    /// lifetime.
    pub(super) unsafe fn from_raw(raw: *mut bindings::netlink_ext_ack) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            raw,
            _ack: PhantomData,
        }
    }

    /// Sets the message that explains why a request is refused, and returns `error`.
    ///
    /// The message is truncated if it is longer than 79 bytes. It replaces an earlier one.
    pub fn refuse(&mut self, error: Error, message: fmt::Arguments<'_>) -> Error {
        let Some(raw) = NonNull::new(self.raw) else {
            return error;
        };
        let raw = raw.as_ptr();

        // SAFETY: By the type invariants, it is valid and has no other users. The buffer is zeroed
        // first, and its last byte is not written to after that, so that the message is terminated.
        unsafe {
            let buffer = &raw mut (*raw)._msg_buf;
            buffer.write([0; bindings::NETLINK_MAX_FMTMSG_LEN as usize]);
            let room = bindings::NETLINK_MAX_FMTMSG_LEN as usize - 1;
            // It is truncated if there is no room.
            let _ = fmt::Write::write_fmt(
                &mut Formatter::from_buffer(buffer.cast::<u8>(), room),
                message,
            );
            (*raw)._msg = buffer.cast::<c_char>();
        }
        error
    }
}

/// A reply to `tc`, in which a discipline reports its options.
///
/// # Invariants
///
/// `skb` points to a netlink message that is being built, and has no other users during `'a`.
pub struct Dump<'a> {
    skb: *mut bindings::sk_buff,
    _message: PhantomData<&'a mut bindings::sk_buff>,
}

impl Dump<'_> {
    /// # Safety
    ///
    /// `skb` must point to a netlink message that is being built, and has no other users during the
    /// lifetime.
    pub(super) unsafe fn from_raw(skb: *mut bindings::sk_buff) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            skb,
            _message: PhantomData,
        }
    }

    /// Adds the options, in the form in which they are sent.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE` if the message has no room for them.
    pub fn options<O: AsBytes>(&mut self, options: &O) -> Result {
        let bytes = options.as_bytes();
        // The length of an attribute is a `u16`, and includes its header.
        let len = u16::try_from(bytes.len().saturating_add(size_of::<bindings::nlattr>()))
            .and(c_int::try_from(bytes.len()))
            .map_err(|_| EMSGSIZE)?;

        // SAFETY: By the type invariants, the message is valid. The bytes are copied.
        to_result(unsafe {
            bindings::nla_put(
                self.skb,
                bindings::TCA_OPTIONS as c_int,
                len,
                bytes.as_ptr().cast(),
            )
        })
    }
}
