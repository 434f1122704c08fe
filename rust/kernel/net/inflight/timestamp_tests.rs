// SPDX-License-Identifier: GPL-2.0

//! Tests of the times at which packets are sent.

#[crate::prelude::kunit_tests(rust_net_inflight_timestamps)]
mod cases {
    use super::super::{
        tests::cases::{
            TestDevice,
            LIMITS, //
        },
        *, //
    };
    use crate::{
        error::to_result,
        net::{
            device::Device,
            skbuff::{
                SkBuff,
                UniqueSkBuff, //
            }, //
        }, //
    };
    use core::{
        mem::offset_of,
        ptr::{
            self,
            NonNull, //
        }, //
    };

    /// A sender.
    struct Socket(NonNull<bindings::socket>);

    impl Socket {
        fn new() -> Result<Self> {
            let mut socket = ptr::null_mut();

            // SAFETY: This is a namespace that exists, and a place for a socket.
            to_result(unsafe {
                bindings::sock_create_kern(
                    &raw mut bindings::init_net,
                    bindings::AF_INET as c_int,
                    bindings::sock_type_SOCK_DGRAM as c_int,
                    bindings::IPPROTO_UDP as c_int,
                    &mut socket,
                )
            })?;
            Ok(Self(NonNull::new(socket).ok_or(ENOMEM)?))
        }

        fn sk(&self) -> *mut bindings::sock {
            // SAFETY: The socket is valid.
            unsafe { (*self.0.as_ptr()).sk }
        }

        /// A packet of the socket, which wants to know when it is sent, from the transmit function
        /// of `dev`.
        fn packet(&self, dev: *mut bindings::net_device) -> Result<SkBuff> {
            let mut skb = UniqueSkBuff::alloc(60, GFP_KERNEL)?;
            skb.put(&[0x5a; 60])?;

            // SAFETY: The packet is ours, and the socket is valid.
            unsafe {
                bindings::skb_set_owner_w(skb.as_raw(), self.sk());
                (*skb.shared_info()).tx_flags |= bindings::SKBTX_SW_TSTAMP as u8;
                (*skb.as_raw())
                    .__bindgen_anon_1
                    .__bindgen_anon_1
                    .__bindgen_anon_1
                    .dev = dev;
            }
            Ok(skb.into())
        }

        /// The number of the device that a report names.
        fn reported(&self) -> Option<c_int> {
            // SAFETY: The socket is valid.
            let skb = NonNull::new(unsafe { bindings::sock_dequeue_err_skb(self.sk()) })?;
            // SAFETY: The packet is ours.
            let skb = unsafe { SkBuff::from_raw(skb) };

            // SAFETY: Reports have a `struct sock_exterr_skb` there, and that begins with the
            // number, as a `struct inet_skb_parm` does.
            Some(unsafe {
                skb.as_raw()
                    .byte_add(offset_of!(bindings::sk_buff, cb))
                    .cast::<c_int>()
                    .read()
            })
        }
    }

    impl Drop for Socket {
        fn drop(&mut self) {
            // SAFETY: The socket is ours.
            unsafe { bindings::sock_release(self.0.as_ptr()) };
        }
    }

    /// As much of a network device as has a number.
    fn numbered(number: c_int) -> Result<KBox<bindings::net_device>> {
        let dev = KBox::<bindings::net_device>::new_uninit(GFP_KERNEL | __GFP_ZERO)?;
        // SAFETY: All zeros are a valid value.
        let mut dev = unsafe { dev.assume_init() };

        dev.ifindex = number;
        Ok(dev)
    }

    /// A driver may have kept a packet for longer than the device exists that it was given to.
    #[test]
    fn the_device_is_the_one_that_sends() -> Result {
        let parent = TestDevice::new()?;
        let socket = Socket::new()?;
        let (mut former, mut sending) = (numbered(77)?, numbered(78)?);

        for (netdev, number) in [(ptr::null_mut(), 0), (&raw mut *sending, 78)] {
            let len = RingSize::of::<8>();
            // SAFETY: The device outlives the producer.
            let (mut tx, _rx) = unsafe { pair_of(parent.device(), netdev, None, len, LIMITS)? };

            assert!(socket.reported().is_none());
            let skb = socket.packet(&raw mut *former)?;
            assert!(tx.submit(skb, 0, |_, _| ()).is_ok());
            assert_eq!(socket.reported(), Some(number));

            // A packet of several descriptors, which begins with a context.
            let skb = socket.packet(&raw mut *former)?;
            assert!(tx.submit(skb, 1, |_, _| ()).is_ok());
            assert_eq!(socket.reported(), Some(number));
        }
        Ok(())
    }

    /// The time may come when the device that was to send the packet is gone.
    #[test]
    fn a_stamp_is_reported_for_the_device_that_sends() -> Result {
        let socket = Socket::new()?;
        let (mut former, mut sending) = (numbered(77)?, numbered(78)?);

        for (dev, reported) in [(&raw mut *former, None), (&raw mut *sending, Some(78))] {
            let mut skb = socket.packet(dev)?;

            // SAFETY: The packet is ours.
            unsafe { (*skb.shared_info()).tx_flags |= bindings::SKBTX_HW_TSTAMP_NOBPF as u8 };
            // SAFETY: It is as much of a device as is looked at.
            let sending = unsafe { Device::from_raw(&raw mut *sending) };
            skb.promise_timestamp().report(sending, 1);
            assert_eq!(socket.reported(), reported);
        }
        Ok(())
    }

    /// Then its time may still come, and would be taken for that of another packet.
    #[test]
    fn a_packet_in_flight_is_pending() -> Result {
        let parent = TestDevice::new()?;
        let socket = Socket::new()?;
        let mut sending = numbered(78)?;
        let len = RingSize::of::<8>();
        // SAFETY: The device outlives the producer.
        let (mut tx, rx) =
            unsafe { pair_of(parent.device(), &raw mut *sending, None, len, LIMITS)? };
        let mut skb = socket.packet(&raw mut *sending)?;
        let stamp = skb.promise_timestamp();

        assert!(tx.submit(skb, 0, |_, _| ()).is_ok());
        assert!(stamp.is_pending());
        drop(tx);
        rx.finish_all(|_| true);
        assert!(!stamp.is_pending());
        stamp.give_up();
        Ok(())
    }
}
