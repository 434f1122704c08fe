// SPDX-License-Identifier: GPL-2.0

//! The counts: blocks, calls, and the windows cut out of them.
//!
//! Blocks are counted from boot to the end, which costs one addition each. A
//! window is the difference of two readings of all counters, so that opening
//! one needs no new translation of the code it measures.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::time::Instant;

use crate::api::Call;

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

/// A block that ran inside a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Virtual address.
    pub address: u64,
    /// Number of instructions.
    pub insns: u32,
    /// Executions.
    pub count: u64,
}

/// A finished window.
pub struct Window {
    /// The guest's description of it.
    pub text: String,
    /// Whether the guest closed it, rather than the end of QEMU or the next
    /// window.
    pub complete: bool,
    /// Wall-clock time that it was open.
    pub nanoseconds: u128,
    /// The blocks that ran.
    pub rows: Vec<Row>,
    /// Per tapped function, the number of its calls by arguments.
    pub calls: Vec<BTreeMap<Call, u64>>,
}

impl Window {
    /// Instructions executed.
    pub fn instructions(&self) -> u64 {
        self.rows
            .iter()
            .map(|row| row.count * u64::from(row.insns))
            .sum()
    }
}

struct Open {
    text: String,
    since: Instant,
    before: Vec<u64>,
    calls: Vec<BTreeMap<Call, u64>>,
}

/// All counters and windows of a run.
pub struct Windows<C> {
    index: HashMap<BlockKey, usize>,
    blocks: Vec<(BlockKey, C)>,
    open: Option<Open>,
    taps: usize,
    /// Windows finished so far.
    pub finished: Vec<Window>,
    /// Closing marks with no window open.
    pub stray: u64,
}

impl<C: Reading + Copy> Windows<C> {
    /// No blocks, no windows, and room for the calls of `taps` functions.
    pub fn new(taps: usize) -> Self {
        Windows {
            index: HashMap::new(),
            blocks: Vec::new(),
            open: None,
            taps,
            finished: Vec::new(),
            stray: 0,
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
            since: Instant::now(),
            before: self
                .blocks
                .iter()
                .map(|(_, counter)| counter.reading())
                .collect(),
            calls: vec![BTreeMap::new(); self.taps],
        });
    }

    /// Closes the window on the guest's demand.
    pub fn close(&mut self) {
        if !self.finish(true) {
            self.stray += 1;
        }
    }

    /// Ends the open window, if there is one.
    pub fn finish(&mut self, complete: bool) -> bool {
        let Some(open) = self.open.take() else {
            return false;
        };
        // Blocks met since the window was opened stood at zero then.
        let before = open.before.iter().copied().chain(std::iter::repeat(0));
        let rows = self
            .blocks
            .iter()
            .zip(before)
            .filter_map(|((key, counter), before)| {
                let count = counter.reading().wrapping_sub(before);
                (count != 0).then_some(Row {
                    address: key.address,
                    insns: key.insns,
                    count,
                })
            })
            .collect();
        self.finished.push(Window {
            text: open.text,
            complete,
            nanoseconds: open.since.elapsed().as_nanos(),
            rows,
            calls: open.calls,
        });
        true
    }

    /// Notes a call of tapped function `tap` if a window is open.
    pub fn called(&mut self, tap: usize, call: Call) {
        if let Some(calls) = self.open.as_mut().and_then(|open| open.calls.get_mut(tap)) {
            *calls.entry(call).or_default() += 1;
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
        let mut windows = Windows::new(0);
        windows.counter(A, || &a);
        a.set(10);
        windows.open("w".into());
        a.set(14);
        windows.counter(B, || &b);
        b.set(2);
        windows.close();
        a.set(99);
        let window = &windows.finished[0];
        assert!(window.complete);
        assert_eq!(
            window.rows,
            [
                Row {
                    address: 0x1000,
                    insns: 3,
                    count: 4
                },
                Row {
                    address: 0x2000,
                    insns: 5,
                    count: 2
                },
            ]
        );
        assert_eq!(window.instructions(), 4 * 3 + 2 * 5);
    }

    #[test]
    fn blocks_that_did_not_run_are_left_out() {
        let a = Cell::new(7);
        let mut windows = Windows::new(0);
        windows.counter(A, || &a);
        windows.open(String::new());
        windows.close();
        assert!(windows.finished[0].rows.is_empty());
    }

    #[test]
    fn a_block_translated_again_keeps_its_counter() {
        let (a, other) = (Cell::new(0), Cell::new(0));
        let mut windows = Windows::new(0);
        windows.counter(A, || &a);
        let again = windows.counter(A, || &other);
        assert!(std::ptr::eq(again, &a));
    }

    #[test]
    fn a_second_opening_ends_the_first() {
        let mut windows = Windows::<&Cell<u64>>::new(0);
        windows.open("one".into());
        windows.open("two".into());
        windows.close();
        let ends: Vec<_> = windows
            .finished
            .iter()
            .map(|w| (w.text.as_str(), w.complete))
            .collect();
        assert_eq!(ends, [("one", false), ("two", true)]);
    }

    #[test]
    fn closing_nothing_is_counted() {
        let mut windows = Windows::<&Cell<u64>>::new(0);
        windows.close();
        assert_eq!(windows.stray, 1);
        assert!(windows.finished.is_empty());
    }

    #[test]
    fn calls_count_only_inside_a_window() {
        let call = Call {
            caller: 1,
            first: 2,
            second: 16,
        };
        let mut windows = Windows::<&Cell<u64>>::new(1);
        windows.called(0, call);
        windows.open(String::new());
        windows.called(0, call);
        windows.called(0, call);
        windows.called(9, call);
        windows.close();
        assert_eq!(windows.finished[0].calls[0], BTreeMap::from([(call, 2)]));
    }
}
