// SPDX-License-Identifier: GPL-2.0

//! Registers of the flow director, datasheet 8.2.3.21.

use kernel::io::register;

register! {
    /// Flow Director Filters Control.
    pub(crate) FDIRCTRL(u32) @ 0x0ee00 {
        /// Report the table as full when less filters than 16 times this are free.
        31:28   full_thresh;
        /// The most filters of a bucket.
        27:24   max_length;
        /// Where the flexible bytes are in a packet, in units of two bytes.
        20:16   flex_offset;
        /// The queue that stands for dropping a packet.
        14:8    drop_queue;
        /// Compare all fields of a packet.
        4:4     perfect_match => bool;
        /// The table is ready.
        3:3     init_done => bool;
        /// Memory of the table, taken from the receive packet buffer: 1 for 64 KiB.
        1:0     pballoc;
    }

    /// Flow Director Filters Lookup Table Hash Key: for the bucket of a packet.
    pub(crate) FDIRHKEY(u32) @ 0x0ee68 {}

    /// Flow Director Filters Signature Hash Key.
    pub(crate) FDIRSKEY(u32) @ 0x0ee6c {}

    /// Source address of a filter, in the order of the wire.
    pub(crate) FDIRIPSA(u32) @ 0x0ee18 {}

    /// Destination address of a filter, in the order of the wire.
    pub(crate) FDIRIPDA(u32) @ 0x0ee1c {}

    /// Ports of a filter.
    pub(crate) FDIRPORT(u32) @ 0x0ee20 {
        /// The destination port.
        31:16   destination;
        /// The source port.
        15:0    source;
    }

    /// VLAN tag and flexible bytes of a filter.
    pub(crate) FDIRVLAN(u32) @ 0x0ee24 {
        /// The tag.
        15:0    vlan;
    }

    /// Flow Director Filters Hash: the place of a filter.
    pub(crate) FDIRHASH(u32) @ 0x0ee28 {
        /// The driver's number of a perfect filter, or the signature of another one.
        30:16   soft_index;
        /// The hash over its fields.
        14:0    hash;
    }

    /// Flow Director Filters Command.
    pub(crate) FDIRCMD(u32) @ 0x0ee2c {
        /// The queue.
        22:16   rx_queue;
        /// The filter has a queue.
        15:15   queue_en => bool;
        /// The filter is the last one of its bucket.
        11:11   last => bool;
        /// Packets are dropped.
        9:9     drop => bool;
        /// Clear the table.
        8:8     clear => bool;
        /// The packets are of IPv6.
        7:7     ipv6 => bool;
        /// The transport protocol.
        6:5     l4type;
        /// If there is this filter, change it.
        3:3     filter_update => bool;
        /// The command; 0 when it is done.
        1:0     cmd;
    }

    /// Flow Director Filters Free.
    pub(crate) FDIRFREE(u32) @ 0x0ee38 {
        /// Filters for which there is room.
        15:0    free;
    }

    /// Mask of IPv4 destination addresses: bits that are not compared, in the order of the wire.
    pub(crate) FDIRDIP4M(u32) @ 0x0ee3c {}

    /// The same of IPv4 source addresses.
    pub(crate) FDIRSIP4M(u32) @ 0x0ee40 {}

    /// Mask of TCP ports: bits that are not compared. Bit 0 is for bit 15 of a port.
    pub(crate) FDIRTCPM(u32) @ 0x0ee44 {
        /// The destination port.
        31:16   destination;
        /// The source port.
        15:0    source;
    }

    /// The same of UDP ports.
    pub(crate) FDIRUDPM(u32) @ 0x0ee48 {
        /// The destination port.
        31:16   destination;
        /// The source port.
        15:0    source;
    }

    /// Flow Director Other Mask: fields that are not compared.
    pub(crate) FDIRM(u32) @ 0x0ee70 {
        /// The address of IPv6.
        5:5     dipv6 => bool;
        /// The flexible bytes.
        4:4     flex => bool;
        /// The transport protocol, and its ports.
        3:3     l4p => bool;
        /// The pool.
        2:2     pool => bool;
        /// The priority in a VLAN tag.
        1:1     vlanp => bool;
        /// The id in it.
        0:0     vlanid => bool;
    }

    /// Packets that a filter matches.
    pub(crate) FDIRMATCH(u32) @ 0x0ee58 {}

    /// Packets that none does.
    pub(crate) FDIRMISS(u32) @ 0x0ee5c {}
}
