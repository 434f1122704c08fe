// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `crate::prelude` of the kernel's sources.

pub(crate) use crate::alloc::{__GFP_NOWARN, KVVec};

#[derive(Debug)]
pub(crate) struct Error;

pub(crate) const EINVAL: Error = Error;

pub(crate) type Result<T = (), E = Error> = std::result::Result<T, E>;
