// SPDX-License-Identifier: GPL-2.0

#include <linux/cpumask.h>

__rust_helper unsigned int rust_helper_cpumask_next(int n,
						    const struct cpumask *srcp)
{
	return cpumask_next(n, srcp);
}
