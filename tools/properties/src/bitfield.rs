// SPDX-License-Identifier: GPL-2.0

//! Stand-in for the kernel's macros of bit fields, as far as the driver uses them.

/// A type of fields; those that are not of one bit are of [`Bounded`](crate::num::Bounded).
#[macro_export]
macro_rules! bitfield {
    ($(#[$meta:meta])* $vis:vis struct $name:ident($raw:ty) { $($fields:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(clippy::upper_case_acronyms, non_camel_case_types)]
        $vis struct $name(pub(crate) $raw);

        #[allow(dead_code)]
        impl $name {
            pub(crate) const fn from_raw(raw: $raw) -> Self {
                Self(raw)
            }

            pub(crate) const fn into_raw(self) -> $raw {
                self.0
            }

            pub(crate) const fn zeroed() -> Self {
                Self(0)
            }
        }

        impl From<$raw> for $name {
            fn from(raw: $raw) -> Self {
                Self(raw)
            }
        }

        $crate::fields! { $name, $raw, $($fields)* }
    };
}

/// The fields of a type, one by one.
#[macro_export]
macro_rules! fields {
    ($name:ident, $raw:ty, ) => {};

    ($name:ident, $raw:ty, $(#[$meta:meta])* $high:literal:$low:literal $field:ident => bool;
     $($rest:tt)*) => {
        pastey::paste! {
            #[allow(dead_code)]
            impl $name {
                pub(crate) const [<$field:upper _MASK>]: $raw = 1 << $low;

                pub(crate) const fn $field(self) -> bool {
                    self.0 >> $low & 1 != 0
                }

                pub(crate) const fn [<with_ $field>](self, value: bool) -> Self {
                    Self(self.0 & !(1 << $low) | (value as $raw) << $low)
                }
            }
        }
        $crate::fields! { $name, $raw, $($rest)* }
    };

    ($name:ident, $raw:ty, $(#[$meta:meta])* $high:literal:$low:literal $field:ident;
     $($rest:tt)*) => {
        pastey::paste! {
            #[allow(dead_code)]
            impl $name {
                pub(crate) const [<$field:upper _MASK>]: $raw =
                    <$raw>::MAX >> (<$raw>::BITS - ($high - $low + 1)) << $low;

                pub(crate) fn $field(self) -> $crate::num::Bounded<$raw, { $high - $low + 1 }> {
                    $crate::num::Bounded((self.0 & Self::[<$field:upper _MASK>]) >> $low)
                }

                pub(crate) fn [<with_ $field>](
                    self,
                    value: impl Into<$crate::num::Bounded<$raw, { $high - $low + 1 }>>,
                ) -> Self {
                    Self(self.0 & !Self::[<$field:upper _MASK>] | value.into().get() << $low)
                }

                pub(crate) fn [<with_const_ $field>]<const VALUE: $raw>(self) -> Self {
                    self.[<with_ $field>]($crate::num::Bounded(VALUE))
                }

                pub(crate) fn [<try_with_ $field>](
                    self,
                    value: impl Into<u64>,
                ) -> $crate::prelude::Result<Self> {
                    let value = <$raw>::try_from(value.into()).map_err(|_| $crate::prelude::EINVAL)?;
                    if value > Self::[<$field:upper _MASK>] >> $low {
                        return Err($crate::prelude::EINVAL);
                    }
                    Ok(self.[<with_ $field>]($crate::num::Bounded(value)))
                }
            }
        }
        $crate::fields! { $name, $raw, $($rest)* }
    };
}
