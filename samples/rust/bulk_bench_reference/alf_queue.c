// SPDX-License-Identifier: GPL-2.0
/* What the benchmarks of alf_queue are compared to. */

#include "bench.h"

int bench_alf_queue(void)
{
	return 0;
}
