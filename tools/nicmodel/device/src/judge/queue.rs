// SPDX-License-Identifier: GPL-2.0
//! The life of a descriptor queue, from reset to disabled, as its registers tell it.

use super::chance::Delay;
use crate::regs::bits::Rxdctl;
use crate::regs::offset;

/// Queues of one direction whose registers lie in the ring pages.
pub(crate) const QUEUES: usize = 128;

/// ENABLE has the same place in RXDCTL and TXDCTL.
pub(crate) const ENABLE: u32 = Rxdctl::ZERO.with_enable(true).raw_value();

/// Direction of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Receive,
    Transmit,
}

/// A register of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingRegister {
    BaseLow,
    BaseHigh,
    Length,
    Head,
    Tail,
    Control,
    /// SRRCTL.
    BufferSizes,
    /// RSCCTL.
    Coalescing,
}

/// The queue to which a register belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) direction: Direction,
    pub(crate) queue: u32,
    pub(crate) register: RingRegister,
}

impl Place {
    /// The ring register at this offset, if it is one.
    pub(crate) fn of(at: u32) -> Option<Self> {
        let (direction, page) = match at {
            0x1000..0x2000 => (Direction::Receive, offset::RDBAL),
            0x6000..0x8000 => (Direction::Transmit, offset::TDBAL),
            offset::SRRCTL..0x2140 => {
                return Some(Self {
                    direction: Direction::Receive,
                    queue: (at - offset::SRRCTL) / 4,
                    register: RingRegister::BufferSizes,
                });
            }
            _ => return None,
        };
        let register = match at % offset::QUEUE {
            0x00 => RingRegister::BaseLow,
            0x04 => RingRegister::BaseHigh,
            0x08 => RingRegister::Length,
            0x10 => RingRegister::Head,
            0x18 => RingRegister::Tail,
            0x28 => RingRegister::Control,
            0x2c if direction == Direction::Receive => RingRegister::Coalescing,
            0x14 if direction == Direction::Receive => RingRegister::BufferSizes,
            _ => return None,
        };
        Some(Self {
            direction,
            queue: (at - page) / offset::QUEUE,
            register,
        })
    }

    /// Offset of the first register of the ring.
    pub(crate) fn base(self) -> u32 {
        let page = match self.direction {
            Direction::Receive => offset::RDBAL,
            Direction::Transmit => offset::TDBAL,
        };
        page + self.queue * offset::QUEUE
    }
}

/// Stage of a queue's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stage {
    /// As a reset has left it: base and length are not known.
    #[default]
    Reset,
    /// Base and length are set.
    Programmed,
    /// ENABLE was written, and not yet read as 1.
    Enabling,
    /// ENABLE was read as 1.
    Enabled,
    /// ENABLE was cleared, and not yet read as 0.
    Draining,
    /// ENABLE was read as 0 again.
    Disabled,
}

/// A queue as the judge sees it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Queue {
    pub(crate) stage: Stage,
    base_low: bool,
    base_high: bool,
    length: bool,
    /// Reads of ENABLE until it changes.
    left: Delay,
}

/// The effect of a read of the control register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// None.
    Same,
    /// The queue runs from now on.
    Starts,
    /// It has stopped.
    Stops,
}

impl Queue {
    /// Takes note that a register of the ring was written.
    pub(crate) fn program(&mut self, register: RingRegister) {
        match register {
            RingRegister::BaseLow => self.base_low = true,
            RingRegister::BaseHigh => self.base_high = true,
            RingRegister::Length => self.length = true,
            _ => {}
        }
        if self.stage == Stage::Reset && self.base_low && self.base_high && self.length {
            self.stage = Stage::Programmed;
        }
    }

    /// A write of the control register; returns whether ENABLE is seen as set for now.
    pub(crate) fn control(&mut self, enable: bool, delay: impl FnOnce() -> Delay) -> bool {
        match (enable, self.stage) {
            (true, Stage::Enabled) | (false, Stage::Draining) => true,
            (false, Stage::Reset | Stage::Programmed | Stage::Disabled)
            | (true, Stage::Enabling) => false,
            (true, Stage::Draining) => {
                self.stage = Stage::Enabled;
                true
            }
            (true, _) => {
                self.stage = Stage::Enabling;
                self.left = delay();
                false
            }
            (false, Stage::Enabling) => {
                self.stage = Stage::Disabled;
                false
            }
            (false, Stage::Enabled) => {
                self.stage = Stage::Draining;
                self.left = delay();
                true
            }
        }
    }

    /// A read of the control register. A queue that is `blocked` does not drain.
    pub(crate) fn poll(&mut self, blocked: bool, now: u64) -> Change {
        match self.stage {
            Stage::Enabling if self.left.is_over(now) => {
                self.stage = Stage::Enabled;
                Change::Starts
            }
            Stage::Draining if !blocked && self.left.is_over(now) => {
                self.stage = Stage::Disabled;
                Change::Stops
            }
            _ => Change::Same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_ring_registers() {
        let place = Place::of(offset::TXDCTL + 3 * offset::QUEUE).expect("a ring register");
        assert_eq!(place.direction, Direction::Transmit);
        assert_eq!((place.queue, place.register), (3, RingRegister::Control));
        assert_eq!(place.base(), offset::TDBAL + 0xc0);
        let place = Place::of(offset::SRRCTL + 8).expect("a ring register");
        assert_eq!(
            (place.queue, place.register),
            (2, RingRegister::BufferSizes)
        );
        assert_eq!(Place::of(offset::CTRL), None);
        assert_eq!(Place::of(offset::QPRC), None);
    }

    #[test]
    fn a_queue_runs_when_it_says_so_and_stops_when_it_says_so() {
        let mut queue = Queue::default();
        for register in [
            RingRegister::BaseLow,
            RingRegister::BaseHigh,
            RingRegister::Length,
        ] {
            assert_eq!(queue.stage, Stage::Reset);
            queue.program(register);
        }
        assert_eq!(queue.stage, Stage::Programmed);
        assert!(!queue.control(true, || Delay::reads(1)));
        assert_eq!(queue.poll(false, 0), Change::Same);
        assert_eq!(queue.poll(false, 0), Change::Starts);
        assert!(queue.control(false, || Delay::reads(0)));
        assert_eq!(queue.poll(true, 0), Change::Same, "cannot drain");
        assert_eq!(queue.poll(false, 0), Change::Stops);
        assert_eq!(queue.stage, Stage::Disabled);
    }
}
