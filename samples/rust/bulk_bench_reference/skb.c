// SPDX-License-Identifier: GPL-2.0
/* What the benchmarks of skb are compared to. */

#include "bench.h"

int bench_skb(void)
{
	return 0;
}
