// SPDX-License-Identifier: GPL-2.0

//! Frames that take more than one receive buffer.

use super::CpuBuffer;
use crate::net::skbuff::UniqueSkBuff;
use core::mem;

/// A frame whose last buffer has not arrived yet.
enum Frame {
    /// The next buffer begins a frame.
    None,
    /// The buffers so far.
    Partial(UniqueSkBuff),
    /// A buffer was lost, and with it the frame: its other buffers are dropped.
    Lost,
}

/// The result of [`Assembler::add`].
pub enum Assembled {
    /// The frame has not ended.
    Pending,
    /// The frame is complete.
    Whole(UniqueSkBuff),
    /// The frame has ended, and was dropped: one of its buffers was lost, there was no memory, or
    /// it had more buffers than an SKB has room for.
    Lost,
}

/// Puts the buffers of frames together, without copying.
///
/// A card that may scatter a frame over several buffers of its receive ring marks the last one. The
/// first buffer becomes the linear part of an SKB, the others its fragments. It belongs to the
/// receive ring, since a frame may have been received in part when the poll function returns.
///
/// # Examples
///
/// ```
/// use kernel::net::page_pool::{
///     Assembled,
///     Assembler,
///     CpuBuffer, //
/// };
///
/// /// Returns the number of bytes of a frame that ends with `buffer`.
/// fn add(frames: &mut Assembler, buffer: Option<CpuBuffer<'_>>, is_last: bool) -> Option<u32> {
///     match frames.add(buffer, is_last) {
///         Assembled::Whole(skb) => Some(skb.len()),
///         Assembled::Pending | Assembled::Lost => None,
///     }
/// }
/// ```
pub struct Assembler(Frame);

impl Assembler {
    /// Begins with a new frame.
    pub const fn new() -> Self {
        Self(Frame::None)
    }

    /// Whether the next buffer begins a frame. If it is the last one, too, it needs no assembling.
    #[inline(always)]
    pub fn is_between_frames(&self) -> bool {
        matches!(self.0, Frame::None)
    }

    /// Adds the next buffer, or notes that it was lost. `is_last` says that the frame ends with it.
    #[inline(never)]
    pub fn add(&mut self, buffer: Option<CpuBuffer<'_>>, is_last: bool) -> Assembled {
        let frame = match (mem::replace(&mut self.0, Frame::Lost), buffer) {
            (Frame::None, Some(buffer)) => buffer.into_skb().map_or(Frame::Lost, Frame::Partial),
            (Frame::Partial(mut skb), Some(buffer)) => match buffer.add_to(&mut skb) {
                Ok(()) => Frame::Partial(skb),
                Err(_) => Frame::Lost,
            },
            _ => Frame::Lost,
        };

        if !is_last {
            self.0 = frame;
            return Assembled::Pending;
        }
        self.0 = Frame::None;
        match frame {
            Frame::Partial(skb) => Assembled::Whole(skb),
            Frame::None | Frame::Lost => Assembled::Lost,
        }
    }
}

impl Default for Assembler {
    fn default() -> Self {
        Self::new()
    }
}
