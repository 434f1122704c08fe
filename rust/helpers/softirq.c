// SPDX-License-Identifier: GPL-2.0

#include <linux/bitops.h>
#include <linux/bottom_half.h>
#include <linux/interrupt.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>

__rust_helper void rust_helper_local_bh_disable(void)
{
	local_bh_disable();
}

__rust_helper void rust_helper_local_bh_enable(void)
{
	local_bh_enable();
}

/*
 * Returns true in contexts in which disabling bottom halves gives no exclusion,
 * or enabling them again is not allowed, and if they were disabled so often that
 * the count could overflow: it may reach half of its maximum, and the rest is for
 * C code.
 */
__rust_helper bool rust_helper_softirq_guard_impossible(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT) &&
	    !IS_ENABLED(CONFIG_PREEMPT_RT_NEEDS_BH_LOCK))
		return true;

	return in_nmi() || in_hardirq() || irqs_disabled() ||
	       softirq_count() > SOFTIRQ_MASK / 2;
}

__rust_helper bool rust_helper_softirq_irqs_off(void)
{
	return irqs_disabled();
}

/*
 * Enables bottom halves with interrupts disabled. Softirqs must not run here,
 * since they would enable interrupts. Those that are pending run in ksoftirqd,
 * which nothing has woken while bottom halves were disabled.
 */
__rust_helper void rust_helper_local_bh_enable_irqs_off(void)
{
#ifdef CONFIG_PREEMPT_RT
	/* Bottom halves are a lock there, which has to be released. */
	local_bh_enable();
#else
	u32 pending;

	_local_bh_enable();
	pending = local_softirq_pending();
	if (pending && !in_interrupt())
		raise_softirq_irqoff(__ffs(pending));
#endif
}

#if IS_ENABLED(CONFIG_KUNIT)
/* Returns whether softirqs are blocked on this CPU. For tests. */
__rust_helper bool rust_helper_softirqs_wait(void)
{
	return softirq_count() != 0;
}
#endif
