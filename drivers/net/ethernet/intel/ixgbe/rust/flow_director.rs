// SPDX-License-Identifier: GPL-2.0

//! The flow director, whose filters direct packets to queues by the fields of their headers
//! (datasheet 7.1.2.7).
//!
//! Rules of users become perfect filters. Such a filter is found by a hash over its fields, which
//! the driver computes, and then compared. All filters have one mask. Those for IPv6, flexible
//! bytes and pools are not used. The filters of the other mode are those of [`atr`](crate::atr).

use kernel::{
    device::{
        self,
        Bound, //
    },
    net::device::{
        ethtool::rxnfc::{
            FlowAction,
            FlowMatch,
            FlowPackets,
            FlowRule,
            FlowTransport,
            Masked,
            PortProtocol, //
        },
        Device,
        Feature, //
    },
    prelude::*,
    time::Delta, //
};

use crate::{
    director_hash::{
        hash,
        BUCKET_KEY,
        SIGNATURE_KEY, //
    },
    mmio::{
        self,
        Bar0, //
    },
    regs::director::*, //
};

/// The number of perfect filters, of which 64 KiB of the packet buffer hold this many.
pub(crate) const FILTERS: u32 = 2046;

/// Memory for them, in KiB.
pub(crate) const MEMORY: u32 = 64;

/// A queue that does not exist for the driver, and stands for dropping a packet.
const DROP_QUEUE: u32 = 127;

/// The work of the flow director. The NIC is set up for one mode before it receives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Nothing, and it has no memory.
    Off,
    /// It compares packets with the rules of users.
    Rules,
    /// It remembers the queues of flows, see [`atr`](crate::atr).
    Flows,
}

impl Mode {
    /// The mode of a device with this many queue pairs: with one, there is nothing to choose.
    pub(crate) fn of(dev: &Device, pairs: u16) -> Self {
        if dev.features().contains(Feature::Ntuple) {
            Self::Rules
        } else if pairs > 1 {
            Self::Flows
        } else {
            Self::Off
        }
    }

    /// Whether a part of the packet buffer, [`MEMORY`], is the flow director's.
    pub(crate) fn takes_memory(self) -> bool {
        self != Self::Off
    }
}

/// Values of [`FDIRCMD`]'s command.
mod command {
    pub(super) const ADD: u32 = 1;
    pub(super) const REMOVE: u32 = 2;
}

/// Bits of a VLAN tag that are compared, or not, as a whole.
const VLAN_ID: u16 = 0x0fff;
const VLAN_PRIORITY: u16 = 0xe000;

/// The bit of a VLAN tag that is not compared: drop eligible, once CFI.
const VLAN_DEI: u16 = 0x1000;

/// The fields of a filter, or their masks, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fields {
    source: u32,
    destination: u32,
    source_port: u16,
    destination_port: u16,
    vlan: u16,
    /// 1 for UDP, 2 for TCP, 3 as a mask.
    protocol: u8,
}

impl Fields {
    /// The hash, which chooses one of 8192 buckets.
    fn hash(&self) -> u32 {
        let ports = u32::from(self.source_port) << 16 | u32::from(self.destination_port);
        let head = u32::from(self.protocol) << 16 | u32::from(self.vlan);

        hash::<BUCKET_KEY>(head, self.source ^ self.destination ^ ports) & 0x1fff
    }
}

/// A filter, and the mask that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    fields: Fields,
    mask: Fields,
}

/// The reason why the NIC cannot have a rule.
type Reason = &'static str;

fn word(masked: Masked<4>) -> (u32, u32) {
    (
        u32::from_be_bytes(masked.value()),
        u32::from_be_bytes(masked.mask()),
    )
}

fn half(masked: Masked<2>) -> (u16, u16) {
    (
        u16::from_be_bytes(masked.value()),
        u16::from_be_bytes(masked.mask()),
    )
}

/// The number of a transport protocol for the NIC, if it has a mask for its ports.
fn number(protocol: PortProtocol) -> Result<u8, Reason> {
    match protocol {
        PortProtocol::Udp => Ok(1),
        PortProtocol::Tcp => Ok(2),
        PortProtocol::Sctp => Err("SCTP ports are not supported"),
    }
}

impl Filter {
    /// The filter for these packets.
    pub(crate) fn new(packets: &FlowMatch) -> Result<Self, Reason> {
        const TCP: u8 = 6;
        const UDP: u8 = 17;

        let FlowPackets::Ipv4 {
            source,
            destination,
            service,
            transport,
        } = packets.packets
        else {
            return Err("only IPv4 is supported");
        };
        if !service.is_any() {
            return Err("TOS is not supported");
        }
        if !packets.destination.is_any()
            || !packets.vlan_protocol.is_any()
            || !packets.user_data.iter().all(Masked::is_any)
        {
            return Err("of the Ethernet header, only the VLAN tag is supported");
        }

        let (mut fields, mut mask) = (Fields::default(), Fields::default());
        (fields.source, mask.source) = word(source);
        (fields.destination, mask.destination) = word(destination);
        match transport {
            FlowTransport::Ports {
                protocol,
                source,
                destination,
            } => {
                (fields.protocol, mask.protocol) = (number(protocol)?, 3);
                (fields.source_port, mask.source_port) = half(source);
                (fields.destination_port, mask.destination_port) = half(destination);
            }
            FlowTransport::Any { first, .. } if !first.is_any() => {
                return Err("ports are supported for TCP and UDP only");
            }
            FlowTransport::Any { protocol, .. } if protocol.is_any() => (),
            FlowTransport::Any { protocol, .. } if protocol.is_exact() => {
                mask.protocol = 3;
                fields.protocol = match protocol.value() {
                    [TCP] => number(PortProtocol::Tcp)?,
                    [UDP] => number(PortProtocol::Udp)?,
                    _ => return Err("only TCP and UDP are supported"),
                };
            }
            FlowTransport::Any { .. } => return Err("the protocol mask must be all ones or zero"),
        }

        let (tag, bits) = half(packets.vlan_tag);
        for part in [VLAN_ID, VLAN_PRIORITY] {
            match bits & part {
                0 => (),
                all if all == part => mask.vlan |= part,
                _ => return Err("VLAN ID and priority masks must be all ones or zero"),
            }
        }
        // A mask of all ones, which users have if they do not choose one, means the others.
        if tag & VLAN_DEI != 0 || bits == VLAN_DEI {
            return Err("the DEI bit of the VLAN tag is not supported");
        }
        fields.vlan = tag & mask.vlan;
        Ok(Self { fields, mask })
    }

    /// Whether the NIC can have this filter together with another one.
    pub(crate) fn goes_with(&self, other: &Self) -> Result<(), Reason> {
        if self.mask != other.mask {
            return Err("all rules must have the same mask");
        }
        if self.fields == other.fields {
            return Err("another rule matches the same packets");
        }
        Ok(())
    }

    /// Passes the mask to the NIC, which must have no filters.
    pub(crate) fn set_mask(&self, bar: &Bar0<'_>) {
        let mask = &self.mask;

        bar.write_reg(
            FDIRM::zeroed()
                .with_dipv6(true)
                .with_flex(true)
                .with_pool(true)
                .with_l4p(mask.protocol == 0)
                .with_vlanp(mask.vlan & VLAN_PRIORITY == 0)
                .with_vlanid(mask.vlan & VLAN_ID == 0),
        );
        let source = !mask.source_port.reverse_bits();
        let destination = !mask.destination_port.reverse_bits();
        bar.write_reg(
            FDIRTCPM::zeroed()
                .with_source(source)
                .with_destination(destination),
        );
        bar.write_reg(
            FDIRUDPM::zeroed()
                .with_source(source)
                .with_destination(destination),
        );
        bar.write_reg(FDIRSIP4M::from((!mask.source).swap_bytes()));
        bar.write_reg(FDIRDIP4M::from((!mask.destination).swap_bytes()));
    }

    /// The place of the filter for the NIC.
    fn place(&self, location: u32) -> Result<FDIRHASH> {
        FDIRHASH::zeroed()
            .try_with_hash(self.fields.hash())?
            .try_with_soft_index(location)
    }

    /// Gives the filter to the NIC, in place of the one at the location if there is one.
    pub(crate) fn add(&self, bar: &Bar0<'_>, location: u32, action: FlowAction) -> Result {
        let fields = &self.fields;
        let (queue, drop) = match action {
            FlowAction::Drop => (DROP_QUEUE, true),
            FlowAction::Queue(queue) => (queue.into(), false),
        };
        let command = FDIRCMD::zeroed()
            .with_const_cmd::<{ command::ADD }>()
            .with_filter_update(true)
            .with_last(true)
            .with_queue_en(true)
            .with_drop(drop)
            .try_with_l4type(u32::from(fields.protocol))?
            .try_with_rx_queue(queue)?;

        bar.write_reg(FDIRIPSA::from(fields.source.swap_bytes()));
        bar.write_reg(FDIRIPDA::from(fields.destination.swap_bytes()));
        bar.write_reg(
            FDIRPORT::zeroed()
                .with_source(fields.source_port)
                .with_destination(fields.destination_port),
        );
        bar.write_reg(FDIRVLAN::zeroed().with_vlan(fields.vlan));
        bar.write_reg(self.place(location)?);
        run(bar, command)
    }

    /// Takes the filter away from the NIC.
    pub(crate) fn remove(&self, bar: &Bar0<'_>, location: u32) -> Result {
        bar.write_reg(self.place(location)?);
        run(
            bar,
            FDIRCMD::zeroed().with_const_cmd::<{ command::REMOVE }>(),
        )
    }
}

/// Has the NIC carry out a command, and waits until it is done.
fn run(bar: &Bar0<'_>, command: FDIRCMD) -> Result {
    mmio::flush(bar);
    bar.write_reg(command);
    mmio::poll(
        || bar.try_read(FDIRCMD),
        |r| r.cmd().get() == 0,
        Delta::from_micros(10),
        Delta::from_millis(1),
    )?;
    Ok(())
}

/// Waits until the NIC has set up the table.
pub(crate) fn wait_for_table(dev: &device::Device<Bound>, bar: &Bar0<'_>) -> Result {
    mmio::wait_for(
        || bar.try_read(FDIRCTRL),
        |r| r.init_done(),
        Delta::from_millis(100),
    )
    .inspect_err(|_| dev_err!(dev, "flow director initialization timed out\n"))
}

/// The table of perfect filters, or of signatures.
pub(crate) fn table(perfect: bool) -> FDIRCTRL {
    FDIRCTRL::zeroed()
        .with_const_pballoc::<1>()
        .with_perfect_match(perfect)
        .with_const_drop_queue::<DROP_QUEUE>()
        .with_const_flex_offset::<6>()
        .with_const_max_length::<10>()
        .with_const_full_thresh::<4>()
}

/// Sets up the table for a mode, and gives all rules to the NIC if it is for them. The receiver is
/// off, and the packet buffer leaves [`MEMORY`] to the table.
pub(crate) fn start<'a>(
    dev: &device::Device<Bound>,
    bar: &Bar0<'_>,
    mode: Mode,
    pairs: u16,
    rules: impl Iterator<Item = &'a FlowRule>,
) -> Result {
    if mode == Mode::Off {
        return Ok(());
    }
    bar.write_reg(FDIRHKEY::from(BUCKET_KEY));
    bar.write_reg(FDIRSKEY::from(SIGNATURE_KEY));
    bar.write_reg(table(mode == Mode::Rules));
    wait_for_table(dev, bar)?;
    if mode != Mode::Rules {
        return Ok(());
    }

    for (number, rule) in rules.enumerate() {
        let Ok(filter) = Filter::new(&rule.packets) else {
            // It has been tried before.
            continue;
        };
        if number == 0 {
            filter.set_mask(bar);
        }
        if matches!(rule.action, FlowAction::Queue(queue) if queue >= pairs) {
            dev_warn!(
                dev,
                "flow rule {}: its queue no longer exists\n",
                rule.location
            );
            continue;
        }
        filter
            .add(bar, rule.location, rule.action)
            .inspect_err(|_| dev_err!(dev, "flow director command timed out\n"))?;
    }
    Ok(())
}

#[kunit_tests(ixgbe_rust_flow_director)]
mod tests {
    use super::*;

    const UDP_TO_PORT: FlowMatch = FlowMatch {
        packets: FlowPackets::Ipv4 {
            source: Masked::ANY,
            destination: Masked::ANY,
            service: Masked::ANY,
            transport: FlowTransport::Any {
                protocol: Masked::ANY,
                first: Masked::ANY,
            },
        },
        vlan_tag: Masked::ANY,
        vlan_protocol: Masked::ANY,
        destination: Masked::ANY,
        user_data: [Masked::ANY; 2],
    };

    fn to_port(protocol: PortProtocol, port: u16, mask: u16) -> FlowMatch {
        FlowMatch {
            packets: FlowPackets::Ipv4 {
                source: Masked::ANY,
                destination: Masked::new([10, 0, 1, 2], [255; 4]),
                service: Masked::ANY,
                transport: FlowTransport::Ports {
                    protocol,
                    source: Masked::ANY,
                    destination: Masked::new(port.to_be_bytes(), mask.to_be_bytes()),
                },
            },
            ..UDP_TO_PORT
        }
    }

    #[test]
    fn hashes_are_those_of_the_nic() {
        let fields = |source, destination, ports: u32, vlan, protocol| Fields {
            source,
            destination,
            source_port: (ports >> 16) as u16,
            destination_port: ports as u16,
            vlan,
            protocol,
        };

        // As the function of `ixgbe` computes them.
        assert_eq!(fields(0, 0x0a00_0102, 9, 0, 1).hash(), 0x154);
        assert_eq!(
            fields(0x0a00_0002, 0x0a00_0102, 0x04d2_0050, 0, 2).hash(),
            0xb51
        );
        assert_eq!(fields(0xc0a8_0101, 0, 0, 0x6123, 0).hash(), 0x1fd0);
    }

    #[test]
    fn one_mask_and_no_packets_twice() -> Result {
        let filter = |packets: &FlowMatch| Filter::new(packets).map_err(|_| EINVAL);
        let first = filter(&to_port(PortProtocol::Udp, 9, u16::MAX))?;

        let second = filter(&to_port(PortProtocol::Udp, 10, u16::MAX))?;
        assert!(first.goes_with(&second).is_ok());
        let tcp = filter(&to_port(PortProtocol::Tcp, 9, u16::MAX))?;
        assert!(first.goes_with(&tcp).is_ok());
        assert!(first.goes_with(&first).is_err());
        let masked = filter(&to_port(PortProtocol::Udp, 10, 0xff00))?;
        assert!(first.goes_with(&masked).is_err());
        let any = filter(&UDP_TO_PORT)?;
        assert!(first.goes_with(&any).is_err());
        Ok(())
    }

    #[test]
    fn what_the_nic_does_not_compare_is_refused() {
        let with = |change: fn(&mut FlowMatch)| {
            let mut packets = to_port(PortProtocol::Udp, 9, u16::MAX);
            change(&mut packets);
            Filter::new(&packets).is_ok()
        };

        assert!(with(|_| ()));
        assert!(with(
            |packets| packets.vlan_tag = Masked::new([0, 5], [0xff; 2])
        ));
        assert!(with(
            |packets| packets.vlan_tag = Masked::new([0x60, 0], [0xe0, 0])
        ));
        assert!(!with(
            |packets| packets.vlan_tag = Masked::new([0, 5], [0, 0xff])
        ));
        for (tag, mask) in [([0x10, 5], [0xff; 2]), ([0x10, 0], [0x10, 0])] {
            let mut packets = to_port(PortProtocol::Udp, 9, u16::MAX);
            packets.vlan_tag = Masked::new(tag, mask);
            assert!(Filter::new(&packets).is_err());
        }
        assert!(!with(
            |packets| packets.vlan_protocol = Masked::new([0x81, 0], [0xff; 2])
        ));
        assert!(!with(
            |packets| packets.destination = Masked::new([2; 6], [0xff; 6])
        ));
        assert!(!with(
            |packets| packets.user_data[1] = Masked::new([1; 4], [1; 4])
        ));
        assert!(!with(|packets| packets.packets = FlowPackets::Other));
        assert!(Filter::new(&to_port(PortProtocol::Sctp, 9, 0)).is_err());
    }
}
