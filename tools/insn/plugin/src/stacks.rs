// SPDX-License-Identifier: GPL-2.0

//! Call stacks, followed from block to block.
//!
//! A block that ends with a call and is followed by another one somewhere else
//! has called it; one that ends with a return goes back to its caller, or,
//! if the stack was switched, to another one's.
//!
//! Interrupts, exceptions and system calls come in between, also between a call
//! and the called function, and return. They begin in a part of the kernel that no
//! function calls and end with an instruction of their own; their functions have
//! no caller, and the interrupted function continues.

use std::collections::HashMap;

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With a call of a function.
    Call,
    /// With a return from one.
    Return,
    /// With a return to the interrupted code.
    Resume,
    /// With something else.
    Other,
}

impl End {
    /// Tells it from the bytes of the last instruction.
    pub fn of(bytes: &[u8]) -> End {
        // Prefixes: operand size, segments, repeat, REX.
        let rest = bytes
            .iter()
            .position(|byte| {
                !matches!(
                    byte,
                    0x66 | 0x2e | 0x3e | 0x64 | 0x65 | 0xf2 | 0xf3 | 0x40..=0x4f
                )
            })
            .map_or(&[][..], |at| &bytes[at..]);
        match rest {
            [0xe8, ..] => End::Call,
            // An indirect call: the middle bits of the byte after the opcode say 2.
            [0xff, modrm, ..] if modrm >> 3 & 7 == 2 => End::Call,
            [0xc2 | 0xc3, ..] => End::Return,
            [0xcf, ..] | [0x0f, 0x07, ..] => End::Resume,
            _ => End::Other,
        }
    }
}

/// The properties of a block that following it takes.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Address of its first instruction.
    pub address: u64,
    /// Address behind its last one.
    pub end: u64,
    /// Number of instructions.
    pub insns: u32,
    /// How it ends.
    pub how: End,
    /// Whether it lies where interrupts and the like enter the kernel.
    pub entry: bool,
}

/// Where to go on when something has ended.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// The return address of a call; 0 where there is none.
    back: u64,
    node: u32,
    /// If this was not a call: the block after which it came.
    interrupted: Option<Step>,
}

/// A function as it was called on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The node of the caller; the root is its own.
    pub parent: u32,
    /// Where the function begins; the root has 0.
    pub address: u64,
}

/// Stacks deeper than this have lost track.
const DEEPEST: usize = 256;

/// The tree of calls, with the counts of its nodes.
pub struct Stacks {
    /// All nodes; the first one is the root.
    pub nodes: Vec<Node>,
    /// Instructions by node and block.
    pub counts: HashMap<(u32, u64), u64>,
    children: HashMap<(u32, u64), u32>,
    stack: Vec<Frame>,
    node: u32,
    last: Option<Step>,
}

impl Stacks {
    /// Nothing has run.
    pub fn new() -> Stacks {
        Stacks {
            nodes: vec![Node {
                parent: 0,
                address: 0,
            }],
            counts: HashMap::new(),
            children: HashMap::new(),
            stack: Vec::new(),
            node: 0,
            last: None,
        }
    }

    /// A block runs.
    pub fn step(&mut self, step: Step) {
        let mut last = self.last.replace(step);
        if last.is_some_and(|last| last.how == End::Resume) {
            last = self.resume();
        }
        if let Some(last) = last {
            self.follow(last, step);
        }
        *self.counts.entry((self.node, step.address)).or_default() += u64::from(step.insns);
    }

    fn follow(&mut self, last: Step, step: Step) {
        let called = last.how == End::Call;
        // An access to a device can end a block before its last instruction; then the rest of it
        // runs, or all of it once more. A function may call itself, though.
        let inside = (last.address..last.end).contains(&step.address);
        if inside && !(called && step.address == last.address) {
            return;
        }
        if last.how == End::Return && self.back(step.address) {
            return;
        }
        if step.entry && !last.entry {
            // Should it have been a call after all, it returns like one.
            let back = if called { last.end } else { 0 };
            self.push(back, Some(last));
            self.node = self.child(0, step.address);
        } else if called && step.address != last.end {
            // A call of the next instruction only reads the program counter.
            self.push(last.end, None);
            self.node = self.child(self.node, step.address);
        } else if last.how == End::Return {
            // Another stack: that of another task.
            self.lose();
        }
    }

    fn push(&mut self, back: u64, interrupted: Option<Step>) {
        if self.stack.len() >= DEEPEST {
            self.lose();
        }
        self.stack.push(Frame {
            back,
            node: self.node,
            interrupted,
        });
    }

    fn child(&mut self, parent: u32, address: u64) -> u32 {
        let next = self.nodes.len() as u32;
        let node = *self.children.entry((parent, address)).or_insert(next);
        if node == next {
            self.nodes.push(Node { parent, address });
        }
        node
    }

    fn lose(&mut self) {
        self.stack.clear();
        self.node = 0;
    }

    /// Returns to an address, if a caller waits there.
    fn back(&mut self, address: u64) -> bool {
        let Some(at) = self.stack.iter().rposition(|frame| frame.back == address) else {
            return false;
        };
        self.node = self.stack[at].node;
        self.stack.truncate(at);
        true
    }

    /// Returns to the interrupted code: the block that ran last there, if known.
    fn resume(&mut self) -> Option<Step> {
        let at = self
            .stack
            .iter()
            .rposition(|frame| frame.interrupted.is_some());
        let Some(at) = at else {
            self.lose();
            return None;
        };
        let frame = self.stack[at];
        self.node = frame.node;
        self.stack.truncate(at);
        frame.interrupted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From here on, interrupts enter.
    const ENTRY: u64 = 5000;

    fn step(address: u64, end: u64, how: End) -> Step {
        Step {
            address,
            end,
            insns: 1,
            how,
            entry: address >= ENTRY,
        }
    }

    #[test]
    fn ends_are_told_by_their_bytes() {
        for (bytes, end) in [
            (&[0xe8, 1, 2, 3, 4][..], End::Call),
            (&[0xff, 0xd0], End::Call),
            (&[0x41, 0xff, 0xd3], End::Call),
            (&[0x2e, 0xe8, 1, 2, 3, 4], End::Call),
            (&[0xff, 0x50, 0x10], End::Call),
            (&[0xff, 0xe0], End::Other),
            (&[0xff, 0x30], End::Other),
            (&[0xc3], End::Return),
            (&[0xf3, 0xc3], End::Return),
            (&[0xc2, 8, 0], End::Return),
            (&[0x48, 0xcf], End::Resume),
            (&[0x48, 0x0f, 0x07], End::Resume),
            (&[0x0f, 0x05], End::Other),
            (&[], End::Other),
        ] {
            assert_eq!(End::of(bytes), end, "{bytes:x?}");
        }
    }

    #[test]
    fn calls_nest_and_return() {
        let mut stacks = Stacks::new();
        stacks.step(step(100, 110, End::Call));
        stacks.step(step(200, 210, End::Call));
        stacks.step(step(300, 310, End::Return));
        stacks.step(step(210, 220, End::Return));
        stacks.step(step(110, 120, End::Other));
        let node = |parent, address| Node { parent, address };
        assert_eq!(stacks.nodes, [node(0, 0), node(0, 200), node(1, 300)]);
        assert_eq!(stacks.counts[&(0, 110)], 1);
        assert_eq!(stacks.counts[&(1, 210)], 1);
        assert_eq!(stacks.counts[&(2, 300)], 1);
    }

    #[test]
    fn the_same_call_is_one_node() {
        let mut stacks = Stacks::new();
        for _ in 0..3 {
            stacks.step(step(100, 110, End::Call));
            stacks.step(step(200, 210, End::Return));
            stacks.step(step(110, 120, End::Other));
        }
        assert_eq!(stacks.nodes.len(), 2);
        assert_eq!(stacks.counts[&(1, 200)], 3);
    }

    #[test]
    fn a_return_may_leave_several_functions() {
        let mut stacks = Stacks::new();
        stacks.step(step(100, 110, End::Call));
        stacks.step(step(200, 210, End::Call));
        stacks.step(step(300, 310, End::Return));
        stacks.step(step(110, 120, End::Other));
        assert_eq!(stacks.counts[&(0, 110)], 1);
    }

    #[test]
    fn a_return_to_nobody_begins_anew() {
        let mut stacks = Stacks::new();
        stacks.step(step(100, 110, End::Call));
        stacks.step(step(200, 210, End::Return));
        stacks.step(step(900, 910, End::Other));
        assert_eq!(stacks.counts[&(0, 900)], 1);
    }

    /// The course of an interrupt: it enters, calls a function, and goes.
    fn interrupt(stacks: &mut Stacks) {
        stacks.step(step(5000, 5010, End::Call));
        stacks.step(step(700, 710, End::Return));
        stacks.step(step(5010, 5020, End::Resume));
    }

    #[test]
    fn an_interrupt_changes_nothing_for_whom_it_interrupts() {
        // After a call, after a return, and in between.
        for at in 0..4 {
            let mut stacks = Stacks::new();
            let steps = [
                step(100, 110, End::Call),
                step(200, 210, End::Other),
                step(210, 220, End::Return),
                step(110, 120, End::Other),
            ];
            for (number, one) in steps.into_iter().enumerate() {
                stacks.step(one);
                if number == at {
                    interrupt(&mut stacks);
                }
            }
            stacks.step(step(120, 130, End::Call));
            stacks.step(step(300, 310, End::Other));
            let find = |address| stacks.nodes.iter().position(|node| node.address == address);
            let count = |node: usize, address| stacks.counts.get(&(node as u32, address)).copied();
            assert_eq!(count(0, 110), Some(1), "at {at}");
            for function in [200, 300] {
                let node = find(function).unwrap_or(0);
                assert_eq!(stacks.nodes[node].parent, 0, "at {at}");
                assert_eq!(count(node, function), Some(1), "at {at}");
            }
            // The interrupt has no caller, and its callees are its own.
            let entry = find(5000).unwrap_or(0);
            assert_eq!(stacks.nodes[entry].parent, 0, "at {at}");
            assert_eq!(count(entry, 5010), Some(1), "at {at}");
            assert_eq!(stacks.nodes[find(700).unwrap_or(0)].parent, entry as u32);
        }
    }

    #[test]
    fn a_block_that_is_left_half_way_neither_calls_nor_returns() {
        for how in [End::Call, End::Return] {
            let mut stacks = Stacks::new();
            stacks.step(step(100, 110, End::Call));
            stacks.step(step(200, 210, how));
            stacks.step(step(205, 210, End::Other));
            assert_eq!(stacks.counts[&(1, 205)], 1, "{how:?}");
            assert_eq!(stacks.nodes.len(), 2, "{how:?}");
        }
    }

    #[test]
    fn the_end_of_an_interrupt_that_nobody_saw_begins_anew() {
        let mut stacks = Stacks::new();
        stacks.step(step(100, 110, End::Call));
        stacks.step(step(200, 210, End::Resume));
        stacks.step(step(300, 310, End::Other));
        assert_eq!(stacks.counts[&(0, 300)], 1);
    }

    #[test]
    fn a_call_of_what_follows_is_none() {
        let mut stacks = Stacks::new();
        stacks.step(step(100, 105, End::Call));
        stacks.step(step(105, 110, End::Other));
        assert_eq!(stacks.nodes.len(), 1);
    }

    #[test]
    fn endless_recursion_ends() {
        let mut stacks = Stacks::new();
        for _ in 0..10 * DEEPEST {
            stacks.step(step(100, 110, End::Call));
            stacks.step(step(200, 210, End::Call));
        }
        assert!(stacks.stack.len() <= DEEPEST);
    }
}
