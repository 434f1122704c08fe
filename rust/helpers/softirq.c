// SPDX-License-Identifier: GPL-2.0

#include <linux/bitops.h>
#include <linux/bottom_half.h>
#include <linux/bug.h>
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
	unsigned int most = SOFTIRQ_MASK / 2;

	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		if (!IS_ENABLED(CONFIG_PREEMPT_RT_NEEDS_BH_LOCK))
			return true;
		/* The lock is not taken where that could sleep. */
		if (!softirq_count() && !preemptible())
			return true;
		/* Each time counts as one of the 48 locks that lockdep can track. */
		most /= 2;
	}

	return in_nmi() || in_hardirq() || irqs_disabled() ||
	       softirq_count() > most;
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
	/*
	 * Bottom halves are a lock there, which is not released with interrupts
	 * disabled: local_bh_enable() would forget that it is held. Keep it.
	 */
	WARN_ONCE(1, "bottom halves stay disabled on this CPU\n");
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
