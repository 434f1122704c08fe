// SPDX-License-Identifier: GPL-2.0

//! The registers that `ethtool -d` shows.
//!
//! Counters and causes of interrupts are not among them: reading clears those.

use kernel::io::register::Array;

use crate::{
    mmio::Bar0,
    regs::{
        medium::*,
        queue::*,
        *, //
    }, //
};

/// Number of registers for a queue pair.
const PER_PAIR: usize = 12;

/// Number of registers for the port.
const GENERAL: usize = 27;

/// Number of all registers.
pub(crate) const LEN: usize = GENERAL + PER_PAIR * MAX_PAIRS as usize;

/// Version of the layout: that of this driver, so that `ethtool` shows it in hexadecimal.
pub(crate) const VERSION: u32 = 0;

fn general(bar: &Bar0<'_>) -> [u32; GENERAL] {
    [
        bar.read(CTRL).into_raw(),
        bar.read(STATUS).into_raw(),
        bar.read(CTRL_EXT).into_raw(),
        bar.read(ESDP).into_raw(),
        bar.read(LEDCTL).into_raw(),
        bar.read(EEC).into_raw(),
        bar.read(EIAC).into_raw(),
        bar.read(EIMS).into_raw(),
        bar.read(GPIE).into_raw(),
        bar.read(IVAR_MISC).into_raw(),
        bar.read(HLREG0).into_raw(),
        bar.read(MAXFRS).into_raw(),
        bar.read(AUTOC).into_raw(),
        bar.read(AUTOC2).into_raw(),
        bar.read(RXCSUM).into_raw(),
        bar.read(FCTRL).into_raw(),
        bar.read(MRQC).into_raw(),
        bar.read(RDRXCTL).into_raw(),
        bar.read(RXCTRL).into_raw(),
        bar.read(DMATXCTL).into_raw(),
        bar.read(MFLCN).into_raw(),
        bar.read(FCCFG).into_raw(),
        bar.read(FCRTL::at(0)).into_raw(),
        bar.read(FCRTH::at(0)).into_raw(),
        bar.read(WUC).into_raw(),
        bar.read(WUFC).into_raw(),
        bar.read(PCS1GANA).into_raw(),
    ]
}

fn of_pair(bar: &Bar0<'_>, pair: Pair) -> [u32; PER_PAIR] {
    let at = pair.at();

    [
        bar.read(EITR::at(at)).into_raw(),
        bar.read(RDBAL::at(at)).into_raw(),
        bar.read(RDBAH::at(at)).into_raw(),
        bar.read(RDLEN::at(at)).into_raw(),
        bar.read(RDH::at(at)).into_raw(),
        bar.read(RDT::at(at)).into_raw(),
        bar.read(RXDCTL::at(at)).into_raw(),
        bar.read(SRRCTL::at(at)).into_raw(),
        bar.read(TDLEN::at(at)).into_raw(),
        bar.read(TDH::at(at)).into_raw(),
        bar.read(TDT::at(at)).into_raw(),
        bar.read(TXDCTL::at(at)).into_raw(),
    ]
}

/// Reads the registers: those of the port, then those of each possible queue pair.
pub(crate) fn fill(bar: &Bar0<'_>, values: &mut [u32]) {
    let (first, pairs) = values.split_at_mut(GENERAL.min(values.len()));

    for (value, register) in first.iter_mut().zip(general(bar)) {
        *value = register;
    }
    for (values, pair) in pairs.chunks_mut(PER_PAIR).zip(Pair::first(MAX_PAIRS)) {
        for (value, register) in values.iter_mut().zip(of_pair(bar, pair)) {
            *value = register;
        }
    }
}
