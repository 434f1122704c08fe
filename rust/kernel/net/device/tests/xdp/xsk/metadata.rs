// SPDX-License-Identifier: GPL-2.0

//! Tests of what users ask for with frames that they send.

use super::{
    super::{
        formats::{
            CHECKSUM_AT,
            CONTEXT,
            SUMMED, //
        },
        nic::MORE, //
    },
    *, //
};

/// The number of bytes in front of a frame.
const LEN: u8 = 24;

const CHECKSUM: u64 = bindings::XDP_TXMD_FLAGS_CHECKSUM as u64;

/// As [`bound`], of a user that may ask for more than to send frames.
fn asking() -> Result<(XdpDevice, Program, User)> {
    let (device, program) = device(act)?;
    let user = User::with_metadata(device.dev(), LEN)?;

    user.bind()?;
    Ok((device, program, user))
}

/// The address of a frame, by its number.
fn frame(number: u64) -> u64 {
    (CHUNKS as u64 + number) * CHUNK as u64 + u64::from(LEN)
}

/// Asks with a frame.
fn ask(user: &User, number: u64, flags: u64, start: u16, offset: u16) {
    let mut metadata = [0_u8; LEN as usize];

    metadata[..8].copy_from_slice(&flags.to_ne_bytes());
    metadata[8..10].copy_from_slice(&start.to_ne_bytes());
    metadata[10..12].copy_from_slice(&offset.to_ne_bytes());
    user.write(frame(number) as usize - usize::from(LEN), &metadata);
}

#[macros::kunit_tests(rust_net_xsk_metadata)]
mod cases {
    use super::*;

    #[test]
    fn checksums_are_inserted_where_users_ask_for_it() -> Result {
        let (device, _program, user) = asking()?;
        let (asked, more) = (bindings::XDP_TX_METADATA, bindings::XDP_PKT_CONTD);

        ask(&user, 0, CHECKSUM, 34, CHECKSUM_AT);
        ask(&user, 1, CHECKSUM, 38, CHECKSUM_AT);
        ask(&user, 3, 0, 38, CHECKSUM_AT);
        // A flag that nobody knows asks for nothing.
        ask(&user, 4, CHECKSUM | 1 << 40, 38, CHECKSUM_AT);
        ask(&user, 5, CHECKSUM, 34, CHECKSUM_AT);
        for (number, (len, options)) in [
            (60, asked),
            (50, asked | more),
            (40, 0),
            (61, asked),
            (62, asked),
            (63, 0),
        ]
        .into_iter()
        .enumerate()
        {
            user.send_with(frame(number as u64), len, options);
        }
        device.run_xsk(|ring, _, cx| {
            let sent = XskSent {
                frames: 5,
                bytes: 60 + 90 + 61 + 62 + 63,
                refused: 0,
                // There has to be room for what they could have asked for.
                has_more: false,
            };

            check(ring.transmit(cx, 64)? == sent)?;
            check((ring.tx_in_use(), ring.take_tx_tail()) == (8, Some(8)))?;
            let first = ring.tx_words(cx, 1)[0];
            for (index, words) in [
                [34, CONTEXT],
                [first, 60 << 32 | SUMMED],
                [38, CONTEXT],
                [first + CHUNK as u64, 50 << 32 | 40 << 16 | MORE | SUMMED],
                [first + 2 * CHUNK as u64, 40 << 32 | 50 << 16 | SUMMED],
                [first + 3 * CHUNK as u64, 61 << 32],
                [first + 4 * CHUNK as u64, 62 << 32],
                [first + 5 * CHUNK as u64, 63 << 32],
            ]
            .into_iter()
            .enumerate()
            {
                check(ring.tx_words(cx, index) == words)?;
            }
            // The NIC reports the last one of a frame.
            ring.write_back_tx(cx, 0, DONE);
            ring.poll(cx).map(drop)?;
            check(ring.tx_in_use() == 8)?;
            ring.write_back_tx(cx, 1, DONE);
            ring.poll(cx).map(drop)?;
            check(ring.tx_in_use() == 6)?;
            ring.write_back_tx(cx, 4, DONE);
            ring.poll(cx).map(drop)?;
            check(ring.tx_in_use() == 3)
        })?;
        for number in 0..3 {
            assert_eq!(user.sent(), Some(frame(number)));
        }
        assert_eq!(user.sent(), None);
        user.unbind()?;
        assert_eq!(user.sent(), Some(frame(3)));
        Ok(())
    }

    #[test]
    fn what_the_nic_cannot_do_is_refused() -> Result {
        let (device, _program, user) = asking()?;
        let asked = bindings::XDP_TX_METADATA;

        for (number, (start, offset)) in [
            (34, CHECKSUM_AT + 1),
            // The last two bytes, and one behind the end.
            (52, CHECKSUM_AT),
            (53, CHECKSUM_AT),
            (u16::MAX, u16::MAX),
            (0, CHECKSUM_AT),
        ]
        .into_iter()
        .enumerate()
        {
            ask(&user, number as u64, CHECKSUM, start, offset);
            user.send_with(frame(number as u64), 60, asked);
        }
        device.run_xsk(|ring, _, cx| {
            let sent = ring.transmit(cx, 64)?;

            check((sent.frames, sent.bytes, sent.refused) == (2, 120, 3))?;
            check(ring.tx_words(cx, 0) == [52, CONTEXT])?;
            check(ring.tx_words(cx, 2) == [0, CONTEXT])?;
            for index in [1, 3] {
                ring.write_back_tx(cx, index, DONE);
            }
            ring.poll(cx).map(drop)?;
            check(ring.tx_in_use() == 0)
        })?;
        for number in 0..5 {
            assert_eq!(user.sent(), Some(frame(number)));
        }
        user.unbind()
    }

    #[test]
    fn without_metadata_nobody_is_asked() -> Result {
        let (device, _program, user) = bound(act, false)?;

        ask(&user, 0, CHECKSUM, 34, CHECKSUM_AT);
        user.send_with(frame(0), 60, bindings::XDP_TX_METADATA);
        device.run_xsk(|ring, _, cx| {
            check(ring.transmit(cx, 64)?.frames == 1)?;
            check(ring.tx_in_use() == 1 && ring.tx_words(cx, 0)[1] == 60 << 32)
        })?;
        user.unbind()
    }

    #[test]
    fn there_is_room_for_what_they_ask() -> Result {
        let (device, _program, user) = asking()?;

        for number in 0..16 {
            ask(&user, number, CHECKSUM, 34, CHECKSUM_AT);
            user.send_with(frame(number), 60, bindings::XDP_TX_METADATA);
        }
        device.run_xsk(|ring, _, cx| {
            let sent = ring.transmit(cx, 64)?;
            check((sent.frames, sent.has_more, ring.tx_in_use()) == (7, false, 14))?;
            check(ring.transmit(cx, 64)? == XskSent::default())?;
            ring.write_back_tx(cx, 1, DONE);
            ring.poll(cx).map(drop)?;
            check(ring.transmit(cx, 64)?.frames == 1 && ring.tx_in_use() == 14)
        })?;
        user.unbind()
    }
}
