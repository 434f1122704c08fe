// SPDX-License-Identifier: GPL-2.0

//! Flow control by pause frames (datasheet 3.7.7).

use kernel::{
    io::register::Array,
    net::device::ethtool::pause::Pause,
    prelude::*, //
};

use crate::{
    flow_director::{
        self,
        Mode, //
    },
    hw::RX_PACKET_BUFFER,
    mmio::Bar0,
    regs::*, //
};

/// As long as pause frames can tell.
const DURATION: u16 = u16::MAX;

/// KiB of the packet buffer that are left when the link partner is asked to pause. By then it may
/// have begun a frame of the largest size, and so may this port, behind which the request waits;
/// the rest is on its way: through 100 m of cable, and through both ports.
const RESERVE: u32 = 2 * 10 + 36;

/// Below it, in KiB, the link partner is asked to go on. More than that is no shortage, and less
/// would leave the NIC without frames while the request is on its way.
const LOW: u32 = RESERVE;

/// Units of 32 bytes in a KiB.
const UNITS: u32 = 32;

/// Both directions, as `ixgbe` begins.
pub(crate) const DEFAULT: Pause = Pause {
    autoneg: false,
    rx: true,
    tx: true,
};

/// Returns whether a receive queue without descriptors drops frames.
///
/// Else its frames wait in the packet buffer. That stalls the other queues behind them, but makes
/// the NIC ask its link partner to pause. Without that, the buffer would only run over.
pub(crate) fn drops(pause: Pause, pairs: u16) -> bool {
    pairs > 1 && !pause.tx
}

/// Returns the bits of the advertisement, for pause frames in both directions and in one.
///
/// To receive them only cannot be advertised: a link partner that sends them may be told that it
/// will get some.
fn advertised(pause: Pause) -> (bool, bool) {
    (pause.rx, pause.rx || pause.tx)
}

/// Passes the setting to the NIC. A link partner with which the NIC negotiates gets to know it
/// when the link is started.
///
/// In a mode that takes memory, the flow director has a part of the packet buffer.
pub(crate) fn apply(bar: &Bar0<'_>, pause: Pause, mode: Mode) -> Result {
    for index in 0..4 {
        // PANIC: `try_at()` never fails here, but the compiler cannot prove it in a loop.
        if let Some(timer) = FCTTV::try_at(index) {
            bar.write(
                timer,
                FCTTV::zeroed().with_odd(DURATION).with_even(DURATION),
            );
        }
    }
    bar.write_reg(FCRTV::zeroed().with_refresh(DURATION / 2));

    // Only the first traffic class has memory.
    bar.write(
        FCRTL::at(0),
        FCRTL::zeroed()
            .with_const_rtl::<{ LOW * UNITS }>()
            .with_xone(pause.tx),
    );
    let high = if mode.takes_memory() {
        FCRTH::zeroed()
            .with_const_rth::<{ (RX_PACKET_BUFFER - flow_director::MEMORY - RESERVE) * UNITS }>()
    } else {
        FCRTH::zeroed().with_const_rth::<{ (RX_PACKET_BUFFER - RESERVE) * UNITS }>()
    };
    bar.write(FCRTH::at(0), high.with_fcen(pause.tx));
    let (both, one) = advertised(pause);
    bar.update(PCS1GANA, |r| r.with_sym_pause(both).with_asm_pause(one))?;
    bar.update(MFLCN, |r| r.with_dpf(true).with_rfce(pause.rx))?;
    bar.update(FCCFG, |r| {
        if pause.tx {
            r.with_const_tfce::<1>()
        } else {
            r.with_const_tfce::<0>()
        }
    })
}

#[kunit_tests(ixgbe_rust_flow)]
mod tests {
    use super::*;

    #[test]
    fn the_advertisement_is_that_of_the_standard() {
        let pause = |rx, tx| Pause { rx, tx, ..DEFAULT };

        assert_eq!(advertised(DEFAULT), (true, true));
        assert_eq!(advertised(pause(true, false)), (true, true));
        assert_eq!(advertised(pause(false, true)), (false, true));
        assert_eq!(advertised(pause(false, false)), (false, false));
    }

    #[test]
    fn queues_drop_unless_the_link_partner_pauses() {
        let pause = |rx, tx| Pause { rx, tx, ..DEFAULT };

        assert!(!drops(DEFAULT, 16));
        assert!(!drops(pause(false, true), 2));
        assert!(drops(pause(true, false), 2));
        assert!(drops(pause(false, false), 16));
        // There is none to be stalled by the only one.
        assert!(!drops(pause(false, false), 1));
    }
}
