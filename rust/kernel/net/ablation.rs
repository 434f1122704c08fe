// SPDX-License-Identifier: GPL-2.0

//! Mechanisms that a benchmark turns off, to find out what each of them is worth.
//!
//! Each has a plain form, which is used while its key is enabled. Without `CONFIG_NET_ABLATION`
//! there are no keys, and no code for the plain forms.
//!
//! C header: [`include/net/net_ablation.h`](srctree/include/net/net_ablation.h)

/// Whether a mechanism is off, by the name of its key.
macro_rules! is_off {
    ($mechanism:ident) => {{
        #[cfg(CONFIG_NET_ABLATION)]
        // SAFETY: It is a static key of C's.
        let is_off = unsafe {
            $crate::jump_label::static_branch_unlikely!(
                $crate::bindings::net_ablation,
                $crate::bindings::net_ablation,
                $mechanism
            )
        };
        #[cfg(not(CONFIG_NET_ABLATION))]
        let is_off = false;

        is_off
    }};
}

pub(super) use is_off;
