// SPDX-License-Identifier: GPL-2.0

#include <linux/bottom_half.h>
#include <linux/interrupt.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/sched.h>

__rust_helper bool rust_helper_in_hardirq(void)
{
	return in_hardirq();
}

__rust_helper bool rust_helper_in_interrupt(void)
{
	return in_interrupt();
}

__rust_helper bool rust_helper_in_nmi(void)
{
	return in_nmi();
}

__rust_helper bool rust_helper_irqs_disabled(void)
{
	return irqs_disabled();
}

__rust_helper void rust_helper_local_bh_disable(void)
{
	local_bh_disable();
}

__rust_helper void rust_helper_local_bh_enable(void)
{
	local_bh_enable();
}

__rust_helper u32 rust_helper_local_softirq_pending(void)
{
	return local_softirq_pending();
}

__rust_helper bool rust_helper_preemptible(void)
{
	return preemptible();
}

__rust_helper unsigned int rust_helper_softirq_count(void)
{
	return softirq_count();
}
