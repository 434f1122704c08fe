// SPDX-License-Identifier: GPL-2.0

//! Call stacks, followed from block to block.
//!
//! A block that ends with a call and is followed by another one somewhere else
//! has called it; one that ends with a return goes back to whoever called, or,
//! if the stack was switched, to somebody else. Interrupts come in between and
//! go again; what they run appears below the function that was interrupted.

use std::collections::HashMap;

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With a call of a function.
    Call,
    /// With a return from one.
    Return,
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
            _ => End::Other,
        }
    }
}

/// What there is to know of a block to follow it.
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

/// The tree of calls, and what ran where in it.
pub struct Stacks {
    /// All nodes; the first one is the root.
    pub nodes: Vec<Node>,
    /// Instructions by node and block.
    pub counts: HashMap<(u32, u64), u64>,
    children: HashMap<(u32, u64), u32>,
    /// Return addresses and the nodes to return to.
    stack: Vec<(u64, u32)>,
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
        match self.last.replace(step) {
            // A call of what follows only finds out where it is.
            Some(last) if last.how == End::Call && step.address != last.end => {
                self.call(last.end, step.address);
            }
            Some(last) if last.how == End::Return => self.back(step.address),
            _ => {}
        }
        *self.counts.entry((self.node, step.address)).or_default() += u64::from(step.insns);
    }

    fn call(&mut self, back: u64, address: u64) {
        if self.stack.len() >= DEEPEST {
            self.stack.clear();
            self.node = 0;
        }
        self.stack.push((back, self.node));
        let next = self.nodes.len() as u32;
        let node = *self.children.entry((self.node, address)).or_insert(next);
        if node == next {
            self.nodes.push(Node {
                parent: self.node,
                address,
            });
        }
        self.node = node;
    }

    fn back(&mut self, address: u64) {
        if let Some(at) = self.stack.iter().rposition(|frame| frame.0 == address) {
            self.node = self.stack[at].1;
            self.stack.truncate(at);
        } else {
            // Another stack: that of another task.
            self.stack.clear();
            self.node = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(address: u64, end: u64, how: End) -> Step {
        Step {
            address,
            end,
            insns: 1,
            how,
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
            (&[0x48, 0xcf], End::Other),
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
