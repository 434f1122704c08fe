// SPDX-License-Identifier: GPL-2.0

//! Receive filters (datasheet 7.1.1, Packet Filtering).

use kernel::{
    io::register::Array,
    net::device::MacAddress,
    prelude::*, //
};

use crate::{
    mmio::{
        self,
        Bar0, //
    },
    regs::*, //
};

/// Number of entries of the exact filter; the first one holds the port's own address.
pub(crate) const UNICAST_ENTRIES: usize = 128;

/// Number of words in the multicast hash table.
const MULTICAST_WORDS: usize = 128;

/// Returns the permanent address, which the NIC has loaded from its EEPROM.
pub(crate) fn permanent_address(bar: &Bar0<'_>) -> MacAddress {
    let low = bar.read(RAL::at(0)).into_raw().to_le_bytes();
    let high = bar.read(RAH::at(0)).into_raw().to_le_bytes();

    MacAddress::from([low[0], low[1], low[2], low[3], high[0], high[1]])
}

/// Splits an address into the values of its two registers.
fn registers_of(address: &MacAddress) -> (RAL, RAH) {
    let [a, b, c, d, e, f] = *address.octets();

    (
        RAL::from(u32::from_le_bytes([a, b, c, d])),
        RAH::zeroed()
            .with_rah(u16::from_le_bytes([e, f]))
            .with_av(true),
    )
}

/// Writes the registers of entry `index` of the exact filter.
fn write_entry(bar: &Bar0<'_>, index: usize, low: RAL, high: RAH) {
    // Invalidate the entry first, so that it never matches half an address.
    if let (Some(ral), Some(rah), Some(invalid)) =
        (RAL::try_at(index), RAH::try_at(index), RAH::try_at(index))
    {
        bar.write(invalid, RAH::zeroed());
        bar.write(ral, low);
        mmio::flush(bar);
        bar.write(rah, high);
    } else if let (Some(ral), Some(rah), Some(invalid)) = (
        RAL_ALL::try_at(index),
        RAH_ALL::try_at(index),
        RAH_ALL::try_at(index),
    ) {
        bar.write(invalid, RAH_ALL::zeroed());
        bar.write(ral, low.into_raw().into());
        mmio::flush(bar);
        bar.write(rah, high.into_raw().into());
    }
}

/// Returns whether entry `index` of the exact filter holds `address`.
fn is_entry(bar: &Bar0<'_>, index: usize, address: &MacAddress) -> bool {
    let (low, high) = registers_of(address);

    if let (Some(ral), Some(rah)) = (RAL::try_at(index), RAH::try_at(index)) {
        let found = bar.read(rah);
        bar.read(ral).into_raw() == low.into_raw() && found.av() && found.rah() == high.rah()
    } else if let (Some(ral), Some(rah)) = (RAL_ALL::try_at(index), RAH_ALL::try_at(index)) {
        let found = bar.read(rah);
        bar.read(ral).into_raw() == low.into_raw() && found.av() && found.rah() == high.rah()
    } else {
        false
    }
}

/// Sets entry `index` of the exact filter to `address`, or clears it.
fn set_entry(bar: &Bar0<'_>, index: usize, address: Option<&MacAddress>) {
    let (low, high) = address.map_or((RAL::zeroed(), RAH::zeroed()), registers_of);
    write_entry(bar, index, low, high);

    // Direct its frames to pool 0, the only one.
    let pools = u32::from(address.is_some());
    if let (Some(low), Some(high)) = (MPSAR_LOW::try_at(index), MPSAR_HIGH::try_at(index)) {
        bar.write(low, pools.into());
        bar.write(high, MPSAR_HIGH::zeroed());
    }
}

/// Sets the port's own address.
pub(crate) fn set_own_address(bar: &Bar0<'_>, address: &MacAddress) {
    set_entry(bar, 0, Some(address));
}

/// Initializes all filters: the port receives frames to its own address and broadcasts.
pub(crate) fn init(bar: &Bar0<'_>, own: &MacAddress) {
    set_own_address(bar, own);
    for index in 1..UNICAST_ENTRIES {
        set_entry(bar, index, None);
    }

    MulticastTable::new().write(bar, false);

    for index in 0..128 {
        if let Some(pfuta) = PFUTA::try_at(index) {
            bar.write(pfuta, PFUTA::zeroed());
        }
    }

    bar.write_reg(FCTRL::zeroed().with_bam(true));
}

/// The multicast hash table.
struct MulticastTable {
    words: [u32; MULTICAST_WORDS],
}

impl MulticastTable {
    /// An empty table.
    fn new() -> Self {
        Self {
            words: [0; MULTICAST_WORDS],
        }
    }

    /// Returns the bit that `address` selects: its last 12 bits, in wire order.
    fn bit_of(address: &MacAddress) -> usize {
        let [.., e, f] = *address.octets();

        usize::from(e >> 4) | usize::from(f) << 4
    }

    /// Adds an address.
    fn add(&mut self, address: &MacAddress) {
        let bit = Self::bit_of(address);

        if let Some(word) = self.words.get_mut(bit / 32) {
            *word |= 1 << (bit % 32);
        }
    }

    /// Writes the table to the NIC.
    fn write(&self, bar: &Bar0<'_>, enable: bool) {
        for (index, word) in self.words.iter().enumerate() {
            if let Some(mta) = MTA::try_at(index) {
                bar.write(mta, (*word).into());
            }
        }
        bar.write_reg(MCSTCTRL::zeroed().with_mfe(enable).with_const_mo::<0>());
    }
}

/// The frames to receive besides broadcasts and those to the port's own address.
pub(crate) struct Selection<U, M> {
    /// All frames.
    pub(crate) promiscuous: bool,
    /// All frames to multicast addresses.
    pub(crate) all_multicast: bool,
    /// Frames to these unicast addresses.
    pub(crate) unicast: U,
    /// Frames to these multicast addresses, and to others with the same hash.
    pub(crate) multicast: M,
}

/// Applies a selection.
///
/// `entries` is the number of those of the exact filter in use.
pub(crate) fn select<U, M>(
    bar: &Bar0<'_>,
    selection: Selection<U, M>,
    entries: &mut usize,
) -> Result
where
    U: Iterator<Item = MacAddress>,
    M: Iterator<Item = MacAddress>,
{
    let mut used = 1;
    let mut overflow = false;
    for address in selection.unicast {
        if used < UNICAST_ENTRIES {
            // Writing an entry takes it out for a moment. While one that goes makes others move up,
            // each of these has two entries.
            if !is_entry(bar, used, &address) {
                set_entry(bar, used, Some(&address));
            }
            used += 1;
        } else {
            // More addresses than entries: become promiscuous, and let the stack filter.
            overflow = true;
        }
    }
    for index in used..*entries {
        set_entry(bar, index, None);
    }
    *entries = used;

    let mut table = MulticastTable::new();
    let mut any = false;
    for address in selection.multicast {
        table.add(&address);
        any = true;
    }
    table.write(bar, any);

    bar.update(FCTRL, |r| {
        r.with_bam(true)
            .with_upe(selection.promiscuous || overflow)
            .with_mpe(selection.promiscuous || selection.all_multicast)
    })
}

#[kunit_tests(ixgbe_rust_filter)]
mod tests {
    use super::*;

    #[test]
    fn multicast_bit_is_the_last_twelve() {
        let all_hosts = MacAddress::from([0x01, 0x00, 0x5e, 0x00, 0x00, 0x01]);
        assert_eq!(MulticastTable::bit_of(&all_hosts), 0x010);

        let high = MacAddress::from([0x01, 0x00, 0x5e, 0x00, 0xff, 0xff]);
        assert_eq!(MulticastTable::bit_of(&high), 0xfff);
    }

    #[test]
    fn address_is_little_endian_in_registers() {
        let (low, high) = registers_of(&MacAddress::from([0, 0x1b, 0x21, 1, 2, 3]));

        assert_eq!(low.into_raw(), 0x0121_1b00);
        assert_eq!(high.into_raw(), 0x8000_0302);
    }
}
