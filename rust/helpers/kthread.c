// SPDX-License-Identifier: GPL-2.0

#include <linux/cpumask.h>

/* The online CPU after @cpu, or the first one for -1; nr_cpu_ids and up: none. */
__rust_helper unsigned int rust_helper_cpumask_next_online(int cpu)
{
	return cpumask_next(cpu, cpu_online_mask);
}
