// SPDX-License-Identifier: GPL-2.0

//! Files of the driver: the folder `ixgbe/` is a link to its own. The rest is not here, as it does
//! nothing with what a card says but to hand it on, or needs a kernel around it.

#![allow(
    dead_code,
    missing_docs,
    unused_imports,
    clippy::all,
    reason = "the kernel's linters read them"
)]

#[rustfmt::skip]
pub(crate) mod desc;
#[rustfmt::skip]
pub(crate) mod director_hash;
#[rustfmt::skip]
pub(crate) mod eeprom;
#[rustfmt::skip]
pub(crate) mod mmio;
#[rustfmt::skip]
pub(crate) mod regs;
#[rustfmt::skip]
pub(crate) mod semaphore;
#[rustfmt::skip]
pub(crate) mod sfp;

pub(crate) mod i2c {
    //! Stand-in for the bus to the module, which takes a hundred accesses for each byte.

    use super::mmio::Bar0;
    use crate::prelude::*;

    #[derive(Clone, Copy)]
    pub(crate) enum Page {
        Id,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Transfer {
        Together,
        Alone,
    }

    pub(crate) fn read(
        bar: &Bar0<'_>,
        _port: u32,
        _page: Page,
        offset: u8,
        bytes: &mut [u8],
        _transfer: Transfer,
    ) -> Result {
        for (byte, at) in bytes.iter_mut().zip(usize::from(offset)..) {
            *byte = bar.0.module(at).ok_or(ENXIO)?;
        }
        Ok(())
    }
}
