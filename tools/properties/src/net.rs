// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::net`.

pub(crate) mod device;
pub(crate) mod inflight;
pub(crate) mod napi;
pub(crate) mod queue;
pub(crate) mod rx_list;
pub(crate) mod skbuff;
pub(crate) mod xdp;
