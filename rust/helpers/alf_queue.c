// SPDX-License-Identifier: GPL-2.0

#include <linux/irqflags.h>
#include <linux/preempt.h>

__rust_helper bool rust_helper_alf_queue_in_nmi(void)
{
	return in_nmi();
}

__rust_helper unsigned long rust_helper_alf_queue_irq_save(void)
{
	unsigned long flags;

	local_irq_save(flags);
	return flags;
}

__rust_helper void rust_helper_alf_queue_irq_restore(unsigned long flags)
{
	local_irq_restore(flags);
}
