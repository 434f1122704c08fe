// SPDX-License-Identifier: GPL-2.0
/* What the benchmarks of qmempool are compared to. */

#include "bench.h"

int bench_qmempool(void)
{
	return 0;
}
