// SPDX-License-Identifier: GPL-2.0
//! The cage for an SFP+ module: an I2C slave whose lines the driver moves by hand through I2CCTL.

use crate::module::{Answers, Module};
use crate::regs::bits::I2cctl;

/// Bus address of the identification page, as the first byte on the wire without the R/W bit.
const ADDRESS_ID: u8 = 0xa0;
/// Bus address of the diagnostics page.
const ADDRESS_DIAGNOSTICS: u8 = 0xa2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not addressed.
    Idle,
    /// Receiving the address byte.
    Address,
    /// Receiving the offset byte, then data to write (dropped: the module is read only).
    Receive { offset_seen: bool },
    /// Sending bytes from the current offset.
    Send,
}

/// The meaning of the next clock pulse to the slave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Bits `n`..8 of a byte are still to come.
    Bit(u8),
    /// The acknowledge bit is on the line.
    Ack,
}

/// The cage, and the I2C slave in it with the two pages of SFF-8472.
#[derive(Debug)]
pub struct Sfp {
    module: Option<Module>,
    page: u8,
    offset: u8,
    state: State,
    phase: Phase,
    shift: u8,
    /// Whether the slave pulls the data line low.
    pull: bool,
    /// Whether the byte just received is for us.
    accept: bool,
    lines: I2cctl,
    /// When the module got power.
    since: u64,
    /// Until when it holds the clock down.
    held: u64,
    /// Bytes that were sent in this transfer.
    sent: usize,
    /// The driver can know of the module: it was there at first, or has answered since.
    addressed: bool,
}

impl Sfp {
    /// A cage with this in it.
    pub fn new(module: Option<Module>) -> Self {
        Self {
            module,
            page: ADDRESS_ID,
            offset: 0,
            state: State::Idle,
            phase: Phase::Bit(0),
            shift: 0,
            pull: false,
            accept: false,
            lines: I2cctl::ZERO.with_clk_out(true).with_data_out(true),
            since: 0,
            held: 0,
            sent: 0,
            addressed: true,
        }
    }

    /// The module in the cage.
    pub fn module(&self) -> Option<&Module> {
        self.module.as_ref()
    }

    /// Whether the driver can know that this module is in the cage, and no other one.
    pub(crate) fn is_known(&self) -> bool {
        self.addressed
    }

    /// Puts another module into the cage, or none.
    pub fn insert(&mut self, module: Option<Module>, now: u64) {
        *self = Self {
            lines: self.lines,
            since: now,
            addressed: false,
            ..Self::new(module)
        };
    }

    /// The driver no longer moves the lines, as after a reset.
    pub fn release(&mut self) {
        *self = Self {
            since: self.since,
            addressed: self.addressed,
            ..Self::new(self.module.take())
        };
    }

    /// Value of I2CCTL: the driver's last write, and the level of both lines.
    pub fn read(&self, now: u64) -> I2cctl {
        let (clock, data) = (self.lines.clk_out(), self.lines.data_out());
        I2cctl::ZERO
            .with_clk_out(clock)
            .with_clk_in(clock && now >= self.held)
            .with_data_out(data)
            .with_data_in(data && !self.pull)
    }

    /// The driver wrote I2CCTL.
    pub fn write(&mut self, value: I2cctl, now: u64) {
        let before = self.lines;
        self.lines = value;
        let clock_was = before.clk_out();
        let clock = value.clk_out();
        let data_was = before.data_out();
        let data = value.data_out();
        if clock_was && clock && data_was != data {
            if data {
                self.state = State::Idle;
            } else {
                self.state = State::Address;
                self.phase = Phase::Bit(0);
                self.shift = 0;
            }
            self.pull = false;
        } else if !clock_was && clock {
            self.rising(data);
        } else if clock_was && !clock {
            self.falling(now);
        }
    }

    /// The line is sampled while the clock is high.
    fn rising(&mut self, data: bool) {
        match (self.state, self.phase) {
            (State::Idle, _) => {}
            (State::Send, Phase::Bit(n)) => self.phase = Phase::Bit(n + 1),
            (State::Send, Phase::Ack) => {
                // The reader acknowledges while it wants more.
                if data {
                    self.state = State::Idle;
                }
            }
            (_, Phase::Bit(n)) => {
                self.shift = self.shift << 1 | u8::from(data);
                self.phase = Phase::Bit(n + 1);
            }
            (_, Phase::Ack) => {}
        }
    }

    /// The line changes while the clock is low.
    fn falling(&mut self, now: u64) {
        match (self.state, self.phase) {
            (State::Idle, _) => self.pull = false,
            (State::Send, Phase::Bit(8)) => {
                self.phase = Phase::Ack;
                self.pull = false;
            }
            (State::Send, Phase::Bit(n)) => self.drive(n),
            (State::Send, Phase::Ack) => {
                self.offset = self.offset.wrapping_add(1);
                self.sent += 1;
                self.phase = Phase::Bit(0);
                self.hold(now);
                self.drive(0);
            }
            (_, Phase::Bit(8)) => {
                self.accept = self.received(now);
                self.pull = self.accept;
                self.phase = Phase::Ack;
            }
            (_, Phase::Bit(_)) => {}
            (state, Phase::Ack) => {
                self.pull = false;
                self.phase = Phase::Bit(0);
                if !self.accept {
                    self.state = State::Idle;
                } else if state == State::Address {
                    if self.shift & 1 != 0 {
                        self.state = State::Send;
                        self.sent = 0;
                        self.hold(now);
                        self.drive(0);
                    } else {
                        self.state = State::Receive { offset_seen: false };
                    }
                }
                self.shift = 0;
            }
        }
    }

    /// A whole byte has come in; true to acknowledge it.
    fn received(&mut self, now: u64) -> bool {
        match self.state {
            State::Address => {
                let address = self.shift & 0xfe;
                let known = address == ADDRESS_ID || address == ADDRESS_DIAGNOSTICS;
                if !known || !self.answers(now) {
                    return false;
                }
                self.page = address;
                self.addressed = true;
                true
            }
            State::Receive { offset_seen: false } => {
                self.offset = self.shift;
                self.state = State::Receive { offset_seen: true };
                true
            }
            State::Receive { offset_seen: true } => true,
            State::Idle | State::Send => false,
        }
    }

    /// Whether the module acknowledges its address.
    fn answers(&self, now: u64) -> bool {
        match self.module.as_ref().map(|module| module.answers) {
            None | Some(Answers::Never) => false,
            Some(Answers::After(time)) => now.saturating_sub(self.since) >= time,
            Some(Answers::Always | Answers::Singly | Answers::Slowly(_)) => true,
        }
    }

    /// A slow module makes the reader wait for the next byte.
    fn hold(&mut self, now: u64) {
        if let Some(Answers::Slowly(time)) = self.module.as_ref().map(|module| module.answers) {
            self.held = now + time;
        }
    }

    fn drive(&mut self, bit: u8) {
        let Some(module) = &self.module else {
            self.pull = false;
            return;
        };
        let page = if self.page == ADDRESS_ID {
            &module.id
        } else {
            &module.diagnostics
        };
        let byte = match module.answers {
            Answers::Singly if self.sent != 0 => 0,
            _ => page[usize::from(self.offset)],
        };
        self.pull = byte & (0x80 >> bit.min(7)) == 0;
    }
}

#[cfg(test)]
mod tests;
