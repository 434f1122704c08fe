// SPDX-License-Identifier: GPL-2.0
//! The last register accesses, for reports.

use std::collections::VecDeque;

use crate::regs::name;

/// Accesses that are kept.
pub const KEPT: usize = 64;

/// One access of BAR 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) at: u32,
    pub(crate) value: u32,
    pub(crate) write: bool,
}

/// The last accesses. Repeated equal reads, as of a driver that polls, count as one.
#[derive(Debug, Default)]
pub(crate) struct AccessLog {
    kept: VecDeque<(Access, u32)>,
}

impl AccessLog {
    pub(crate) fn push(&mut self, access: Access) {
        if let Some((last, times)) = self.kept.back_mut()
            && *last == access
        {
            *times += 1;
            return;
        }
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((access, 1));
    }

    /// One line for each, the oldest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.kept
            .iter()
            .map(|(access, times)| {
                let arrow = if access.write { "<-" } else { "->" };
                let line = format!("{} {arrow} {:#010x}", name(access.at), access.value);
                match times {
                    1 => line,
                    times => format!("{line}, {times} times"),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regs::offset;

    #[test]
    fn the_last_ones_are_kept_and_polling_is_one_line() {
        let mut log = AccessLog::default();
        let mut push = |at, value, write| log.push(Access { at, value, write });
        for i in 0..2 * KEPT as u32 {
            push(offset::RETA, i, true);
        }
        push(offset::STATUS, 0, false);
        push(offset::STATUS, 0, false);
        let lines = log.lines();
        assert_eq!(lines.len(), KEPT);
        assert_eq!(lines[KEPT - 2], "RETA[0] <- 0x0000007f");
        assert_eq!(lines[KEPT - 1], "STATUS -> 0x00000000, 2 times");
    }
}
