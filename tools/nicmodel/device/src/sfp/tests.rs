// SPDX-License-Identifier: GPL-2.0
use super::*;
use crate::module::Kind;

/// A bus master that moves the lines as a driver does.
struct Master(Sfp, u64);

impl Master {
    fn with(kind: Option<Kind>) -> Self {
        let mut sfp = Sfp::new(None);
        sfp.insert(kind.map(Module::new), 0);
        Self(sfp, 0)
    }
    fn lines(&mut self, clock: bool, data: bool) {
        // Longer than any time that the bus asks for, and than a slow module takes for a bit.
        self.1 += 5_000;
        let lines = I2cctl::ZERO.with_clk_out(clock).with_data_out(data);
        self.0.write(lines, self.1);
        while clock && !self.0.read(self.1).clk_in() {
            self.1 += 5_000;
        }
    }
    fn level(&self) -> bool {
        self.0.read(self.1).data_in()
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
        master.0.insert(Some(Module::new(Kind::Qsfp)), 0);
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
    master.0.insert(None, 0);
    assert_eq!(master.byte(false), 0xff);
    master.0.release();
    assert!(master.0.module().is_none());
}

/// The first bytes of the identification page, in one transfer.
fn together(master: &mut Master) -> [u8; 4] {
    master.start();
    assert!(master.out(0xa0) && master.out(0));
    master.start();
    assert!(master.out(0xa1));
    let bytes = [true, true, true, false].map(|more| master.byte(more));
    master.stop();
    bytes
}

#[test]
fn some_modules_know_reads_of_single_bytes_only() {
    for kind in [Kind::Gpon, Kind::SingleT] {
        let mut master = Master::with(Some(kind));
        assert_eq!(together(&mut master), [3, 0, 0, 0], "{kind:?}");
        assert_eq!(master.read(0xa0, 1), Some(4), "{kind:?}");
    }
    assert_eq!(together(&mut Master::with(Some(Kind::Sr))), [3, 4, 7, 0x10]);
}

#[test]
fn a_slow_module_makes_its_reader_wait() {
    let time = |kind| {
        let mut master = Master::with(Some(kind));
        assert_eq!(together(&mut master), [3, 4, 7, 0x10]);
        master.1
    };
    let longer = time(Kind::Slow) - time(Kind::Sr);
    assert!((600_000..900_000).contains(&longer), "{longer}");
}

#[test]
fn a_late_module_is_there_when_it_has_had_power_for_some_time() {
    let mut master = Master::with(Some(Kind::Late));
    master.1 = 5_000_000_000;
    assert_eq!(master.read(0xa0, 0), None);
    master.stop();
    // A reset of the card is none of the module.
    master.0.release();
    master.1 = 6_000_000_000;
    assert_eq!(master.read(0xa0, 0), Some(3));
}
