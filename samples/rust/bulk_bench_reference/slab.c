// SPDX-License-Identifier: GPL-2.0
/* What the benchmarks of slab are compared to. */

#include "bench.h"

int bench_slab(void)
{
	return 0;
}
