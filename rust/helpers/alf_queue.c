// SPDX-License-Identifier: GPL-2.0

#include <linux/preempt.h>

/*
 * Returns true in an NMI, and if local_interrupt_disable() was called so often that
 * its count could overflow: it may reach half of its maximum, and the rest is for
 * other code.
 */
__rust_helper bool rust_helper_alf_queue_irqs_stay_on(void)
{
	return in_nmi() ||
	       (preempt_count() & HARDIRQ_DISABLE_MASK) > HARDIRQ_DISABLE_MASK / 2;
}

__rust_helper void rust_helper_preempt_disable(void)
{
	preempt_disable();
}

__rust_helper void rust_helper_preempt_enable(void)
{
	preempt_enable();
}
