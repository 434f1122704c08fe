// SPDX-License-Identifier: GPL-2.0
use super::*;
use crate::module::Kind;

/// A bus master that moves the lines as a driver does.
struct Master(Sfp);

impl Master {
    fn with(kind: Option<Kind>) -> Self {
        Self(Sfp::new(kind.map(Module::new)))
    }
    fn lines(&mut self, clock: bool, data: bool) {
        self.0
            .write(I2cctl::ZERO.with_clk_out(clock).with_data_out(data));
    }
    fn level(&self) -> bool {
        self.0.read().data_in()
    }
    fn start(&mut self) {
        self.lines(false, true);
        self.lines(true, true);
        self.lines(true, false);
        self.lines(false, false);
    }
    fn stop(&mut self) {
        self.lines(false, false);
        self.lines(true, false);
        self.lines(true, true);
    }
    fn out(&mut self, byte: u8) -> bool {
        for i in (0..8).rev() {
            let bit = byte >> i & 1 != 0;
            self.lines(false, bit);
            self.lines(true, bit);
            self.lines(false, bit);
        }
        self.lines(false, true);
        self.lines(true, true);
        let ack = !self.level();
        self.lines(false, true);
        ack
    }
    fn byte(&mut self, more: bool) -> u8 {
        let mut byte = 0;
        for _ in 0..8 {
            self.lines(true, true);
            byte = byte << 1 | u8::from(self.level());
            self.lines(false, true);
        }
        self.lines(false, !more);
        self.lines(true, !more);
        self.lines(false, !more);
        self.lines(false, true);
        byte
    }
    fn read(&mut self, device: u8, offset: u8) -> Option<u8> {
        self.start();
        if !self.out(device) || !self.out(offset) {
            return None;
        }
        self.start();
        if !self.out(device | 1) {
            return None;
        }
        let byte = self.byte(false);
        self.stop();
        Some(byte)
    }
}

#[test]
fn bytes_read_back() {
    let mut master = Master::with(Some(Kind::Sr));
    assert_eq!(master.read(0xa0, 0), Some(3));
    assert_eq!(master.read(0xa0, 3), Some(0x10));
    assert_eq!(master.read(0xa0, 38), Some(0x1b));
    assert_eq!(master.read(0xa2, 96), Some(30));
}

#[test]
fn an_unknown_address_is_not_acknowledged() {
    let mut master = Master::with(Some(Kind::Sr));
    assert_eq!(master.read(0xf8, 0), None);
    master.stop();
    assert_eq!(master.read(0xa0, 0), Some(3), "the bus works afterwards");
}

#[test]
fn sequential_read_goes_on_at_the_next_offset() {
    let mut master = Master::with(Some(Kind::Sr));
    master.start();
    assert!(master.out(0xa0) && master.out(37));
    master.start();
    assert!(master.out(0xa1));
    assert_eq!(
        [master.byte(true), master.byte(true), master.byte(false)],
        [0x00, 0x1b, 0x21]
    );
}

#[test]
fn without_a_module_or_with_a_silent_one_nothing_answers() {
    for kind in [None, Some(Kind::Silent)] {
        let mut master = Master::with(kind);
        assert_eq!(master.read(0xa0, 0), None, "{kind:?}");
        master.stop();
        master.0.insert(Some(Module::new(Kind::Qsfp)));
        assert_eq!(master.read(0xa0, 0), Some(0x0d), "{kind:?}");
    }
}

#[test]
fn a_module_that_is_pulled_lets_go_of_the_line() {
    let mut master = Master::with(Some(Kind::Sr));
    master.start();
    assert!(master.out(0xa0) && master.out(1));
    master.start();
    assert!(master.out(0xa1));
    master.0.insert(None);
    assert_eq!(master.byte(false), 0xff);
    master.0.release();
    assert!(master.0.module().is_none());
}
