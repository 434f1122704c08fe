// SPDX-License-Identifier: GPL-2.0

//! Tests of the last look that the core takes at a packet before a device gets it.
//!
//! The device can do nothing by itself.

use super::fixture::Fixture;

use crate::{
    bindings,
    net::skbuff::{
        SkBuff,
        UniqueSkBuff, //
    },
    prelude::*,
    sync::atomic::Relaxed, //
};

use core::ptr::{
    self,
    NonNull, //
};

const LEN: usize = 60;

/// A linear packet of [`LEN`] bytes.
fn linear() -> Result<UniqueSkBuff> {
    let mut skb = UniqueSkBuff::alloc(128, GFP_KERNEL)?;

    skb.put(&[0xff; 12])?;
    skb.put(&[0x88, 0xb5])?;
    skb.put(&[0; LEN - 14])?;
    Ok(skb)
}

/// The same with its last bytes in a page fragment.
fn with_fragment() -> Result<SkBuff> {
    const FRAGMENT: usize = 20;
    let mut error = 0;

    // SAFETY: The flags allow the context.
    let skb = unsafe {
        bindings::alloc_skb_with_frags(LEN, FRAGMENT, 0, &mut error, bindings::GFP_KERNEL)
    };
    // SAFETY: The packet is new and ours.
    let mut skb = unsafe { UniqueSkBuff::from_new(NonNull::new(skb).ok_or(ENOMEM)?) };
    skb.put(&[0xff; LEN - FRAGMENT])?;
    // SAFETY: The fragment has this many bytes. The packet is ours.
    unsafe {
        (*skb.as_raw()).data_len = FRAGMENT as u32;
        (*skb.as_raw()).len += FRAGMENT as u32;
    }
    Ok(skb.into())
}

impl Fixture {
    /// Has a packet validated. Returns what is left of it, and whether the driver was asked what
    /// its device can do for it.
    fn validate(&self, skb: impl Into<SkBuff>) -> (Option<SkBuff>, bool) {
        let skb = skb.into().into_raw().as_ptr();
        let before = self.log.features_checks.load(Relaxed);
        let mut again = false;

        // SAFETY: The packet is ours, and is given away. The core returns none, or one that is ours
        // again: the tests have no packet that it can split.
        let left = unsafe {
            (*skb)
                .__bindgen_anon_1
                .__bindgen_anon_1
                .__bindgen_anon_1
                .dev = self.dev();
            let left = bindings::validate_xmit_skb_list(skb, self.dev(), &mut again);
            NonNull::new(left).map(|left| SkBuff::from_raw(left))
        };
        assert!(!again);
        (left, self.log.features_checks.load(Relaxed) != before)
    }
}

#[macros::kunit_tests(rust_net_validate)]
mod cases {
    use super::*;

    #[test]
    fn a_driver_is_not_asked_about_a_plain_packet() -> Result {
        let device = Fixture::new(1)?;
        let skb = linear()?;
        let raw = skb.as_raw();

        let (left, asked) = device.validate(skb);
        let left = left.ok_or(EINVAL)?;
        assert_eq!((left.as_raw(), left.len() as usize), (raw, LEN));
        assert!(!asked);

        // Nor if the checksum has been verified.
        let mut skb = linear()?;
        skb.set_checksum_verified();
        let (left, asked) = device.validate(skb);
        assert!(left.is_some() && !asked);
        Ok(())
    }

    #[test]
    fn fragments_are_copied() -> Result {
        let device = Fixture::new(1)?;

        let (left, asked) = device.validate(with_fragment()?);
        let left = left.ok_or(EINVAL)?;
        assert!(asked);
        assert_eq!((left.head_len() as usize, left.nr_frags()), (LEN, 0));
        Ok(())
    }

    #[test]
    fn what_the_cpu_cannot_read_is_dropped() -> Result {
        let device = Fixture::new(1)?;
        let skb = linear()?;

        // SAFETY: The packet is ours.
        unsafe {
            let header = &raw mut (*skb.as_raw()).__bindgen_anon_4.__bindgen_anon_1;
            (*header.cast::<bindings::sk_buff__bindgen_ty_4__bindgen_ty_1>()).set_unreadable(1);
        }
        let (left, _) = device.validate(skb);
        assert!(left.is_none());
        Ok(())
    }

    #[test]
    fn a_checksum_is_completed() -> Result {
        let device = Fixture::new(1)?;
        let skb = linear()?;

        // SAFETY: The packet is ours.
        assert!(unsafe { bindings::skb_partial_csum_set(skb.as_raw(), 14, 2) });
        assert!(skb.partial_checksum().is_some());
        let (left, asked) = device.validate(skb);
        let left = left.ok_or(EINVAL)?;
        assert!(asked);
        assert_eq!(left.partial_checksum(), None);
        // The sum over zeros.
        assert_eq!(left.data()[16..18], [0xff; 2]);
        Ok(())
    }

    #[test]
    fn a_vlan_tag_is_inserted() -> Result {
        let device = Fixture::new(1)?;
        let mut skb = linear()?;

        skb.set_vlan_tag(7);
        let (left, asked) = device.validate(skb);
        let left = left.ok_or(EINVAL)?;
        assert!(asked);
        assert_eq!((left.vlan_tag(), left.len() as usize), (None, LEN + 4));
        assert_eq!(left.data()[12..16], [0x81, 0, 0, 7]);
        Ok(())
    }

    #[test]
    fn what_is_to_be_split_does_not_leave_whole() -> Result {
        let device = Fixture::new(1)?;
        let mut skb = linear()?;

        skb.set_checksum_verified();
        // SAFETY: The packet is ours.
        unsafe {
            let info = skb.shared_info();
            (*info).gso_size = 10;
            (*info).gso_segs = 5;
            (*info).gso_type = bindings::SKB_GSO_TCPV4 as u32;
        }
        // No protocol can split it.
        let (left, asked) = device.validate(skb);
        assert!(left.is_none() && asked);
        Ok(())
    }

    #[test]
    fn a_socket_has_its_say() -> Result {
        let device = Fixture::new(1)?;
        let skb = linear()?;

        // SAFETY: The packet is ours, and the socket, one of the core's own, remains. It has no
        // say in fact.
        unsafe { (*skb.as_raw()).sk = (&raw const bindings::init_net.rtnl).read() };
        let (left, asked) = device.validate(skb);
        let left = left.ok_or(EINVAL)?;
        // SAFETY: The packet is ours.
        unsafe { (*left.as_raw()).sk = ptr::null_mut() };
        assert!(asked);
        Ok(())
    }
}
