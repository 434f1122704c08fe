// SPDX-License-Identifier: GPL-2.0

#include <linux/bottom_half.h>
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
 * or enabling them again is not allowed.
 */
__rust_helper bool rust_helper_softirq_guard_impossible(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT) &&
	    !IS_ENABLED(CONFIG_PREEMPT_RT_NEEDS_BH_LOCK))
		return true;

	return in_nmi() || in_hardirq() || irqs_disabled();
}

#if IS_ENABLED(CONFIG_KUNIT)
/* Returns whether softirqs are blocked on this CPU. For tests. */
__rust_helper bool rust_helper_softirqs_wait(void)
{
	return softirq_count() != 0;
}
#endif
