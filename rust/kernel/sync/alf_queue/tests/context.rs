// SPDX-License-Identifier: GPL-2.0

//! Tests of the proof that interrupts are disabled.

#[crate::prelude::kunit_tests(rust_alf_queue_context)]
mod cases {
    use super::super::super::with_interrupts_off;
    use crate::{
        bindings,
        interrupt::local_interrupt_disable,
        prelude::*, //
    };

    fn interrupts_are_off() -> bool {
        // SAFETY: This only reads a flag.
        unsafe { bindings::softirq_irqs_off() }
    }

    #[test]
    fn calls_nest() {
        let inside = with_interrupts_off(|_cx| {
            let inner = with_interrupts_off(|_cx| interrupts_are_off());
            (inner, interrupts_are_off())
        });
        let after = interrupts_are_off();

        assert_eq!(inside, Some((Some(true), true)));
        assert!(!after);
    }

    #[test]
    fn a_guard_that_is_dropped_inside_leaves_them_disabled() {
        let guard = local_interrupt_disable();
        let inside = with_interrupts_off(move |_cx| {
            drop(guard);
            interrupts_are_off()
        });
        let after = interrupts_are_off();

        assert_eq!(inside, Some(true));
        assert!(!after);
    }

    #[test]
    fn a_guard_from_inside_keeps_them_disabled() -> Result {
        let guard = with_interrupts_off(|_cx| local_interrupt_disable()).ok_or(EINVAL)?;
        let while_guard = interrupts_are_off();
        drop(guard);
        let after = interrupts_are_off();

        assert!(while_guard);
        assert!(!after);
        Ok(())
    }

    // The lock that bottom halves are with it is not released there.
    #[cfg(not(CONFIG_PREEMPT_RT))]
    #[test]
    fn enabling_bottom_halves_inside_leaves_them_disabled() -> Result {
        let guard = crate::softirq::BhGuard::new().ok_or(EINVAL)?;
        let inside = with_interrupts_off(move |_cx| {
            drop(guard);
            interrupts_are_off()
        });
        let after = interrupts_are_off();

        assert_eq!(inside, Some(true));
        assert!(!after);
        Ok(())
    }

    #[test]
    fn there_are_no_more_than_can_be_counted() -> Result {
        let mut guards = KVec::with_capacity(200, GFP_KERNEL)?;
        let mut all_off = true;
        // As many as could be counted, but for some that others need.
        for _ in 0..200 {
            let Some(guard) = with_interrupts_off(|_cx| local_interrupt_disable()) else {
                break;
            };
            if guards.push(guard, GFP_ATOMIC).is_err() {
                break;
            }
            all_off &= interrupts_are_off();
        }
        let count = guards.len();
        drop(guards);
        let after = interrupts_are_off();

        assert!(all_off);
        assert!((64..200).contains(&count));
        assert!(!after);
        Ok(())
    }
}
