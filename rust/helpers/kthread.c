// SPDX-License-Identifier: GPL-2.0

#include <linux/cpumask.h>

/* The next online CPU after @cpu, which may be -1; >= nr_cpu_ids if none. */
__rust_helper unsigned int rust_helper_cpumask_next_online(int cpu)
{
	return cpumask_next(cpu, cpu_online_mask);
}
