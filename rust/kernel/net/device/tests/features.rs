// SPDX-License-Identifier: GPL-2.0

//! Tests of features: of a device, and of single packets.

use super::{
    super::{
        segments,
        Feature,
        Features, //
    },
    dummy::{
        Event,
        Fail, //
    },
    fixture::Fixture,
    DOWN,
    UP, //
};

use crate::{
    bindings,
    net::skbuff::{
        set_protocol,
        SkBuff,
        UniqueSkBuff, //
    },
    prelude::*,
    sync::atomic::Relaxed, //
};

impl Fixture {
    /// The features that are left for a packet of `len` bytes.
    fn features_left(&self, len: usize, features: Features) -> Result<Option<u64>> {
        let mut skb = UniqueSkBuff::alloc(128, GFP_KERNEL)?;

        skb.put(&[0; 64])?;
        if len > 64 {
            skb.put(&[0; 1])?;
        }
        Ok(self.features_left_for(skb, features))
    }

    /// The same for any packet.
    fn features_left_for(&self, skb: UniqueSkBuff, features: Features) -> Option<u64> {
        let skb = SkBuff::from(skb);
        let dev = self.dev();
        // SAFETY: The device is registered, and the packet is valid.
        unsafe {
            (*(*dev).netdev_ops)
                .ndo_features_check
                .map(|check| check(skb.as_raw(), dev, features.0))
        }
    }

    /// The same for a packet of TCP whose segments have so many bytes, behind headers of Ethernet
    /// and of 40 bytes more.
    fn features_left_with(&self, size: u16, features: Features) -> Result<Option<u64>> {
        let mut skb = UniqueSkBuff::alloc(128, GFP_KERNEL)?;

        skb.put(&[0x50; 100])?;
        // SAFETY: The packet is ours.
        unsafe {
            let headroom = (*skb.as_raw())
                .data
                .offset_from_unsigned((*skb.as_raw()).head) as u16;
            let header = &raw mut (*skb.as_raw()).__bindgen_anon_4.__bindgen_anon_1;
            let header = header.cast::<bindings::sk_buff__bindgen_ty_4__bindgen_ty_1>();

            (*header).network_header = headroom + 14;
            (*header).transport_header = headroom + 34;
            (*skb.shared_info()).gso_size = size;
            (*skb.shared_info()).gso_type = bindings::SKB_GSO_TCPV4 as u32;
        }
        Ok(self.features_left_for(skb, features))
    }

    /// The same for a packet that may be in a tunnel, and that is to be split if there is a size
    /// of its segments.
    fn features_left_in(
        &self,
        in_tunnel: bool,
        gso_size: u16,
        features: Features,
    ) -> Result<Option<u64>> {
        let mut skb = UniqueSkBuff::alloc(128, GFP_KERNEL)?;

        skb.put(&[0; 65])?;
        // SAFETY: The packet is ours.
        unsafe {
            let header = &raw mut (*skb.as_raw()).__bindgen_anon_4.__bindgen_anon_1;

            (*header.cast::<bindings::sk_buff__bindgen_ty_4__bindgen_ty_1>())
                .set_encapsulation(in_tunnel.into());
            (*skb.shared_info()).gso_size = gso_size;
        }
        Ok(self.features_left_for(skb, features))
    }

    /// Changes what users want. Returns what they get.
    pub(super) fn want(&self, features: Features) -> u64 {
        let dev = self.dev();

        // SAFETY: The device is registered. Tests run in process context.
        unsafe {
            bindings::rtnl_lock();
            (*dev).wanted_features = features.0;
            bindings::netdev_update_features(dev);
            let got = (*dev).features & (*dev).hw_features;
            bindings::rtnl_unlock();
            got
        }
    }
}

const HASH: Features = Features::NONE.with(Feature::RxHash);

#[macros::kunit_tests(rust_net_features)]
mod cases {
    use super::*;

    #[test]
    fn a_packet_loses_what_the_driver_withdraws() -> Result {
        let device = Fixture::new(1)?;
        let all = Features::NONE
            .with(Feature::ScatterGather)
            .with(Feature::ChecksumAny)
            .with(Feature::Tso);

        assert_eq!(device.features_left(65, all)?, Some(all.0));
        // Without a checksum there are no segments, and nothing comes in addition.
        let left = Features::NONE.with(Feature::ScatterGather);
        assert_eq!(device.features_left(64, all)?, Some(left.0));
        Ok(())
    }

    #[test]
    fn the_driver_decides_on_packets_with_two_tags() -> Result {
        const VLAN: [u8; 4] = [0x81, 0, 0, 1];
        let device = Fixture::new(1)?;
        let all = Features::NONE
            .with(Feature::ScatterGather)
            .with(Feature::ChecksumAny)
            .with(Feature::Tso);

        for (tags, by_default) in [(1, all), (2, all.without(Feature::Tso))] {
            let mut skb = UniqueSkBuff::alloc(128, GFP_KERNEL)?;

            skb.put(&[0; 12])?;
            for _ in 0..tags {
                skb.put(&VLAN)?;
            }
            skb.put(&[0; 50])?;
            set_protocol(&mut skb, (bindings::ETH_P_8021Q as u16).to_be());
            // SAFETY: The device is registered, and the packet is valid.
            let left = unsafe { segments::check_features(skb.as_raw(), device.dev(), all.0) };
            assert_eq!(left, by_default.0);
            assert_eq!(device.features_left_for(skb, all), Some(all.0));
        }
        Ok(())
    }

    #[test]
    fn the_stack_splits_what_is_longer_than_the_greatest_mtu() -> Result {
        let device = Fixture::new(1)?;
        let rest = Features::NONE
            .with(Feature::ScatterGather)
            .with(Feature::ChecksumAny);
        let all = rest.with(Feature::Tso).with(Feature::Uso);
        // SAFETY: The device is registered.
        let most = unsafe { (*device.dev()).max_mtu } as u16 - 40;

        for (size, left) in [
            (1, all),
            (most, all),
            (most + 1, rest),
            (u16::MAX - 1, rest),
        ] {
            assert_eq!(device.features_left_with(size, all)?, Some(left.0));
        }
        Ok(())
    }

    #[test]
    fn the_stack_helps_with_tunnels() -> Result {
        const TUNNEL: u64 = 1 << bindings::NETIF_F_GSO_UDP_TUNNEL_BIT;
        const PARTIAL: u64 = 1 << bindings::NETIF_F_GSO_PARTIAL_BIT;
        let device = Fixture::new(1)?;
        // SAFETY: The device is registered.
        let (partial, all, inner) = unsafe {
            let dev = &*device.dev();
            (dev.gso_partial_features, dev.features, dev.hw_enc_features)
        };

        assert_eq!(partial, TUNNEL);
        assert_eq!(all & (TUNNEL | PARTIAL), TUNNEL | PARTIAL);
        assert_eq!(
            inner & (TUNNEL | PARTIAL | HASH.0),
            TUNNEL | PARTIAL | HASH.0
        );
        Ok(())
    }

    #[test]
    fn packets_with_labels_keep_some_features() -> Result {
        let device = Fixture::new(1)?;
        let all = Features::NONE
            .with(Feature::ScatterGather)
            .with(Feature::ChecksumAny)
            .with(Feature::Tso)
            .with(Feature::Tso6);
        // SAFETY: The device is registered.
        let (features, labels) = unsafe {
            let dev = &*device.dev();
            (dev.features, dev.mpls_features)
        };

        // The core adds one.
        let always = Features::NONE.with(Feature::ScatterGather);
        assert_eq!(labels, features & all.0 | always.0);
        // A driver that does not look at packets, and features of no use for them.
        let without = all.without(Feature::Tso).without(Feature::Tso6);
        let more = all.with(Feature::Uso).with(Feature::VlanInsert);
        assert_eq!(more.for_labels(false), without);
        assert_eq!(more.for_labels(true), all);
        Ok(())
    }

    #[test]
    fn identifications_of_inner_headers_stay() -> Result {
        let device = Fixture::new(1)?;
        let tso = Features::NONE
            .with(Feature::ChecksumAny)
            .with(Feature::Tso)
            .with(Feature::Tso6);

        let left = device.features_left_in(true, 10, tso)?;
        assert_eq!(left, Some(tso.without(Feature::Tso).0));
        // Users allow it.
        let same = tso.with(Feature::TsoMangleId);
        assert_eq!(device.features_left_in(true, 10, same)?, Some(same.0));
        // Nothing is split, or there is no inner header.
        assert_eq!(device.features_left_in(true, 0, tso)?, Some(tso.0));
        assert_eq!(device.features_left_in(false, 10, tso)?, Some(tso.0));
        Ok(())
    }

    #[test]
    fn the_stack_does_not_help_without_tunnels() {
        assert_eq!(Features::NONE.with_partial(), Features::NONE);
    }

    #[test]
    fn lro_needs_verified_checksums() {
        let checksum = Features::NONE.with(Feature::RxChecksum);
        let both = checksum.with(Feature::Lro);

        assert_eq!(both.consistent(), both);
        assert_eq!(HASH.with(Feature::Lro).consistent(), HASH);
        assert_eq!(both.without_vlan(), checksum);
    }

    #[test]
    fn a_device_is_told_while_it_is_up() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        // When it goes up, it finds them.
        assert_eq!(device.want(Features::NONE) & HASH.0, 0);
        assert!(log.take(&[]));
        device.up()?;
        assert!(log.take(UP));

        assert_eq!(device.want(HASH) & HASH.0, HASH.0);
        assert!(log.take(&[Event::Features]));
        device.down();
        assert!(log.take(DOWN));
        Ok(())
    }

    #[test]
    fn a_device_that_has_to_starts_with_the_new_ones() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        assert_eq!(device.want(Features::NONE) & HASH.0, 0);
        device.up()?;
        assert!(log.take(UP));
        assert_eq!(log.started_with.load(Relaxed) & HASH.0, 0);

        log.restart_features.store(1, Relaxed);
        assert_eq!(device.want(HASH) & HASH.0, HASH.0);
        assert_eq!(log.started_with.load(Relaxed) & HASH.0, HASH.0);
        assert!(log.take(&[
            Event::Features,
            Event::Quiesce,
            Event::TxDropped,
            Event::PollerDropped,
            Event::Open,
            Event::Start,
        ]));

        // If it does not start with others, it has the old ones.
        log.fail.store(Fail::Start as u32, Relaxed);
        device.want(Features::NONE);
        assert_eq!(log.started_with.load(Relaxed) & HASH.0, HASH.0);
        log.fail.store(Fail::No as u32, Relaxed);
        Ok(())
    }
}
