// SPDX-License-Identifier: GPL-2.0

//! Dummy network driver in Rust: discards all packets that are sent to it.
//!
//! Based on the C driver written by Nick Holloway and Alan Cox: drivers/net/dummy.c

#![forbid(unsafe_code)]

use kernel::{
    net::{
        device::{
            Device,
            Stats64,
            VirtualDevices,
            VirtualDriver,
            VirtualModule, //
        },
        skbuff::SkBuff, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

kernel::module_virtual_devices! {
    type: DummyModule,
    name: "dummy_rust",
    authors: ["The skbulk authors"],
    description: "Dummy network driver in Rust",
    license: "GPL v2",
}

struct DummyModule;

impl VirtualModule for DummyModule {
    fn init(devices: &mut VirtualDevices) -> Result {
        devices.add(Ok(Dummy {
            packets: Atomic::new(0),
            bytes: Atomic::new(0),
        }))
    }
}

/// A device, and what was sent to it.
struct Dummy {
    packets: Atomic<u64>,
    bytes: Atomic<u64>,
}

#[vtable]
impl VirtualDriver for Dummy {
    const NAME: &'static CStr = c"dummy%d";

    fn open(&self, dev: &Device) -> Result {
        dev.carrier_on();
        Ok(())
    }

    fn stop(&self, dev: &Device) {
        dev.carrier_off();
    }

    fn start_xmit(&self, skb: SkBuff) {
        self.packets.fetch_add(1, Relaxed);
        self.bytes.fetch_add(skb.len().into(), Relaxed);
        skb.consume();
    }

    fn get_stats64(&self, stats: &mut Stats64<'_>) {
        stats
            .tx_packets(self.packets.load(Relaxed))
            .tx_bytes(self.bytes.load(Relaxed));
    }
}
