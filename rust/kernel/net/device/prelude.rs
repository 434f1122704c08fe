// SPDX-License-Identifier: GPL-2.0

//! Imports that the files of optional capabilities have in common: each adds callbacks to
//! [`OptionalOps`] by a method of its own.

pub(super) use super::{
    ops,
    ops_lock::OpsLocked,
    optional_ops::OptionalOps,
    Device,
    Driver,
    ExtAck, //
};

pub(super) use crate::{
    bindings,
    error::from_result,
    prelude::*, //
};
