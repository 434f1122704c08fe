// SPDX-License-Identifier: GPL-2.0

//! Operations at random, compared to a sequential model.

use crate::kernel::alf_queue::index::{AtomicIndex, ConsumerView, ProducerView};
use crate::kernel::alf_queue::reserve::{AtomicClaim, End, Run, Wanted};
use std::cell::Cell;
use std::collections::VecDeque;

/// Memory that one thread uses.
struct Plain<T>(Cell<T>);

impl AtomicIndex for Plain<u32> {
    fn load_acquire(&self) -> u32 {
        self.0.get()
    }

    fn store_release(&self, position: u32) {
        self.0.set(position);
    }

    fn wait_for(&self, position: u32) {
        assert_eq!(self.0.get(), position, "it would never end");
    }
}

impl AtomicClaim for Plain<u64> {
    fn load_acquire(&self) -> u64 {
        self.0.get()
    }

    fn replace_release(&self, old: u64, new: u64) -> bool {
        assert_eq!(self.0.get(), old);
        self.0.set(new);
        true
    }

    fn store_relaxed(&self, new: u64) {
        self.0.set(new);
    }
}

/// Numbers that look random, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from((self.0 >> 32) % u64::from(limit)).expect("it is below")
    }
}

/// How an end is used.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Unique,
    Shared,
    /// By C code that says it is alone.
    Alone,
}

struct Queue {
    kinds: (Kind, Kind),
    producer: End<Plain<u64>, Plain<u32>>,
    consumer: End<Plain<u64>, Plain<u32>>,
    views: (ProducerView, ConsumerView),
    slots: Vec<Option<u32>>,
}

impl Queue {
    fn new(kinds: (Kind, Kind), capacity: u32, start: u32) -> Self {
        let end = || End::new(start, |w| Plain(Cell::new(w)), |p| Plain(Cell::new(p)));
        Self {
            kinds,
            producer: end(),
            consumer: end(),
            views: (ProducerView::new(start), ConsumerView::new(start)),
            slots: vec![None; capacity as usize],
        }
    }

    fn slot(&mut self, position: u32) -> &mut Option<u32> {
        let mask = self.slots.len() - 1;
        &mut self.slots[position as usize & mask]
    }

    fn push(&mut self, values: &[u32], all: bool) -> usize {
        let count = u32::try_from(values.len()).expect("few values");
        let lead = u32::try_from(self.slots.len()).expect("few slots");
        let (other, wanted) = (&self.consumer.tail, Wanted { count, all });
        let run = match self.kinds.0 {
            Kind::Unique => {
                let room = self.views.0.free(lead, other);
                assert_eq!(
                    self.views.0.has_room(values.len(), lead, other),
                    count <= room,
                    "{count} {room}"
                );
                let count = if all && count > room {
                    0
                } else {
                    count.min(room)
                };
                let start = self.views.0.next();
                (count > 0).then_some(Run { start, count })
            }
            Kind::Shared => self.producer.claim(other, lead, wanted),
            Kind::Alone => self.producer.claim_alone(other, lead, wanted),
        };
        let Some(run) = run else {
            return 0;
        };
        for (offset, value) in (0..run.count).zip(values) {
            let old = self.slot(run.start.wrapping_add(offset)).replace(*value);
            assert_eq!(old, None, "an element was overwritten");
        }
        match self.kinds.0 {
            Kind::Unique => self.views.0.publish(run.count, &self.producer.tail),
            Kind::Shared => self.producer.publish(run),
            Kind::Alone => self.producer.publish_alone(run),
        }
        run.count as usize
    }

    fn pop(&mut self, limit: u32) -> Vec<u32> {
        let other = &self.producer.tail;
        let wanted = Wanted {
            count: limit,
            all: false,
        };
        let run = match self.kinds.1 {
            Kind::Unique => {
                let count = self.views.1.up_to(limit, other);
                let start = self.views.1.next();
                (count > 0).then_some(Run { start, count })
            }
            Kind::Shared => self.consumer.claim(other, 0, wanted),
            Kind::Alone => self.consumer.claim_alone(other, 0, wanted),
        };
        let Some(run) = run else {
            return Vec::new();
        };
        let values = (0..run.count)
            .map(|offset| {
                let slot = self.slot(run.start.wrapping_add(offset));
                slot.take().expect("there is an element")
            })
            .collect();
        match self.kinds.1 {
            Kind::Unique => {
                self.views.1.advance_by(run.count);
                self.views.1.publish(&self.consumer.tail);
            }
            Kind::Shared => self.consumer.publish(run),
            Kind::Alone => self.consumer.publish_alone(run),
        }
        values
    }
}

#[test]
fn behaves_like_a_bounded_fifo() {
    let kinds = [Kind::Unique, Kind::Shared, Kind::Alone];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for producer in kinds {
        for consumer in kinds {
            for shift in 0..7 {
                let capacity = 1 << shift;
                let start = 0u32.wrapping_sub(random.below(2_000));
                let mut queue = Queue::new((producer, consumer), capacity, start);
                compare(&mut queue, capacity, &mut random);
            }
        }
    }
}

fn compare(queue: &mut Queue, capacity: u32, random: &mut Random) {
    let mut expected = VecDeque::new();
    let mut next = 0;
    for _ in 0..5_000 {
        let count = random.below(capacity + 3);
        if random.below(2) == 0 {
            let all = random.below(2) == 0;
            let values: Vec<u32> = (next..next + count).collect();
            let room = capacity as usize - expected.len();
            let put = queue.push(&values, all);
            let fits = if all && values.len() > room {
                0
            } else {
                values.len().min(room)
            };
            assert_eq!(put, fits, "{:?}", queue.kinds);
            expected.extend(&values[..put]);
            next += count;
        } else {
            let taken = queue.pop(count);
            let there = expected.len().min(count as usize);
            assert!(taken.into_iter().eq(expected.drain(..there)));
        }
    }
    // Alike to the last one.
    let rest = queue.pop(capacity);
    assert!(rest.into_iter().eq(expected));
}
