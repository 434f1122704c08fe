// SPDX-License-Identifier: GPL-2.0

//! The prelude of the files of optional capabilities, each of which adds callbacks to
//! [`OptionalOps`] by a method of its own.
//!
//! It has what every such file needs, `kernel::prelude` included, so that a later capability is its
//! own file and one line. Beside `kernel::prelude`, the abstractions import nothing else by a `*`.

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
