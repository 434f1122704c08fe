// SPDX-License-Identifier: GPL-2.0

//! Tests of a port for users (`ethtool -t`).

use kernel::{
    io::register::{
        Array,
        RegisterArray, //
    },
    net::device::{
        ethtool::self_test::{
            SelfTest,
            TestFailure,
            TestResult, //
        },
        OpsLocked, //
    },
    prelude::*,
    time::Delta, //
};

use crate::{
    eeprom,
    hw,
    irq,
    mmio::{
        self,
        Bar0, //
    },
    port::{
        Port,
        PortDriver, //
    },
    regs::{
        queue::*,
        *, //
    }, //
};

/// All tests.
pub(crate) const TESTS: &[SelfTest<PortDriver>] = &[
    SelfTest::offline("Register test", |port, _netdev, _lock| registers(&port)),
    SelfTest::offline("EEPROM test", |port, _netdev, _lock| eeprom(&port)),
    SelfTest::loopback("Loopback test", |port, _netdev, on, _locks| {
        port.loop_back(on)
    }),
    SelfTest::online("Interrupt test", |port, netdev, lock| {
        interrupts(&port, netdev.is_running(), lock)
    }),
    SelfTest::online("Link test", |_port, netdev, _lock| {
        link(netdev.is_carrier_ok())
    }),
];

/// Registers of a kind that hold what is written, as long as neither queues nor the receiver are
/// enabled.
struct Holds {
    offset: usize,
    stride: usize,
    count: usize,
    /// The bits that can be written.
    mask: u32,
}

impl Holds {
    /// The first registers of an array.
    const fn first<R: RegisterArray<Storage = u32>>(count: usize, mask: u32) -> Self {
        assert!(count <= R::SIZE);
        Self {
            offset: R::OFFSET,
            stride: R::STRIDE,
            count,
            mask,
        }
    }
}

/// Those that are tested. Bits that the datasheet reserves are not.
const REGISTERS: &[Holds] = &[
    Holds::first::<FCTTV>(4, u32::MAX),
    Holds::first::<FCRTL>(8, 0x8007_ffe0),
    Holds::first::<FCRTH>(8, 0x8007_ffe0),
    Holds::first::<RDBAL>(16, 0xffff_ff80),
    Holds::first::<RDBAH>(16, u32::MAX),
    Holds::first::<RDLEN>(16, 0x000f_ff80),
    Holds::first::<TDBAL>(16, 0xffff_ff80),
    Holds::first::<TDBAH>(16, u32::MAX),
    Holds::first::<TDLEN>(16, 0x000f_ff80),
    Holds::first::<RAL>(16, u32::MAX),
    Holds::first::<RAH>(16, 0x8000_ffff),
    Holds::first::<MTA>(128, u32::MAX),
    Holds::first::<VFTA>(128, u32::MAX),
];

/// The values that are written to them: neighbouring bits differ, then all have both values.
const PATTERNS: [u32; 4] = [0x5a5a_5a5a, 0xa5a5_a5a5, 0, u32::MAX];

/// Returns whether the register at `offset` holds the bits of `mask`.
fn holds(bar: &Bar0<'_>, offset: usize, mask: u32) -> Result<bool> {
    for pattern in PATTERNS {
        let wanted = pattern & mask;

        bar.write_at(offset, wanted)?;
        if bar.read_at(offset)? & mask != wanted {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Tests whether registers hold what is written. The code is the offset of the first one that does
/// not.
///
/// The reset after this brings back their values.
fn registers(port: &Port<'_>) -> TestResult {
    if port.bar.is_gone() {
        return Err(ENODEV.into());
    }
    // Without a link, transmit queues are not waited for, and may not stop before a reset.
    if Pair::first(MAX_PAIRS).any(|pair| port.bar.read(TXDCTL::at(pair.at())).enable()) {
        hw::reset(port.device(), &port.bar)?;
    }
    for kind in REGISTERS {
        for index in 0..kind.count {
            let offset = kind.offset + index * kind.stride;

            if !holds(&port.bar, offset, kind.mask)? {
                // CAST: It is less than `BAR_SIZE`.
                return Err(TestFailure::with_code(offset as u32));
            }
        }
    }
    Ok(())
}

/// Tests the checksum of the EEPROM.
fn eeprom(port: &Port<'_>) -> TestResult {
    port.with_eeprom(|bar| eeprom::check(port.device(), bar))?;
    Ok(())
}

/// Returns the number of packets of each queue pair, in both directions.
fn packets(port: &Port<'_>) -> [u64; MAX_PAIRS as usize] {
    core::array::from_fn(|number| {
        // CAST: It is less than `MAX_PAIRS`.
        let number = number as u16;
        let (rx, tx) = (port.stats.rx_queue(number), port.stats.tx_queue(number));

        rx.packets.wrapping_add(tx.packets)
    })
}

/// Tests whether all interrupts come that the NIC raises. The code has a bit for each vector whose
/// interrupt does not.
///
/// The handlers run as for any other interrupt: they find no work, or the work that there is. A
/// port that is down has no handlers.
fn interrupts<'bound>(
    port: &Port<'bound>,
    is_running: bool,
    lock: &OpsLocked<'bound>,
) -> TestResult {
    /// Longer than a busy host keeps a virtual machine from its CPUs.
    const TIMEOUT: Delta = Delta::from_secs(5);

    if !is_running {
        return Err(ENETDOWN.into());
    }
    let pairs = port.pairs(lock);
    let before = packets(port);
    let mut test = irq::Test::begin(&port.bar, pairs, port.event_vector());

    let _ = mmio::poll(
        || Ok(test.missing(&port.bar)),
        |missing| *missing == 0,
        Delta::from_millis(1),
        TIMEOUT,
    );
    // A queue that is polled all the time has no interrupts, but packets.
    let mut missing = test.missing(&port.bar);
    for (pair, (before, now)) in Pair::first(pairs).zip(before.into_iter().zip(packets(port))) {
        if before != now {
            missing &= !pair.bit();
        }
    }
    match missing {
        0 => Ok(()),
        _ => Err(TestFailure::with_code(missing)),
    }
}

/// Tests whether there is a link.
fn link(has_carrier: bool) -> TestResult {
    if has_carrier {
        Ok(())
    } else {
        Err(TestFailure::with_code(1))
    }
}
