// SPDX-License-Identifier: GPL-2.0

//! Interrupts (datasheet 7.3): one MSI-X vector for the queues, one for everything else.

use kernel::{
    io::{
        register::Array,
        Io, //
    },
    num::Bounded,
    prelude::*, //
};

use crate::{
    hw::{
        self,
        Bar0, //
    },
    regs::*, //
};

/// The vector of the queue pair.
pub(crate) const QUEUE_VECTOR: usize = 0;

/// The vector of all other causes.
pub(crate) const EVENT_VECTOR: usize = 1;

/// Number of vectors.
pub(crate) const VECTORS: u32 = 2;

/// Least time between two interrupts of a vector, in units of 2 µs.
const QUEUE_INTERVAL: u32 = 5;
const EVENT_INTERVAL: u32 = 243;

/// What has happened besides reception and transmission.
pub(crate) struct Events {
    /// The link has changed.
    pub(crate) link: bool,
    /// The card has found an error in its memory that it cannot correct.
    pub(crate) memory_error: bool,
}

/// Assigns causes to vectors. All interrupts stay masked.
pub(crate) fn configure(bar: &Bar0<'_>) {
    bar.write_reg(
        GPIE::zeroed()
            .with_multiple_msix(true)
            .with_pba_support(true)
            .with_ocd(true)
            .with_eiame(true),
    );

    bar.write(
        IVAR::at(0),
        IVAR::zeroed()
            .with_const_int_alloc_rx::<{ QUEUE_VECTOR as u32 }>()
            .with_int_alloc_val_rx(true)
            .with_const_int_alloc_tx::<{ QUEUE_VECTOR as u32 }>()
            .with_int_alloc_val_tx(true),
    );
    bar.write_reg(
        IVAR_MISC::zeroed()
            .with_const_int_alloc_other::<{ EVENT_VECTOR as u32 }>()
            .with_int_alloc_val_other(true),
    );

    // The message of the queue vector clears its cause and masks it until it is polled.
    bar.write_reg(EIAC::zeroed().with_rtx_queue(1u16 << QUEUE_VECTOR));
    bar.write(EIAM_EX::at(0), (1u32 << QUEUE_VECTOR).into());
    bar.write(EIAM_EX::at(1), EIAM_EX::zeroed());

    bar.write(
        EITR::at(QUEUE_VECTOR),
        EITR::zeroed()
            .with_itr_interval(Bounded::<u32, 9>::new::<QUEUE_INTERVAL>())
            .with_cnt_wdis(true),
    );
    bar.write(
        EITR::at(EVENT_VECTOR),
        EITR::zeroed().with_itr_interval(Bounded::<u32, 9>::new::<EVENT_INTERVAL>()),
    );
}

/// Unmasks all causes that are handled.
pub(crate) fn enable(bar: &Bar0<'_>) {
    // What is pending belongs to the past.
    bar.read(EICR);
    bar.write_reg(EICR::from(u32::MAX));

    bar.write_reg(EIMS::zeroed().with_lsc(true).with_ecc(true));
    rearm_queue(bar);
    hw::flush(bar);
}

/// Unmasks the queue vector, after its ring has been polled.
#[inline]
pub(crate) fn rearm_queue(bar: &Bar0<'_>) {
    bar.write(EIMS_EX::at(0), (1u32 << QUEUE_VECTOR).into());
}

/// Takes notice of the causes behind the event vector.
pub(crate) fn take_events(bar: &Bar0<'_>) -> Events {
    // Reading EICS shows the causes, writing EICR clears them. Those of queues are left alone.
    const QUEUES: u32 = 0xffff;

    let causes = bar.read(EICS);
    if causes.into_raw() == u32::MAX {
        return Events {
            link: true,
            memory_error: false,
        };
    }
    bar.write_reg(EICR::from(causes.into_raw() & !QUEUES));

    Events {
        link: causes.lsc(),
        memory_error: causes.ecc(),
    }
}

/// Unmasks the link as a cause of the event vector, after that has been handled.
pub(crate) fn rearm_events(bar: &Bar0<'_>) {
    bar.write_reg(EIMS::zeroed().with_lsc(true));
}

/// Masks memory errors until the port is started again. They do not go away, and neither would the
/// interrupts.
pub(crate) fn mask_memory_errors(bar: &Bar0<'_>) {
    bar.write_reg(EIMC::zeroed().with_ecc(true));
}
