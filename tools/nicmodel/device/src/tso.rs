// SPDX-License-Identifier: GPL-2.0
//! Transmit offloads: checksums, and cutting a large send into frames.

use arbitrary_int::traits::Integer;

use crate::checksum::{finish, insert_ipv4, sctp, sum};
use crate::descriptor::{Transport, TxContextHigh, TxContextLow};
use crate::packet::{be16, put_be16};
use crate::tx::{MAX_FRAME, MIN_MSS};

/// A context descriptor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Context {
    pub vlan: u16,
    pub mac_len: usize,
    pub ip_len: usize,
    pub l4_len: usize,
    pub mss: usize,
    pub ipv4: bool,
    pub transport: Transport,
}

impl Context {
    pub(crate) fn decode(low: TxContextLow, high: TxContextHigh) -> Self {
        Self {
            vlan: low.vlan(),
            mac_len: low.maclen().as_usize(),
            ip_len: low.iplen().as_usize(),
            l4_len: usize::from(high.l4len()),
            mss: usize::from(high.mss()),
            ipv4: high.ipv4(),
            transport: high.l4t(),
        }
    }

    fn l4(&self) -> usize {
        self.mac_len + self.ip_len
    }

    pub(crate) fn headers(&self) -> usize {
        self.l4() + self.l4_len
    }
}

/// The offload that was asked for does not fit the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nonsense;

/// Inserts the checksums that a data descriptor asks for.
pub(crate) fn checksums(
    frame: &mut [u8],
    context: &Context,
    ip: bool,
    transport: bool,
) -> Result<(), Nonsense> {
    if ip {
        if context.ip_len < 20 || context.l4() > frame.len() {
            return Err(Nonsense);
        }
        insert_ipv4(frame, context.mac_len, context.ip_len);
    }
    if transport {
        let l4 = context.l4();
        match context.transport {
            Transport::Tcp => insert_internet(frame, l4, 16, 0, false),
            Transport::Udp => insert_internet(frame, l4, 6, 0, true),
            Transport::Sctp => insert_sctp(frame, l4),
            Transport::Reserved => Err(Nonsense),
        }?;
    }
    Ok(())
}

/// Sums from `l4` to the end; the driver left the sum of the pseudo header in the field.
fn insert_internet(
    frame: &mut [u8],
    l4: usize,
    field: usize,
    extra: u32,
    never_zero: bool,
) -> Result<(), Nonsense> {
    if l4 + field + 2 > frame.len() {
        return Err(Nonsense);
    }
    let value = match finish(sum(&frame[l4..], extra)) {
        0 if never_zero => 0xffff,
        value => value,
    };
    put_be16(frame, l4 + field, value);
    Ok(())
}

fn insert_sctp(frame: &mut [u8], l4: usize) -> Result<(), Nonsense> {
    if l4 + 12 > frame.len() {
        return Err(Nonsense);
    }
    let crc = sctp(&frame[l4..]);
    frame[l4 + 8..l4 + 12].copy_from_slice(&crc.to_le_bytes());
    Ok(())
}

/// Masks for the TCP flags of the first, the middle and the last segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlagMasks {
    pub first: u16,
    pub middle: u16,
    pub last: u16,
}

/// Cuts `send` into frames of at most `mss` bytes of payload each.
pub(crate) fn segment(
    send: &[u8],
    context: &Context,
    masks: FlagMasks,
    scratch: &mut Vec<u8>,
    mut out: impl FnMut(&mut Vec<u8>),
) -> Result<(), Nonsense> {
    let headers = context.headers();
    let l4 = context.l4();
    let (min_l4, checksum_at) = match context.transport {
        Transport::Tcp => (20, 16),
        Transport::Udp => (8, 6),
        Transport::Sctp | Transport::Reserved => return Err(Nonsense),
    };
    let min_ip = if context.ipv4 { 20 } else { 40 };
    if context.mss < MIN_MSS
        || headers + context.mss.min(send.len()) > MAX_FRAME
        || context.mac_len < 12
        || context.ip_len < min_ip
        || context.l4_len < min_l4
        || headers >= send.len()
    {
        return Err(Nonsense);
    }
    let (header, payload) = send.split_at(headers);
    let count = payload.len().div_ceil(context.mss);
    for (i, chunk) in payload.chunks(context.mss).enumerate() {
        scratch.clear();
        scratch.extend_from_slice(header);
        scratch.extend_from_slice(chunk);
        let frame = scratch.as_mut_slice();
        let l4_total = context.l4_len + chunk.len();
        let l3 = context.mac_len;
        if context.ipv4 {
            put_be16(frame, l3 + 2, (context.ip_len + l4_total) as u16);
            let id = be16(frame, l3 + 4).wrapping_add(i as u16);
            put_be16(frame, l3 + 4, id);
            // The field counts as the driver left it: in a tunnel, it cancels the further headers.
            let value = finish(sum(&frame[l3..l4], 0));
            put_be16(frame, l3 + 10, value);
        } else {
            put_be16(frame, l3 + 4, (context.ip_len - 40 + l4_total) as u16);
        }
        if context.transport == Transport::Tcp {
            tcp_header(frame, l4, i * context.mss, flag_mask(masks, i, count));
        } else {
            put_be16(frame, l4 + 4, l4_total as u16);
        }
        // The driver left the pseudo header without its length in the field.
        let never_zero = context.transport == Transport::Udp;
        insert_internet(frame, l4, checksum_at, l4_total as u32, never_zero)?;
        out(scratch);
    }
    Ok(())
}

fn flag_mask(masks: FlagMasks, i: usize, count: usize) -> u16 {
    if i + 1 == count {
        // A lone segment is the last one: its flags stay.
        if i == 0 { 0xfff } else { masks.last }
    } else if i == 0 {
        masks.first
    } else {
        masks.middle
    }
}

fn tcp_header(frame: &mut [u8], l4: usize, advance: usize, mask: u16) {
    let sequence = u32::from(be16(frame, l4 + 4)) << 16 | u32::from(be16(frame, l4 + 6));
    let sequence = sequence.wrapping_add(advance as u32);
    put_be16(frame, l4 + 4, (sequence >> 16) as u16);
    put_be16(frame, l4 + 6, sequence as u16);
    let word = be16(frame, l4 + 12);
    put_be16(frame, l4 + 12, word & 0xf000 | word & 0x0fff & mask);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::{pseudo, verify};
    use crate::packet::{TCP, UDP, parse};
    use crate::testing::{tcp_send, udp_frame};

    const MASKS: FlagMasks = FlagMasks {
        first: 0xff6,
        middle: 0xf76,
        last: 0xf7f,
    };

    fn context(transport: Transport, l4_len: usize, mss: usize) -> Context {
        Context {
            vlan: 0,
            mac_len: 14,
            ip_len: 20,
            l4_len,
            mss,
            ipv4: true,
            transport,
        }
    }

    #[test]
    fn udp_checksum_from_a_seeded_field() {
        let good = udp_frame(101);
        let mut frame = good.clone();
        let parsed = parse(&frame);
        let seed = pseudo(&frame, &parsed, UDP) + (frame.len() - parsed.l4) as u32;
        put_be16(&mut frame, parsed.l4 + 6, !finish(seed));
        put_be16(&mut frame, parsed.l3 + 10, 0);
        checksums(&mut frame, &context(Transport::Udp, 8, 0), true, true).expect("fits");
        assert_eq!(frame, good);
    }

    #[test]
    fn segments_carry_everything_once_and_are_well_formed() {
        let payload: Vec<u8> = (0..3001_u32).map(|i| i as u8).collect();
        let send = tcp_send(&payload);
        let (mut joined, mut flags, mut sequences) = (Vec::new(), Vec::new(), Vec::new());
        segment(
            &send,
            &context(Transport::Tcp, 20, 1000),
            MASKS,
            &mut Vec::new(),
            |frame| {
                let parsed = parse(frame);
                assert_eq!(parsed.protocol, Some(TCP));
                let verdict = verify(frame, &parsed);
                assert!(verdict.l4_checked && !verdict.l4_bad && !verdict.ip_bad);
                joined.extend_from_slice(&frame[54..]);
                flags.push(frame[47]);
                sequences.push(be16(frame, 40));
            },
        )
        .expect("fits");
        assert_eq!(joined, payload);
        // PSH and FIN only at the end, CWR only at the start.
        assert_eq!(flags, [0x90, 0x10, 0x10, 0x19]);
        assert_eq!(sequences, [0, 1000, 2000, 3000]);
    }

    #[test]
    fn a_tunnel_has_an_outer_header_of_its_own() {
        let payload = [7_u8; 2500];
        let inner = tcp_send(&payload);
        // VXLAN: all between the outer header and the inner TCP is the same in each segment.
        let mut send = inner[..34].to_vec();
        send[23] = UDP;
        send.extend_from_slice(&[0x30, 1, 0x12, 0xb5, 4, 30, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0]);
        send.extend_from_slice(&inner);
        let l4 = 34 + 16 + 34;
        let cancels = finish(sum(&send[34..l4], 0));
        put_be16(&mut send, 24, cancels);
        let mut context = context(Transport::Tcp, 20, 1000);
        context.ip_len = l4 - 14;
        let mut lengths = Vec::new();
        segment(&send, &context, MASKS, &mut Vec::new(), |frame| {
            assert_eq!(finish(sum(&frame[14..34], 0)), 0, "the outer checksum");
            assert_eq!(frame[34..l4 - 20], send[34..l4 - 20]);
            lengths.push((frame.len(), usize::from(be16(frame, 16)), be16(frame, 18)));
        })
        .expect("fits");
        let id = be16(&send, 18);
        let long = l4 + 20 + 1000;
        let short = l4 + 20 + 500;
        assert_eq!(
            lengths,
            [
                (long, long - 14, id),
                (long, long - 14, id + 1),
                (short, short - 14, id + 2)
            ]
        );
    }

    #[test]
    fn nonsense_is_refused() {
        let send = tcp_send(&[0; 100]);
        let run = |context: Context| segment(&send, &context, MASKS, &mut Vec::new(), |_| {});
        assert_eq!(run(context(Transport::Tcp, 20, MIN_MSS - 1)), Err(Nonsense));
        assert_eq!(run(context(Transport::Tcp, 20, MIN_MSS)), Ok(()));
        assert_eq!(run(context(Transport::Sctp, 20, 100)), Err(Nonsense));
        assert_eq!(run(context(Transport::Tcp, 200, 100)), Err(Nonsense));
        assert_eq!(
            run(Context {
                ip_len: 0,
                ..context(Transport::Tcp, 20, 9)
            }),
            Err(Nonsense)
        );
        let mut short = [0_u8; 20];
        assert_eq!(
            checksums(&mut short, &context(Transport::Tcp, 20, 0), false, true),
            Err(Nonsense)
        );
    }
}
