// SPDX-License-Identifier: GPL-2.0

//! The counts: blocks, calls, and the windows cut out of them.
//!
//! Blocks are counted from boot to the end, which costs one addition each. A
//! window is the difference of two readings of all counters, so that opening
//! one needs no new translation of the code it measures.

use std::collections::BTreeMap;
use std::collections::HashMap;

use serde::Serialize;

/// A counter as the windows see it; a number in tests.
pub trait Reading {
    /// Executions so far, over all CPUs.
    fn reading(&self) -> u64;
}

/// Where a block begins and how many instructions it has.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// Virtual address.
    pub address: u64,
    /// Number of instructions.
    pub insns: u32,
}

/// A finished window, as it is in the report.
#[derive(Serialize)]
pub struct Window {
    /// The guest's description of it.
    pub text: String,
    /// Whether the guest closed it, rather than the end of QEMU or the next
    /// window.
    pub complete: bool,
    /// Instructions executed.
    pub instructions: u64,
    /// The blocks that ran: virtual address, number of instructions, executions.
    pub rows: Vec<(u64, u32, u64)>,
    /// The second argument of calls of the function that the options name, and their number.
    pub calls: Vec<(u64, u64)>,
}

struct Open {
    text: String,
    before: Vec<u64>,
    calls: BTreeMap<u64, u64>,
}

/// All counters and windows of a run.
pub struct Windows<C> {
    index: HashMap<BlockKey, usize>,
    blocks: Vec<(BlockKey, C)>,
    open: Option<Open>,
    /// Windows finished so far.
    pub finished: Vec<Window>,
}

impl<C: Reading + Copy> Windows<C> {
    /// No blocks, no windows.
    pub fn new() -> Self {
        Windows {
            index: HashMap::new(),
            blocks: Vec::new(),
            open: None,
            finished: Vec::new(),
        }
    }

    /// The counter of a block; `make` supplies one for a block never met.
    ///
    /// A block that QEMU translates again keeps its counter: the number of
    /// counters is bound by the code that the guest runs, not by how often
    /// QEMU throws translations away.
    pub fn counter(&mut self, key: BlockKey, make: impl FnOnce() -> C) -> C {
        if let Some(&index) = self.index.get(&key) {
            return self.blocks[index].1;
        }
        let counter = make();
        self.index.insert(key, self.blocks.len());
        self.blocks.push((key, counter));
        counter
    }

    /// Opens a window; one that is still open ends here, as incomplete.
    pub fn open(&mut self, text: String) {
        self.finish(false);
        self.open = Some(Open {
            text,
            before: self
                .blocks
                .iter()
                .map(|(_, counter)| counter.reading())
                .collect(),
            calls: BTreeMap::new(),
        });
    }

    /// Ends the open window, if there is one.
    pub fn finish(&mut self, complete: bool) {
        let Some(open) = self.open.take() else {
            return;
        };
        // Blocks met since the window was opened stood at zero then.
        let before = open.before.into_iter().chain(std::iter::repeat(0));
        let rows: Vec<_> = self
            .blocks
            .iter()
            .zip(before)
            .map(|((key, counter), before)| {
                let count = counter.reading().wrapping_sub(before);
                (key.address, key.insns, count)
            })
            .filter(|(_, _, count)| *count != 0)
            .collect();
        self.finished.push(Window {
            text: open.text,
            complete,
            instructions: rows.iter().map(|row| u64::from(row.1) * row.2).sum(),
            rows,
            calls: open.calls.into_iter().collect(),
        });
    }

    /// Notes a call with this argument if a window is open.
    pub fn called(&mut self, argument: u64) {
        if let Some(open) = &mut self.open {
            *open.calls.entry(argument).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    impl Reading for &Cell<u64> {
        fn reading(&self) -> u64 {
            self.get()
        }
    }

    const A: BlockKey = BlockKey {
        address: 0x1000,
        insns: 3,
    };
    const B: BlockKey = BlockKey {
        address: 0x2000,
        insns: 5,
    };

    #[test]
    fn a_window_is_a_difference() {
        let (a, b) = (Cell::new(0), Cell::new(0));
        let mut windows = Windows::new();
        windows.counter(A, || &a);
        a.set(10);
        windows.open("w".into());
        a.set(14);
        windows.counter(B, || &b);
        b.set(2);
        windows.finish(true);
        a.set(99);
        let window = &windows.finished[0];
        assert!(window.complete);
        assert_eq!(window.rows, [(0x1000, 3, 4), (0x2000, 5, 2)]);
        assert_eq!(window.instructions, 4 * 3 + 2 * 5);
    }

    #[test]
    fn blocks_that_did_not_run_are_left_out() {
        let a = Cell::new(7);
        let mut windows = Windows::new();
        windows.counter(A, || &a);
        windows.open(String::new());
        windows.finish(true);
        assert!(windows.finished[0].rows.is_empty());
    }

    #[test]
    fn a_block_translated_again_keeps_its_counter() {
        let (a, other) = (Cell::new(0), Cell::new(0));
        let mut windows = Windows::new();
        windows.counter(A, || &a);
        let again = windows.counter(A, || &other);
        assert!(std::ptr::eq(again, &a));
    }

    #[test]
    fn a_second_opening_ends_the_first() {
        let mut windows = Windows::<&Cell<u64>>::new();
        windows.open("one".into());
        windows.open("two".into());
        windows.finish(true);
        let ends: Vec<_> = windows
            .finished
            .iter()
            .map(|w| (w.text.as_str(), w.complete))
            .collect();
        assert_eq!(ends, [("one", false), ("two", true)]);
    }

    #[test]
    fn closing_nothing_makes_no_window() {
        let mut windows = Windows::<&Cell<u64>>::new();
        windows.finish(true);
        assert!(windows.finished.is_empty());
    }

    #[test]
    fn calls_count_only_inside_a_window() {
        let mut windows = Windows::<&Cell<u64>>::new();
        windows.called(16);
        windows.open(String::new());
        windows.called(16);
        windows.called(16);
        windows.finish(true);
        assert_eq!(windows.finished[0].calls, [(16, 2)]);
    }
}
