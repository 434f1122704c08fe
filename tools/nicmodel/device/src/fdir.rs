// SPDX-License-Identifier: GPL-2.0
//! Flow director in perfect-match mode: filters that choose the queue of a packet by its fields
//! (7.1.2.7, 8.2.3.21).
//!
//! Signature filters, those of the other mode, are taken and have no effect. So are filters for
//! IPv6, which the stock driver does not use.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::device::Device;
use crate::packet::{Network, Parsed, SCTP, TCP, UDP, be16};
use crate::regs::bits::{Fdircmd, Fdirctrl, Fdirhash, Fdirm, Register};
use crate::regs::file::RegisterFile;
use crate::regs::offset;

/// Bits of the hash that choose a bucket.
const BUCKETS: u16 = 0x1fff;
/// Bits of a VLAN tag: the id, and the priority.
const VLAN_ID: u16 = 0x0fff;
const VLAN_PRIORITY: u16 = 0xe000;

/// The fields of a packet that a filter looks at; those that are masked are zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Fields {
    source: u32,
    destination: u32,
    /// The source port in the upper half, the destination port in the lower one.
    ports: u32,
    vlan: u16,
    /// Two bytes at a place that FDIRCTRL says.
    flex: u16,
    /// L4TYPE of FDIRCMD.
    l4: u8,
}

impl Fields {
    /// Those of the registers.
    fn of(regs: &RegisterFile, command: Fdircmd) -> Self {
        let ports = regs.load(offset::FDIRPORT);
        let vlan = regs.load(offset::FDIRPORT + 4);
        Self {
            source: regs.load(offset::FDIRIP + 12).swap_bytes(),
            destination: regs.load(offset::FDIRIP + 16).swap_bytes(),
            ports: ports.rotate_left(16),
            vlan: vlan as u16,
            flex: ((vlan >> 16) as u16).swap_bytes(),
            l4: command.l4type().value(),
        }
    }

    /// The bucket: each bit of the fields in which it is set adds a window of the key.
    fn bucket(&self, key: u32) -> u16 {
        let body = self.source ^ self.destination ^ self.ports ^ u32::from(self.flex) << 16;
        let mut hash = (0..32)
            .filter(|bit| body >> bit & 1 != 0)
            .fold(0, |hash, bit| hash ^ window(key, bit + 16));
        // Type and VLAN are at the end of the stream of bits, which has one bit less than a
        // multiple of 32: they count twice.
        let head = u32::from(self.l4) << 16 | u32::from(self.vlan);
        for bit in 0..16 {
            if key >> (bit + 16) & 1 != 0 {
                hash ^= (head ^ head >> 16) >> bit;
            }
            if bit != 0 && key >> bit & 1 != 0 {
                hash ^= (head ^ head << 16) >> bit;
            }
        }
        hash as u16 & BUCKETS
    }
}

/// Sixteen bits of the key, which is a ring: from bit `from` downwards.
fn window(key: u32, from: u32) -> u32 {
    (0..16).fold(0, |window, bit| {
        window | (key >> ((from.wrapping_sub(bit)) % 32) & 1) << bit
    })
}

/// The masks, as the bits that are compared.
#[derive(Debug, Clone, Copy)]
struct Masks {
    fields: Fields,
    /// The transport protocol is compared.
    l4: bool,
    udp: u32,
}

impl Masks {
    fn load(regs: &RegisterFile) -> Self {
        let off = regs.get::<Fdirm>();
        // Bit 15 of a port is bit 0 of its mask.
        let ports = |at| (!regs.load(at)).reverse_bits();
        let word = |at| (!regs.load(at)).swap_bytes();
        let vlan = if off.vlan_id() { 0 } else { VLAN_ID };
        let priority = if off.vlan_priority() {
            0
        } else {
            VLAN_PRIORITY
        };
        Self {
            fields: Fields {
                source: word(offset::FDIRSIP4M),
                destination: word(offset::FDIRSIP4M - 4),
                ports: ports(offset::FDIRTCPM),
                vlan: vlan | priority,
                flex: if off.flex() { 0 } else { u16::MAX },
                l4: 0,
            },
            l4: !off.l4_protocol(),
            udp: ports(offset::FDIRTCPM + 4),
        }
    }

    /// The fields of a packet.
    fn apply(&self, frame: &[u8], parsed: &Parsed, flex_at: usize) -> Option<Fields> {
        if parsed.network != Network::V4 {
            return None;
        }
        let word = |at: usize| u32::from(be16(frame, at)) << 16 | u32::from(be16(frame, at + 2));
        let (l4, ports) = match parsed.protocol {
            Some(UDP) => (1, self.udp),
            Some(TCP) => (2, self.fields.ports),
            // There is no mask for its ports.
            Some(SCTP) => (3, u32::MAX),
            _ => (0, 0),
        };
        let tag = if parsed.l3 > crate::packet::ETH_HEADER {
            be16(frame, 14)
        } else {
            0
        };
        Some(Fields {
            source: word(parsed.l3 + 12) & self.fields.source,
            destination: word(parsed.l3 + 16) & self.fields.destination,
            ports: if self.l4 { word(parsed.l4) & ports } else { 0 },
            vlan: tag & self.fields.vlan,
            flex: be16(frame, flex_at) & self.fields.flex,
            l4: if self.l4 { l4 } else { 0 },
        })
    }
}

#[derive(Debug, Clone, Copy)]
struct Filter {
    hash: Fdirhash,
    fields: Fields,
    command: Fdircmd,
}

impl Filter {
    /// Whether a command for `hash` is about this filter.
    fn is(&self, hash: Fdirhash) -> bool {
        (self.hash.hash(), self.hash.soft_index()) == (hash.hash(), hash.soft_index())
    }
}

/// A filter that a packet matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Match {
    /// The queue; none to drop the packet.
    pub queue: Option<u32>,
    /// The word that a descriptor has in place of the hash, if it tells of the filter.
    pub report: Option<u32>,
}

/// The filters in use, and how packets are compared with them.
#[derive(Debug, Clone)]
pub(crate) struct Director {
    control: Fdirctrl,
    key: u32,
    masks: Masks,
    filters: Arc<Vec<Filter>>,
}

impl Director {
    /// Those of a device; none if it has no memory for them, or signature filters.
    pub(crate) fn load(device: &Device) -> Option<Self> {
        let control = device.regs.get::<Fdirctrl>();
        (control.pballoc().value() != 0 && control.perfect_match()).then(|| Self {
            control,
            key: device.regs.load(offset::FDIRHKEY),
            masks: Masks::load(&device.regs),
            filters: Arc::clone(&device.filters.list()),
        })
    }

    /// The filter that a packet matches.
    pub(crate) fn find(&self, frame: &[u8], parsed: &Parsed) -> Option<Match> {
        let flex_at = 2 * usize::from(self.control.flex_offset().value());
        let fields = self.masks.apply(frame, parsed, flex_at)?;
        let bucket = fields.bucket(self.key);
        let found = self.filters.iter().find(|filter| {
            filter.hash.hash().value() & BUCKETS == bucket && filter.fields == fields
        })?;
        let queue = u32::from(found.command.rx_queue().value());
        Some(Match {
            queue: (!found.command.drop() && found.command.queue_en()).then_some(queue),
            report: self
                .control
                .report_status()
                .then_some(found.hash.raw() & !(1 << 15)),
        })
    }
}

/// The filters of a device.
#[derive(Debug, Default)]
pub struct Filters(Mutex<Arc<Vec<Filter>>>);

impl Filters {
    fn list(&self) -> MutexGuard<'_, Arc<Vec<Filter>>> {
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Whether there are none.
    pub(crate) fn are_none(&self) -> bool {
        self.list().is_empty()
    }

    /// Removes all.
    pub(crate) fn clear(&self) {
        *self.list() = Arc::default();
    }
}

/// The number of filters for which FDIRCTRL has memory.
fn room(control: Fdirctrl) -> usize {
    match control.pballoc().value() {
        0 => 0,
        size => (1024 << size) - 2,
    }
}

impl Device {
    /// A write of FDIRCTRL: the table is empty.
    pub(crate) fn write_fdirctrl(&self, value: u32) {
        let control = Fdirctrl::from_raw(value);
        self.filters.clear();
        self.regs.set(control.with_init_done(room(control) != 0));
        self.regs.store(offset::FDIRFREE, room(control) as u32);
        self.changed();
    }

    /// A write of FDIRCMD: the command is carried out at once.
    pub(crate) fn write_fdircmd(&self, value: u32) {
        let command = Fdircmd::from_raw(value);
        let control = self.regs.get::<Fdirctrl>();
        if command.clear_table() {
            self.filters.clear();
        }
        let valid = if control.perfect_match() && room(control) != 0 {
            self.run(command, room(control))
        } else {
            false
        };
        self.regs
            .set(command.with_command(Fdircmd::NONE).with_filter_valid(valid));
        self.changed();
    }

    /// Carries a command out. Returns whether there is the filter that it is about.
    fn run(&self, command: Fdircmd, room: usize) -> bool {
        let hash = self.regs.get::<Fdirhash>();
        let mut list = self.filters.list();
        let filters = Arc::make_mut(&mut list);
        let place = filters.iter().position(|filter| filter.is(hash));
        let filter = Filter {
            hash,
            fields: Fields::of(&self.regs, command),
            command,
        };
        // Each has two counts in one register: of additions and of removals.
        let (counter, count) = match (command.command(), place) {
            (Fdircmd::ADD, Some(place)) if command.filter_update() => {
                filters[place] = filter;
                (offset::FDIRUSTAT, 1)
            }
            (Fdircmd::ADD, None) if filters.len() < room => {
                filters.push(filter);
                (offset::FDIRUSTAT, 1)
            }
            (Fdircmd::ADD, _) => (offset::FDIRFSTAT, 1),
            (Fdircmd::REMOVE, Some(place)) => {
                filters.remove(place);
                (offset::FDIRUSTAT, 1 << 16)
            }
            (Fdircmd::REMOVE, None) => (offset::FDIRFSTAT, 1 << 8),
            _ => return place.is_some(),
        };
        self.regs.add(counter, count);
        self.regs
            .store(offset::FDIRFREE, (room - filters.len()) as u32);
        place.is_some()
    }
}

#[cfg(test)]
mod tests {
    use arbitrary_int::{u2, u5, u7, u15};

    use super::*;
    use crate::packet::parse;
    use crate::testing::{device, set, udp_frame};

    /// The key of the stock driver, for which its function has computed the buckets below.
    const KEY: u32 = 0x3dad_14e2;
    const CONTROL: Fdirctrl = Fdirctrl::ZERO
        .with_pballoc(u2::new(1))
        .with_perfect_match(true)
        .with_flex_offset(u5::new(6));
    const UDP_TO_PORT: Fields = Fields {
        source: 0,
        destination: 0x0a00_0102,
        ports: 9,
        vlan: 0,
        flex: 0,
        l4: 1,
    };

    /// A device that compares destinations and the ports of UDP.
    fn directed() -> Device {
        let device = device();
        set(&device, CONTROL);
        device.register_write(offset::FDIRHKEY, KEY);
        set(
            &device,
            Fdirm::ZERO
                .with_vlan_id(true)
                .with_vlan_priority(true)
                .with_pool(true)
                .with_flex(true),
        );
        device.register_write(offset::FDIRTCPM, u32::MAX);
        // All bits of the destination port, none of the source port.
        device.register_write(offset::FDIRTCPM + 4, 0x0000_ffff);
        device.register_write(offset::FDIRSIP4M, u32::MAX);
        device.register_write(offset::FDIRSIP4M - 4, 0);
        device
    }

    fn hash(fields: &Fields, index: u16) -> Fdirhash {
        Fdirhash::ZERO
            .with_hash(u15::new(fields.bucket(KEY)))
            .with_soft_index(u15::new(index))
    }

    fn command(device: &Device, command: Fdircmd, index: u16) -> Fdircmd {
        let fields = UDP_TO_PORT;
        let port = fields.ports.rotate_left(16);
        device.register_write(offset::FDIRIP + 16, fields.destination.swap_bytes());
        device.register_write(offset::FDIRPORT, port);
        set(device, hash(&fields, index));
        set(device, command.with_l4type(u2::new(fields.l4)));
        Fdircmd::from_raw(device.register_read(Fdircmd::offset(0)))
    }

    const ADD: Fdircmd = Fdircmd::ZERO
        .with_command(Fdircmd::ADD)
        .with_filter_update(true)
        .with_queue_en(true)
        .with_rx_queue(u7::new(3));

    fn found(device: &Device, frame: &[u8]) -> Option<Match> {
        Director::load(device)?.find(frame, &parse(frame))
    }

    #[test]
    fn buckets_are_those_of_the_stock_driver() {
        for (fields, bucket) in STOCK {
            assert_eq!(fields.bucket(KEY), *bucket, "{fields:x?}");
        }
    }

    #[test]
    fn a_filter_chooses_the_queue_until_it_is_removed() {
        let device = directed();
        let frame = udp_frame(60);
        assert_eq!(found(&device, &frame), None);
        assert!(!command(&device, ADD, 7).filter_valid());
        let wanted = Match {
            queue: Some(3),
            report: None,
        };
        assert_eq!(found(&device, &frame), Some(wanted));
        // Another port, another protocol.
        for (at, value) in [(37, 10), (23, 6)] {
            let mut other = frame.clone();
            other[at] = value;
            assert_eq!(found(&device, &other), None);
        }
        // Bits that are masked.
        let mut same = frame.clone();
        same[26] = 11;
        same[35] = 77;
        assert_eq!(found(&device, &same), Some(wanted));

        let query = Fdircmd::ZERO.with_command(Fdircmd::QUERY);
        assert!(command(&device, query, 7).filter_valid());
        assert!(!command(&device, query, 8).filter_valid());
        let remove = Fdircmd::ZERO.with_command(Fdircmd::REMOVE);
        command(&device, remove, 8);
        assert_eq!(found(&device, &frame), Some(wanted));
        command(&device, remove, 7);
        assert_eq!(found(&device, &frame), None);
        assert_eq!(device.register_read(offset::FDIRUSTAT), 1 << 16 | 1);
        assert_eq!(device.register_read(offset::FDIRFSTAT), 1 << 8);
    }

    #[test]
    fn a_filter_drops_or_is_reported() {
        let device = directed();
        let frame = udp_frame(60);
        command(&device, ADD.with_drop(true), 7);
        assert_eq!(found(&device, &frame).map(|one| one.queue), Some(None));
        // Updated, rather than added.
        command(&device, ADD, 7);
        assert_eq!(device.register_read(offset::FDIRFREE), 2045);
        set(&device, CONTROL.with_report_status(true));
        assert_eq!(found(&device, &frame), None, "the table is empty");
        command(&device, ADD, 7);
        let report = found(&device, &frame).and_then(|one| one.report);
        let hash = u32::from(UDP_TO_PORT.bucket(KEY));
        assert_eq!(report, Some(7 << 16 | hash));
    }

    #[test]
    fn a_wrong_bucket_never_matches() {
        let device = directed();
        command(&device, ADD, 7);
        device.register_write(offset::FDIRHKEY, KEY ^ 0x100);
        assert_eq!(found(&device, &udp_frame(60)), None);
    }

    #[test]
    fn a_full_table_refuses() {
        let device = directed();
        for index in 0..2046 {
            command(&device, ADD, index);
        }
        assert_eq!(device.register_read(offset::FDIRFREE), 0);
        assert_eq!(device.register_read(offset::FDIRFSTAT), 0);
        command(&device, ADD, 2046);
        assert_eq!(device.register_read(offset::FDIRFSTAT), 1);
    }

    const STOCK: &[(Fields, u16)] = &[
        (
            Fields {
                source: 0x0,
                destination: 0xa000102,
                ports: 0x9,
                vlan: 0x0,
                flex: 0x0,
                l4: 1,
            },
            0x154,
        ),
        (
            Fields {
                source: 0xa000002,
                destination: 0xa000102,
                ports: 0x4d20050,
                vlan: 0x0,
                flex: 0x0,
                l4: 2,
            },
            0xb51,
        ),
        (
            Fields {
                source: 0xc0a80101,
                destination: 0x0,
                ports: 0x0,
                vlan: 0x6123,
                flex: 0x0,
                l4: 0,
            },
            0x1fd0,
        ),
        (
            Fields {
                source: 0xffffffff,
                destination: 0xffffffff,
                ports: 0xffffffff,
                vlan: 0xefff,
                flex: 0xffff,
                l4: 3,
            },
            0xb19,
        ),
        (
            Fields {
                source: 0x1,
                destination: 0x0,
                ports: 0x0,
                vlan: 0x0,
                flex: 0x800,
                l4: 2,
            },
            0x71,
        ),
    ];
}
