// SPDX-License-Identifier: GPL-2.0

//! XDP: programs of users, and modules, that decide on frames before these become packets of the
//! stack.
//!
//! C header: [`include/net/xdp.h`](srctree/include/net/xdp.h)
//!
//! A frame is an [`XdpBuff`], which has one owner and ends with the poll that received it.
//! [`XdpPolling::run`] takes it, and returns what the program has left of it by its [`Verdict`].
//! In place of a program there may be a module's [`Handler`]: a driver sees no difference.
//!
//! # Access to the frame
//!
//! While a program runs, nothing else has access to the frame: neither the device, whose descriptor
//! is done, nor the driver, which has given it up. The program may move its ends within the buffer.
//! Where they are is read once, after that.
//!
//! # Lifetimes
//!
//! * A [`Program`] is valid for a run of the poll function, which is a section of RCU readers. It
//!   is read once: all frames of the loop that follows see the same one.
//! * Frames that a program redirects wait on lists of the core until the end of the poll function.
//!   They are flushed then, whatever a driver does or forgets.
//! * Frames that a handler forwards are in the context of the poll function until then.
//! * A frame that a program sends back is in a transmit ring, which is part of the receive queue's
//!   memory, as its pages are of the same pool: they stay mapped, and go back there, several at a
//!   time.
//! * The description of the receive queue that programs see, and the registration of its page pool
//!   as memory of XDP, belong to the NAPI instance, as the pool does. See [`XdpRing`].

mod buff;
mod decide;
mod fragments;
pub(super) mod frame;
pub(super) mod handler;
mod handling;
pub(super) mod hints;
pub(super) mod program;
mod ring;
mod rxq;
mod several;
pub(super) mod tx;
pub mod xsk;

use self::fragments::{
    flags,
    Fragments, //
};
pub use self::{
    buff::XdpBuff,
    decide::Decide,
    handler::{
        Action,
        Handler,
        Port, //
    },
    hints::{
        Hashed,
        HintFormat,
        Hints, //
    },
    program::{
        Attachment,
        BpfProgram,
        HandlerHook,
        Program,
        ProgramKind, //
    },
    ring::{
        Verdict,
        XdpNext,
        XdpPolling,
        XdpReceived,
        XdpRing, //
    },
    tx::{
        XdpTxAddress,
        XdpTxCounts, //
    }, //
};
pub use super::page_pool::ring::transmit::XdpFormat;
