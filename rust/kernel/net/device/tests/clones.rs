// SPDX-License-Identifier: GPL-2.0

//! Tests of receiving packets that were transmitted, and whose data their sender keeps.

use super::{
    dummy::Reception,
    fixture::Fixture, //
};

use crate::{
    bindings,
    error::to_result,
    net::skbuff::{
        SkBuff,
        UniqueSkBuff, //
    },
    prelude::*,
    sync::atomic::Relaxed, //
};

use core::ptr::NonNull;

/// Length of the Ethernet, IPv4 and TCP headers.
const HEADERS: usize = 14 + 20 + 20;

/// Number of bytes behind them.
const PAYLOAD: usize = 1000;

/// The checksum of an IPv4 header.
fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]))
        .sum();

    // CAST: The sum of both halves fits when the carry has been added.
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// A segment of a TCP connection, to another host. The payload consists of `fill` and is in a page
/// fragment.
fn segment(seq: u32, fill: u8) -> Result<SkBuff> {
    let mut headers = [0; HEADERS];
    headers[..14].copy_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0]);
    headers[14..34].copy_from_slice(&[
        0x45, 0, 4, 16, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
    ]);
    let sum = checksum(&headers[14..34]);
    headers[24..26].copy_from_slice(&sum.to_be_bytes());
    headers[34..38].copy_from_slice(&[0x30, 0, 0x30, 1]);
    headers[38..42].copy_from_slice(&seq.to_be_bytes());
    // The length of the header, and that the acknowledgment counts.
    headers[46..48].copy_from_slice(&[0x50, 0x10]);

    let mut error = 0;
    // SAFETY: The flags allow the context.
    let skb = unsafe {
        bindings::alloc_skb_with_frags(HEADERS, PAYLOAD, 0, &mut error, bindings::GFP_KERNEL)
    };
    // SAFETY: The packet is new and ours.
    let mut skb = unsafe { UniqueSkBuff::from_new(NonNull::new(skb).ok_or(ENOMEM)?) };
    skb.put(&headers)?;
    // As if a NIC had seen to that.
    skb.set_checksum_verified();

    let payload = [fill; PAYLOAD];
    // SAFETY: The fragment has this many bytes. The packet is ours.
    to_result(unsafe {
        (*skb.as_raw()).data_len = PAYLOAD as u32;
        (*skb.as_raw()).len += PAYLOAD as u32;
        bindings::skb_store_bits(
            skb.as_raw(),
            HEADERS as c_int,
            payload.as_ptr().cast(),
            PAYLOAD as c_int,
        )
    })?;
    Ok(skb.into())
}

/// Whether a segment is as it was made, and its data ours.
fn is_whole(skb: &SkBuff, fill: u8) -> bool {
    let mut payload = [0u8; PAYLOAD];

    // SAFETY: The packet is valid.
    let copied = unsafe {
        bindings::skb_copy_bits(
            skb.as_raw(),
            HEADERS as c_int,
            payload.as_mut_ptr().cast(),
            PAYLOAD as c_int,
        )
    };
    copied == 0
        && payload == [fill; PAYLOAD]
        && skb.len() as usize == HEADERS + PAYLOAD
        && (skb.nr_frags(), skb.has_frag_list()) == (1, false)
        && !skb.is_cloned()
        && !skb.is_shared()
}

/// Transmits clones of two segments that follow each other, and has them received. Returns whether
/// the segments are as they were, how many packets the stack has got, and how often interrupts
/// were enabled.
fn loop_back(how: Reception) -> Result<(bool, u64, u32)> {
    let device = Fixture::new(1)?;
    device.log.reception.store(how as u32, Relaxed);
    device.up()?;

    // TCP keeps these to send them again.
    let originals = [segment(1, 0xaa)?, segment(1 + PAYLOAD as u32, 0x55)?];
    for original in &originals {
        // SAFETY: The packet is valid.
        let clone = unsafe { bindings::skb_clone(original.as_raw(), bindings::GFP_KERNEL) };
        // SAFETY: The clone is new and ours.
        let clone = unsafe { SkBuff::from_raw(NonNull::new(clone).ok_or(ENOMEM)?) };
        let sent = device.transmit_unchecked(clone, 0)?;
        if sent != Some(bindings::netdev_tx::NETDEV_TX_OK) {
            return Err(EIO);
        }
    }
    device.interrupt(0);

    let whole = is_whole(&originals[0], 0xaa) && is_whole(&originals[1], 0x55);
    // They are for another host.
    let received = device.stats().rx_otherhost_dropped;
    Ok((whole, received, device.log.unmasked.load(Relaxed)))
}

#[macros::kunit_tests(rust_net_clones)]
mod cases {
    use super::*;

    /// GRO edits the shared info of the packets that it merges.
    #[test]
    fn gro_does_not_reach_what_the_sender_keeps() -> Result {
        for how in [Reception::One, Reception::List] {
            let (whole, received, _) = loop_back(how)?;
            assert!(whole);
            assert!(!cfg!(CONFIG_INET) || received == 1);
        }
        Ok(())
    }

    /// The stack would enable them in kernels that trace interrupts: nothing goes there before the
    /// poll function has returned.
    #[test]
    fn interrupts_stay_disabled() -> Result {
        if !cfg!(all(CONFIG_TRACE_IRQFLAGS, CONFIG_PAGE_POOL)) {
            return Ok(());
        }
        for (how, packets) in [(Reception::OneMasked, 0), (Reception::ListMasked, 2)] {
            let (whole, received, unmasked) = loop_back(how)?;
            assert!(whole);
            assert_eq!(unmasked, 0);
            assert!(!cfg!(CONFIG_INET) || received == packets);
        }
        Ok(())
    }
}
