// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::io`.

pub(crate) use crate::register;

/// Registers, whose layout is a type, and whose name is also that of the function that makes a value.
#[macro_export]
macro_rules! register {
    ($(
        $(#[$meta:meta])*
        $vis:vis $name:ident($raw:ty) $([$($array:tt)*])? @ $offset:literal { $($fields:tt)* }
    )*) => {$(
        $crate::bitfield! {
            $(#[$meta])*
            $vis struct $name($raw) { $($fields)* }
        }

        impl $crate::io::register::Register for $name {
            const OFFSET: usize = $offset;
        }

        impl From<$name> for $raw {
            fn from(value: $name) -> Self {
                value.0
            }
        }
    )*};
}

pub(crate) mod register {
    //! Stand-in for `kernel::io::register`.

    /// A register.
    pub(crate) trait Register {
        const OFFSET: usize;
    }
}

pub(crate) mod poll {
    //! Stand-in for `kernel::io::poll`.

    use crate::prelude::{Result, ETIMEDOUT};
    use crate::time::delay::fsleep;
    use crate::time::{Delta, Instant, Monotonic};

    pub(crate) fn read_poll_timeout<T>(
        mut read: impl FnMut() -> Result<T>,
        mut cond: impl FnMut(&T) -> bool,
        interval: Delta,
        timeout: Delta,
    ) -> Result<T> {
        let begun = Instant::<Monotonic>::now();

        loop {
            let value = read()?;
            if cond(&value) {
                return Ok(value);
            }
            if begun.elapsed() > timeout {
                return Err(ETIMEDOUT);
            }
            fsleep(interval);
        }
    }
}
