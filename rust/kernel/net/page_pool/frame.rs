// SPDX-License-Identifier: GPL-2.0

//! Frames that take more than one receive buffer.

use super::CpuBuffer;
use crate::{
    net::skbuff::UniqueSkBuff,
    prelude::*, //
};
use core::mem;

/// A frame whose last buffer has not arrived yet.
enum Assembly {
    /// The next buffer begins a frame.
    None,
    /// The buffers so far.
    Partial(UniqueSkBuff),
    /// It is lost: its other buffers are dropped.
    Lost,
}

/// Puts the buffers of frames together, without copying.
///
/// A NIC that may scatter a frame over several buffers of its receive ring marks the last one. The
/// first buffer becomes the linear part of an SKB, the others its fragments. It belongs to the
/// receive ring, since a frame may have been received in part when the poll function returns.
///
/// # Examples
///
/// ```
/// use kernel::net::page_pool::{
///     Assembler,
///     CpuBuffer, //
/// };
///
/// /// Returns the number of bytes of a frame that ends with `buffer`.
/// fn add(frames: &mut Assembler, buffer: CpuBuffer<'_>, is_last: bool) -> Option<u32> {
///     let frame = frames.add(buffer, is_last).ok()?;
///
///     frame.map(|skb| skb.len())
/// }
/// ```
pub struct Assembler(Assembly);

impl Assembler {
    /// Begins with a new frame.
    pub const fn new() -> Self {
        Self(Assembly::None)
    }

    /// Whether the next buffer begins a frame. If it is the last one, too, it needs no assembling.
    #[inline(always)]
    pub fn is_between_frames(&self) -> bool {
        matches!(self.0, Assembly::None)
    }

    /// Adds the next buffer. `is_last` says that the frame ends with it. Returns the frame if it
    /// has ended, unless it was lost before.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory for the SKB, else as [`CpuBuffer::add_to`]. The frame is
    /// lost: its other buffers are dropped.
    #[inline(never)]
    pub fn add(&mut self, buffer: CpuBuffer<'_>, is_last: bool) -> Result<Option<UniqueSkBuff>> {
        let rest = if is_last {
            Assembly::None
        } else {
            Assembly::Lost
        };
        let skb = match mem::replace(&mut self.0, rest) {
            Assembly::None => buffer.into_skb().ok_or(ENOMEM)?,
            Assembly::Partial(mut skb) => {
                buffer.add_to(&mut skb)?;
                skb
            }
            Assembly::Lost => return Ok(None),
        };

        if is_last {
            return Ok(Some(skb));
        }
        self.0 = Assembly::Partial(skb);
        Ok(None)
    }

    /// Drops the frame that the next buffer belongs to, which was lost.
    #[cold]
    pub fn discard(&mut self, is_last: bool) {
        self.0 = if is_last {
            Assembly::None
        } else {
            Assembly::Lost
        };
    }
}

impl Default for Assembler {
    fn default() -> Self {
        Self::new()
    }
}
