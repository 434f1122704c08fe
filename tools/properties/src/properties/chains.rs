// SPDX-License-Identifier: GPL-2.0

//! Frames whose buffers the NIC says are anywhere in the ring.

use super::check;
use crate::device::Device;
use crate::net::napi::{Napi, Poll, RxStopped};
use crate::net::queue::RingSize;
use crate::page_pool::ring::chains::{ChainFormat, ChainRing, Chained, Continuation, Piece};
use crate::page_pool::ring::{AnyRxRing, RxFormat, LONGEST};
use crate::page_pool::Buffer;
use std::marker::PhantomData;

const LEN: RingSize = RingSize::of::<16>();

/// A NIC whose first word is a place in the ring, and whose second one is a kind of link in its
/// upper half and a length in its lower half.
struct Nic;

const END: u64 = 0;
const FOLLOWING: u64 = 1;
const AT: u64 = 2;

impl RxFormat for Nic {
    fn len(status: u64) -> u16 {
        status as u16
    }
}

impl ChainFormat for Nic {
    fn link(info: u64, status: u64) -> Continuation {
        match status >> 32 {
            END => Continuation::End,
            FOLLOWING => Continuation::Following,
            _ => Continuation::At(info as usize),
        }
    }

    fn packets(_: u64) -> u32 {
        1
    }
}

/// A ring under test: its buffers have the numbers of the descriptors that were ever completed.
struct Trial {
    // Dropped before what it points to.
    ring: ChainRing<Nic>,
    napi: Napi,
    /// Where each descriptor said that its frame goes on, if it does.
    links: Vec<Option<usize>>,
    /// Whether it can go on there.
    is_possible: Vec<bool>,
    is_delivered: Vec<bool>,
}

impl Trial {
    fn new() -> Self {
        let napi = Napi::default();
        let ring = ChainRing::new(&Device::new(), &napi, LEN, 0).expect("there is memory");
        let mut this = Self {
            ring,
            napi,
            links: Vec::new(),
            is_possible: Vec::new(),
            is_delivered: Vec::new(),
        };

        this.refill();
        this
    }

    fn refill(&mut self) {
        self.ring
            .refill(&Poll(PhantomData))
            .expect("it never fails");
    }

    /// The NIC completes the next descriptor; returns the buffers of the frame that ends, if any
    /// does, and whether the descriptor made no sense.
    fn complete(&mut self, kind: u64, at: usize, len: u16) -> (Vec<Buffer>, bool) {
        if self.ring.in_use() == 0 {
            return (Vec::new(), false);
        }
        let index = self.links.len() % LEN.get();
        self.links.push(match kind {
            END => None,
            FOLLOWING => Some((index + 1) % LEN.get()),
            _ => Some(at),
        });
        // The NIC has so many behind this one, and gets the following one in any case.
        let left = self.ring.in_use() - 1;
        let is_possible = match kind {
            END | FOLLOWING => true,
            _ => at < LEN.get() && (1..=left).contains(&((at + LEN.get() - index) % LEN.get())),
        };
        self.is_possible.push(is_possible);
        self.is_delivered.push(false);
        self.ring.complete([at as u64, kind << 32 | u64::from(len)]);

        let cx = Poll(PhantomData);
        let mut polling = self.ring.poll(&cx).expect("it never fails");
        let Some(Chained { piece, .. }) = polling.next() else {
            panic!("there was a buffer");
        };
        match piece {
            Piece::Single(buffer) => (vec![buffer.buffer], false),
            Piece::Whole(skb, packets) => {
                assert_eq!(packets as usize, skb.buffers.len());
                (skb.buffers, false)
            }
            Piece::Pending => {
                assert!(is_possible);
                (Vec::new(), false)
            }
            Piece::Bad => (Vec::new(), true),
            Piece::NoMemory => panic!("there is memory"),
        }
    }

    /// A frame has each buffer that it is said to have, in order, none of which another one has.
    fn judge(&mut self, frame: &[Buffer]) {
        for buffer in frame {
            assert!(!self.is_delivered[buffer.number], "delivered twice");
            self.is_delivered[buffer.number] = true;
            assert!((1..=LONGEST).contains(&buffer.len));
        }
        for pair in frame.windows(2) {
            let (one, next) = (pair[0].number, pair[1].number);
            // It is the first one there behind it, and no other frame was said to go on there.
            assert!(next > one && next - one <= LEN.get());
            for other in next.saturating_sub(LEN.get())..next {
                let is_here = self.links[other] == Some(next % LEN.get());
                assert_eq!(is_here && self.is_possible[other], other == one);
            }
        }
        assert!(frame
            .last()
            .is_none_or(|last| self.links[last.number].is_none()));
    }

    /// All buffers return to the pool: those of frames that have not ended with the ring. None is
    /// pending after a turn of it.
    fn end(mut self, rewind: bool, turn: bool) {
        let out = self.ring.out();

        for _ in 0..if turn { LEN.get() } else { 0 } {
            self.refill();
            let (frame, _) = self.complete(END, 0, 100);
            self.judge(&frame);
        }
        assert!(!turn || out.get() == self.ring.in_use());
        if rewind {
            self.ring
                .rewind(RxStopped(PhantomData))
                .expect("interrupts are on");
            assert_eq!(out.get(), 0);
        }
        drop(self.ring);
        drop(self.napi);
        assert_eq!(out.get(), 0);
    }
}

#[test]
fn frames_of_a_nic_that_lies_are_chains() {
    check(proptest::collection::vec(0u16.., 1..64), |script| {
        let mut trial = Trial::new();

        for &word in &script {
            if word & 0xc000 != 0 {
                trial.refill();
            }
            // Places that the ring does not have, too.
            let at = usize::from(word >> 2) % 18;
            let len = if word >> 8 & 15 == 0 {
                0
            } else {
                1 + word % LONGEST
            };
            let (frame, _) = trial.complete(u64::from(word) & 3, at, len);
            trial.judge(&frame);
        }
        trial.end(script[0] & 1 != 0, script[0] & 2 != 0);
    });
}

#[test]
fn frames_of_an_honest_nic_arrive() {
    // The frame that each descriptor is of: of some that take turns.
    check(proptest::collection::vec(0u8..4, 1..64), |owners| {
        let mut trial = Trial::new();
        let mut frames: [Vec<usize>; 4] = Default::default();

        for (number, &owner) in owners.iter().enumerate() {
            let buffers = &mut frames[usize::from(owner)];
            let next = owners[number + 1..]
                .iter()
                .position(|other| *other == owner)
                .map(|distance| number + 1 + distance)
                // It has those that the ring has, and no frame is that long.
                .filter(|next| next - number < 8 && buffers.len() < 16);
            let kind = match next {
                None => END,
                Some(next) if next == number + 1 && owner & 1 != 0 => FOLLOWING,
                Some(_) => AT,
            };

            trial.refill();
            buffers.push(number);
            let (frame, is_bad) = trial.complete(kind, next.unwrap_or(0) % LEN.get(), 100);
            assert!(!is_bad);
            trial.judge(&frame);
            let found: Vec<usize> = frame.iter().map(|buffer| buffer.number).collect();
            if next.is_none() {
                assert_eq!(found, std::mem::take(buffers));
            } else {
                assert!(found.is_empty());
            }
        }
        trial.end(false, true);
    });
}
