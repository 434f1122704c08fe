// SPDX-License-Identifier: GPL-2.0

//! Stand-in for the kernel's prelude.

pub(crate) use crate::dev_err;
pub(crate) use macros::kunit_tests;
pub(crate) use std::ffi::c_uint;

use std::num::TryFromIntError;

/// An error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Error(&'static str);

macro_rules! codes {
    ($($name:ident)*) => {$(
        pub(crate) const $name: Error = Error(stringify!($name));
    )*};
}

codes!(EBUSY EINVAL EIO ENODEV ENXIO EOPNOTSUPP ETIMEDOUT);

impl From<TryFromIntError> for Error {
    fn from(_: TryFromIntError) -> Self {
        EINVAL
    }
}

pub(crate) type Result<T = (), E = Error> = std::result::Result<T, E>;

/// How to allocate, which makes no difference here.
pub(crate) struct Flags;

pub(crate) const GFP_KERNEL: Flags = Flags;

/// Formats a message, and drops it.
#[macro_export]
macro_rules! dev_err {
    ($dev:expr, $($words:tt)*) => {{
        let _ = $dev;
        let _ = format!($($words)*);
    }};
}
