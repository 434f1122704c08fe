// SPDX-License-Identifier: GPL-2.0

//! Tests of packets and their states.

#[cfg(CONFIG_KUNIT)]
use super::SkBuff;

#[cfg(CONFIG_KUNIT)]
use crate::{
    bindings,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

#[cfg(CONFIG_KUNIT)]
impl SkBuff {
    /// Whether the data may be shared with a clone.
    pub(in crate::net) fn is_cloned(&self) -> bool {
        // SAFETY: `self.ptr` is valid by the type invariants.
        let cloned = unsafe { bindings::sk_buff::cloned_raw(self.as_raw()) } != 0;

        // SAFETY: As above. `atomic_t` holds an `int` that is only accessed atomically. The upper
        // half counts references to the payload alone, which do not keep us from the header; that
        // distinction is left to C, here any second reference makes the data shared.
        cloned
            && unsafe {
                Atomic::<i32>::from_ptr((&raw mut (*self.shared_info()).dataref).cast::<i32>())
            }
            .load(Relaxed)
                != 1
    }
}

#[crate::prelude::kunit_tests(rust_skbuff)]
mod cases {
    use super::super::{
        unique::allowed,
        ChecksumKind,
        PartialChecksum,
        SkBuff,
        UniqueSkBuff, //
    };

    use crate::{
        bindings,
        interrupt::local_interrupt_disable,
        prelude::*,
        sync::atomic::{
            Atomic,
            Relaxed, //
        }, //
    };

    use core::ptr::NonNull;

    fn packet(bytes: &[u8]) -> Result<UniqueSkBuff> {
        let mut skb = UniqueSkBuff::alloc(128, GFP_KERNEL)?;
        skb.put(bytes)?;
        Ok(skb)
    }

    /// Makes a packet that shares its data with `skb`.
    fn clone(skb: &SkBuff) -> Result<SkBuff> {
        // SAFETY: The packet is valid.
        let clone = unsafe { bindings::skb_clone(skb.as_raw(), bindings::GFP_KERNEL) };
        // SAFETY: The clone is new and ours.
        Ok(unsafe { SkBuff::from_raw(NonNull::new(clone).ok_or(ENOMEM)?) })
    }

    /// Makes a second reference to a packet.
    fn share(skb: &SkBuff) -> Result<SkBuff> {
        // SAFETY: The packet is valid, so its reference count can be raised.
        unsafe { bindings::refcount_inc(&raw mut (*skb.as_raw()).users) };
        // SAFETY: The new reference is ours.
        Ok(unsafe { SkBuff::from_raw(NonNull::new(skb.as_raw()).ok_or(EINVAL)?) })
    }

    #[test]
    fn a_checksum_that_is_to_be_completed_has_a_kind() -> Result {
        let skb = packet(&[0; 64])?;
        assert_eq!(skb.partial_checksum(), None);

        // SAFETY: The packet is ours.
        assert!(unsafe { bindings::skb_partial_csum_set(skb.as_raw(), 34, 8) });
        let asked = |kind| {
            Some(PartialChecksum {
                start: 34,
                offset: 8,
                kind,
            })
        };
        assert_eq!(skb.partial_checksum(), asked(ChecksumKind::Internet));

        // As SCTP marks it.
        #[cfg(CONFIG_IP_SCTP)]
        {
            // SAFETY: As above.
            unsafe {
                let header = &raw mut (*skb.as_raw()).__bindgen_anon_4.__bindgen_anon_1;
                (*header.cast::<bindings::sk_buff__bindgen_ty_4__bindgen_ty_1>())
                    .set_csum_not_inet(1);
            }
            assert_eq!(skb.partial_checksum(), asked(ChecksumKind::Crc32c));
        }
        Ok(())
    }

    /// A packet whose data is taken for that of a page pool, or of user space.
    fn lent(of_pool: bool) -> Result<SkBuff> {
        let skb = SkBuff::from(packet(&[0; 40])?);

        // SAFETY: The packet is ours. Memory is given back to what it is of, whatever this says.
        unsafe {
            if of_pool {
                (*skb.as_raw()).set_pp_recycle(1);
            } else {
                let info = skb.shared_info();

                (*info).flags |= bindings::SKBFL_ZEROCOPY_ENABLE as u8;
                // There is no callback for when it is given back.
                (*info).__bindgen_anon_2.destructor_arg = core::ptr::null_mut();
            }
        }
        Ok(skb)
    }

    #[test]
    fn memory_of_a_pool_is_not_given_back_with_interrupts_off() -> Result {
        let skb = lent(true)?;
        let own = SkBuff::from(packet(&[0; 40])?);

        let (padded, padded_own) = {
            let _off = local_interrupt_disable();
            (skb.pad_to(60).err(), own.pad_to(60).err())
        };
        assert_eq!((padded, padded_own), (Some(EBUSY), None));
        assert_eq!(lent(true)?.pad_to(60)?.len(), 60);
        Ok(())
    }

    #[test]
    fn nor_are_headers_replaced() -> Result {
        for of_pool in [true, false] {
            let skb = lent(of_pool)?;

            let seeded = {
                let _off = local_interrupt_disable();
                skb.seed_segments().err()
            };
            assert_eq!(seeded, Some(EBUSY));
        }
        // It is no packet to be split.
        assert_eq!(lent(true)?.seed_segments().err(), Some(EINVAL));
        Ok(())
    }

    #[test]
    fn packets_are_copied_to_memory_that_the_kernel_has_mapped() {
        assert_eq!(allowed(GFP_KERNEL | __GFP_HIGHMEM), GFP_KERNEL.as_raw());
        assert_eq!(allowed(GFP_ATOMIC), GFP_ATOMIC.as_raw());
    }

    #[test]
    fn no_packet_is_allocated_that_is_too_long() -> Result {
        // The last ones would be rounded up to nothing.
        for size in [
            SkBuff::MAX_LEN + 1,
            1 << 31,
            u32::MAX - 1024,
            u32::MAX - 62,
            u32::MAX,
        ] {
            assert!(UniqueSkBuff::alloc(size, GFP_KERNEL).is_err());
        }

        let skb = UniqueSkBuff::alloc(SkBuff::MAX_LEN, GFP_KERNEL)?;
        // SAFETY: The packet is valid.
        let room = unsafe { bindings::skb_tailroom(skb.as_raw()) };
        assert!(u32::try_from(room)? >= SkBuff::MAX_LEN);
        Ok(())
    }

    #[test]
    fn no_packet_is_filled_beyond_the_longest() -> Result {
        let bytes = KVec::from_elem(0u8, SkBuff::MAX_LEN as usize / 8, GFP_KERNEL)?;
        let mut skb = UniqueSkBuff::alloc(SkBuff::MAX_LEN, GFP_KERNEL)?;

        for _ in 0..8 {
            skb.put(&bytes)?;
        }
        assert_eq!(skb.len(), SkBuff::MAX_LEN);
        // The allocator has given more room than that.
        // SAFETY: The packet is valid.
        assert!(unsafe { bindings::skb_tailroom(skb.as_raw()) } > 0);
        assert_eq!(skb.put(&bytes[..1]), Err(ENOSPC));
        assert_eq!(skb.len(), SkBuff::MAX_LEN);
        Ok(())
    }

    #[test]
    fn no_packet_is_padded_beyond_the_longest() -> Result {
        for len in [
            SkBuff::MAX_LEN + 1,
            1 << 31,
            (1 << 31) + 64,
            u32::MAX - 64,
            u32::MAX,
        ] {
            let padded = SkBuff::from(packet(b"hello")?).pad_to(len);
            assert!(padded.is_err_and(|error| error == EMSGSIZE));
        }

        let skb = SkBuff::from(packet(b"hello")?).pad_to(SkBuff::MAX_LEN)?;
        assert_eq!(
            (skb.len(), skb.head_len()),
            (SkBuff::MAX_LEN, SkBuff::MAX_LEN)
        );
        assert!(skb.data().starts_with(b"hello"));
        assert!(skb.data()[5..].iter().all(|byte| *byte == 0));
        Ok(())
    }

    #[test]
    fn padding_does_not_reach_others() -> Result {
        let original = SkBuff::from(packet(b"hello")?);

        let padded = clone(&original)?.pad_to(8)?;
        assert_eq!(
            (original.data(), padded.data()),
            (&b"hello"[..], &b"hello\0\0\0"[..])
        );

        let shared = share(&original)?.pad_to(8);
        assert!(shared.is_err_and(|error| error == EBUSY));
        assert!(!original.is_shared());
        // It is long enough.
        assert!(share(&original)?.pad_to(5).is_ok());
        Ok(())
    }

    #[test]
    fn a_clone_becomes_a_packet_with_data_of_its_own() -> Result {
        let original = SkBuff::from(packet(b"hello")?);
        let cloned = clone(&original)?;
        assert!(original.is_cloned() && cloned.is_cloned());

        let raw = cloned.as_raw();
        let mut unique = cloned.into_unique(GFP_KERNEL).map_err(|_| ENOMEM)?;
        assert_eq!(unique.as_raw(), raw);
        assert!(!original.is_cloned() && !unique.is_cloned());
        assert_ne!(original.shared_info(), unique.shared_info());
        unique.data_mut()[0] = b'j';
        assert_eq!(
            (original.data(), unique.data()),
            (&b"hello"[..], &b"jello"[..])
        );
        Ok(())
    }

    #[test]
    fn what_is_ours_alone_is_not_copied() -> Result {
        let skb = SkBuff::from(packet(b"hello")?);
        let places = |skb: &SkBuff| (skb.as_raw(), skb.data().as_ptr());

        let before = places(&skb);
        let unique = skb.into_unique(GFP_KERNEL).map_err(|_| ENOMEM)?;
        assert_eq!(places(&unique), before);
        Ok(())
    }

    #[test]
    fn a_clone_takes_the_place_of_a_shared_packet() -> Result {
        let original = SkBuff::from(packet(b"hello")?);

        let mut unique = share(&original)?
            .into_unique(GFP_KERNEL)
            .map_err(|_| ENOMEM)?;
        assert_ne!(unique.as_raw(), original.as_raw());
        assert!(!original.is_shared() && !original.is_cloned());
        unique.data_mut()[0] = b'j';
        assert_eq!(
            (original.data(), unique.data()),
            (&b"hello"[..], &b"jello"[..])
        );
        Ok(())
    }

    /// The number of packets that have left their socket is in the first word of the control block.
    ///
    /// # Safety
    ///
    /// To be called by C, with a packet whose control block points to a counter.
    unsafe extern "C" fn left(skb: *mut bindings::sk_buff) {
        // SAFETY: By the safety requirements.
        let counter = unsafe { &**(&raw const (*skb).cb).cast::<*const Atomic<u32>>() };
        counter.fetch_add(1, Relaxed);
    }

    #[test]
    fn a_transmit_queue_is_not_taken_for_a_receive_queue() -> Result {
        let skb = SkBuff::from(packet(b"hello")?);

        // SAFETY: The packet is ours.
        unsafe { (*skb.as_raw()).queue_mapping = 3 };
        assert_eq!(skb.queue_mapping(), 3);
        let unique = skb.into_unique(GFP_KERNEL).map_err(|_| ENOMEM)?;
        assert_eq!(unique.queue_mapping(), 0);
        Ok(())
    }

    #[test]
    fn nothing_of_the_sender_is_left() -> Result {
        let counter = Atomic::new(0);
        let mut skb = SkBuff::from(packet(b"hello")?);
        let raw = skb.as_raw();

        // SAFETY: The packet is ours. There is a word of room in its control block. The counter is
        // there until it has left its socket.
        unsafe {
            (&raw mut (*raw).cb)
                .cast::<*const Atomic<u32>>()
                .write(&counter);
            (*raw).__bindgen_anon_3.__bindgen_anon_1.destructor = Some(left);
        }
        {
            // A socket cannot be released here.
            let _off = local_interrupt_disable();
            skb = match skb.into_unique(GFP_ATOMIC) {
                Ok(_) => return Err(EINVAL),
                Err(skb) => skb,
            };
        }
        assert_eq!(counter.load(Relaxed), 0);

        let unique = skb.into_unique(GFP_KERNEL).map_err(|_| ENOMEM)?;
        assert_eq!((unique.as_raw(), counter.load(Relaxed)), (raw, 1));
        // SAFETY: The packet is valid.
        let destructor = unsafe { (*raw).__bindgen_anon_3.__bindgen_anon_1.destructor };
        assert!(destructor.is_none());
        Ok(())
    }
}
