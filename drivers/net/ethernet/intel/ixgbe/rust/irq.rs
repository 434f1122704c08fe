// SPDX-License-Identifier: GPL-2.0

//! Interrupts (datasheet 7.3): an MSI-X vector for each queue pair, and one for other causes.

use kernel::{
    io::register::Array,
    num::Bounded,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use crate::{
    mmio::{
        self,
        Bar0, //
    },
    moderation::Setting,
    regs::{
        queue::Pair,
        *, //
    }, //
};

/// Number of vectors besides those of the queue pairs: one for all other causes.
pub(crate) const OTHER_VECTORS: u16 = 1;

/// Minimum time between two interrupts of the event vector, in units of 2 µs.
const EVENT_INTERVAL: u32 = 243;

/// Bits of the queues in [`EICR`] and [`EICS`].
const QUEUES: u32 = 0xffff;

/// Pending causes of the event vector.
pub(crate) struct Events {
    /// The link status has changed.
    pub(crate) link: bool,
    /// A module was put into the cage.
    pub(crate) module: bool,
    /// The light from the link partner has come or gone.
    pub(crate) light: bool,
    /// The NIC has detected an uncorrectable error in its memory.
    pub(crate) memory_error: bool,
}

/// Returns the vector of a pair.
fn vector(pair: Pair) -> Bounded<u32, 6> {
    Bounded::<u32, 6>::from_expr(pair.at() as u32)
}

/// Returns the vector allocation of an even queue pair and of the odd one after it, if any.
fn allocation(even: Pair, odd: Option<Pair>) -> IVAR {
    let ivar = IVAR::zeroed()
        .with_int_alloc_rx(vector(even))
        .with_int_alloc_val_rx(true)
        .with_int_alloc_tx(vector(even))
        .with_int_alloc_val_tx(true);

    match odd {
        Some(odd) => ivar
            .with_int_alloc_rx_odd(vector(odd))
            .with_int_alloc_val_rx_odd(true)
            .with_int_alloc_tx_odd(vector(odd))
            .with_int_alloc_val_tx_odd(true),
        None => ivar,
    }
}

/// Returns that of the transmit queues for frames that are redirected to the port.
fn xmit_allocation(even: Pair, odd: Option<Pair>) -> IVAR {
    let ivar = IVAR::zeroed()
        .with_int_alloc_tx(vector(even))
        .with_int_alloc_val_tx(true);

    match odd {
        Some(odd) => ivar
            .with_int_alloc_tx_odd(vector(odd))
            .with_int_alloc_val_tx_odd(true),
        None => ivar,
    }
}

/// Assigns causes to vectors: a queue pair to the vector of the same number, others to `event`.
///
/// All interrupts stay masked. `cage`: pins of the port tell about a module.
pub(crate) fn configure(bar: &Bar0<'_>, moderation: &Setting, pairs: u16, event: u16, cage: bool) {
    bar.write_reg(
        GPIE::zeroed()
            .with_multiple_msix(true)
            .with_pba_support(true)
            .with_ocd(true)
            .with_eiame(true)
            .with_sdp1_gpien(cage)
            .with_sdp2_gpien(cage),
    );

    let mut all = Pair::first(pairs);
    while let Some(even) = all.next() {
        let odd = all.next();

        bar.write(IVAR::at(even.at() / 2), allocation(even, odd));
        bar.write(
            IVAR::at(even.xdp_xmit().at() / 2),
            xmit_allocation(even, odd),
        );
    }
    bar.write_reg(
        IVAR_MISC::zeroed()
            .with_int_alloc_other(Bounded::<u32, 7>::from_expr(u32::from(event & 0x7f)))
            .with_int_alloc_val_other(true),
    );

    // Sending the message of a queue vector clears its cause and masks it; polling unmasks it.
    let bits = bits(pairs);
    bar.write_reg(EIAC::zeroed().with_rtx_queue(bits as u16));
    bar.write(EIAM_EX::at(0), bits.into());
    bar.write(EIAM_EX::at(1), EIAM_EX::zeroed());

    moderation.apply(bar, pairs);
    if let Some(eitr) = EITR::try_at(event.into()) {
        bar.write(
            eitr,
            EITR::zeroed().with_itr_interval(Bounded::<u32, 9>::new::<EVENT_INTERVAL>()),
        );
    }
}

/// Returns the mask of the vectors of all queue pairs.
fn bits(pairs: u16) -> u32 {
    Pair::first(pairs).fold(0, |bits, pair| bits | pair.bit())
}

/// Returns the causes that are handled and unmasked again.
fn events() -> EIMS {
    EIMS::zeroed()
        .with_lsc(true)
        .with_gpi_sdp1(true)
        .with_gpi_sdp2(true)
}

/// Unmasks all causes that the driver handles.
pub(crate) fn enable(bar: &Bar0<'_>, pairs: u16) {
    // Discard events that are pending from before. Leave the causes of queues alone: reception is
    // on already, and a queue whose ring is full by now does not raise its cause again.
    bar.write_reg(EICR::from(!QUEUES));

    // Without a cage, nothing raises those of the pins.
    bar.write_reg(events().with_ecc(true));
    bar.write(EIMS_EX::at(0), bits(pairs).into());
    mmio::flush(bar);
}

/// Sets whether the vector of a pair tells of frames that its transmit queue for XDP has sent. A
/// reset has it tell of none.
pub(crate) fn set_xdp_tx(bar: &Bar0<'_>, pair: Pair, tells: bool) -> Result {
    let (at, vector) = (pair.xdp_tx().at(), pair.at() as u32);

    bar.update(IVAR::at(at / 2), |r| {
        if at % 2 == 0 {
            r.with_int_alloc_tx(Bounded::<u32, 6>::from_expr(vector))
                .with_int_alloc_val_tx(tells)
        } else {
            r.with_int_alloc_tx_odd(Bounded::<u32, 6>::from_expr(vector))
                .with_int_alloc_val_tx_odd(tells)
        }
    })
}

/// Raises the cause of a queue vector.
pub(crate) fn raise_queue(bar: &Bar0<'_>, pair: Pair) {
    bar.write(EICS_EX::at(0), pair.bit().into());
}

/// Unmasks a queue vector, after its rings have been polled.
#[inline]
pub(crate) fn rearm_queue(bar: &Bar0<'_>, vector: u16) {
    // There are at most 16 vectors. `wrapping_shl()` needs no check that could panic.
    bar.write(EIMS_EX::at(0), 1u32.wrapping_shl(vector.into()).into());
}

/// Reads and clears the pending causes of the event vector.
pub(crate) fn take_events(bar: &Bar0<'_>) -> Events {
    // Reading EICS returns the causes, writing EICR clears them. Leave those of queues alone.
    let Ok(causes) = bar.try_read(EICS) else {
        return Events {
            link: true,
            module: false,
            light: false,
            memory_error: false,
        };
    };
    bar.write_reg(EICR::from(causes.into_raw() & !QUEUES));

    Events {
        link: causes.lsc(),
        module: causes.gpi_sdp2(),
        light: causes.gpi_sdp1(),
        memory_error: causes.ecc(),
    }
}

/// Unmasks events after they have been handled.
pub(crate) fn rearm_events(bar: &Bar0<'_>) {
    bar.write_reg(events());
}

/// Raises the causes of the queue vectors, in case that one got lost. `masked` are those that were
/// masked the last time.
pub(crate) fn raise_queues(bar: &Bar0<'_>, masked: &Atomic<u32>) {
    // Those of the pairs that there are mask themselves.
    let (Ok(all), Ok(unmasked)) = (bar.try_read(EIAM_EX::at(0)), bar.try_read(EIMS_EX::at(0)))
    else {
        return;
    };
    let (unmasked, lost) = split(all.into_raw(), unmasked.into_raw(), masked);

    // A message that gets lost leaves its vector masked, and no poll function unmasks it. If one
    // is about to do so after all, it is called once more.
    if lost != 0 {
        bar.write(EIMS_EX::at(0), lost.into());
    }
    bar.write(EICS_EX::at(0), (unmasked | lost).into());
}

/// Returns which vectors are not masked, and which are this time and were the last time.
fn split(all: u32, unmasked: u32, masked: &Atomic<u32>) -> (u32, u32) {
    let now = all & !unmasked;

    (unmasked, masked.xchg(now, Relaxed) & now)
}

/// A test of all interrupts of a port that is running.
pub(crate) struct Test {
    /// The queue vectors whose interrupt has not been handled yet, as bits.
    queues: u32,
    /// Likewise for the event vector.
    event: u32,
}

impl Test {
    /// Raises a cause of each vector. That of events is a change of the link.
    pub(crate) fn begin(bar: &Bar0<'_>, pairs: u16, event: u16) -> Self {
        let queues = bits(pairs);

        bar.write(EICS_EX::at(0), queues.into());
        bar.write_reg(EICS::zeroed().with_lsc(true));
        Self {
            queues,
            event: 1u32.wrapping_shl(event.into()),
        }
    }

    /// Returns the vectors whose interrupts have not been handled yet, as bits.
    pub(crate) fn missing(&mut self, bar: &Bar0<'_>) -> u32 {
        let causes = bar.read(EICS);
        let unmasked = bar.read(EIMS_EX::at(0)).into_raw();

        // The message has cleared the cause and masked the vector, and the poll function has
        // unmasked it. Of a NIC that is gone, all bits are ones.
        self.queues &= causes.into_raw() | !unmasked;
        // The handler has cleared it.
        if !causes.lsc() {
            self.event = 0;
        }
        self.queues | self.event
    }
}

/// Masks memory errors until the port is started again. Such an error persists until the NIC is
/// reset, and would raise interrupts without end.
pub(crate) fn mask_memory_errors(bar: &Bar0<'_>) {
    bar.write_reg(EIMC::zeroed().with_ecc(true));
}

#[kunit_tests(ixgbe_rust_irq)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_the_numbers_of_their_pairs() {
        let pair = |number| Pair::new(number).ok_or(EINVAL);

        let ivar = pair(0).map(|even| allocation(even, None).into_raw());
        assert_eq!(ivar, Ok(0x0000_8080));
        let ivar = pair(14).and_then(|even| Ok(allocation(even, Some(pair(15)?)).into_raw()));
        assert_eq!(ivar, Ok(0x8f8f_8e8e));
        let ivar = pair(0).map(|even| xmit_allocation(even, None).into_raw());
        assert_eq!(ivar, Ok(0x0000_8000));
        let ivar = pair(14).and_then(|even| Ok(xmit_allocation(even, Some(pair(15)?)).into_raw()));
        assert_eq!(ivar, Ok(0x8f00_8e00));
        assert_eq!(bits(1), 1);
        assert_eq!(bits(16), 0xffff);
    }

    #[test]
    fn vectors_that_stay_masked_have_lost_a_message() {
        let masked = Atomic::new(0);

        assert_eq!(split(0xf, 0xf, &masked), (0xf, 0));
        assert_eq!(split(0xf, 0xc, &masked), (0xc, 0));
        assert_eq!(split(0xf, 0xa, &masked), (0xa, 0x1));
        assert_eq!(split(0xf, 0xb, &masked), (0xb, 0x4));
        // The pairs are fewer now.
        assert_eq!(split(0x3, 0x3, &masked), (0x3, 0));
    }
}
