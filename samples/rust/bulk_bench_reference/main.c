// SPDX-License-Identifier: GPL-2.0
/*
 * Benchmarks of bulk memory, the C side: what rust_bulk_bench is compared to.
 * Loading the module runs one round of the selected benchmarks.
 */

#include <linux/module.h>

#include "bench.h"

static unsigned int benches = 0xf;
module_param(benches, uint, 0);
MODULE_PARM_DESC(benches, "What to run: 1 slab, 2 alf_queue, 4 qmempool, 8 skb; added up");

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

u64 bench_median_of(u64 *times, size_t n)
{
	sort(times, n, sizeof(*times), compare, NULL);
	return times[n / 2];
}

static int __init bulk_bench_init(void)
{
	int err = 0;

	if (benches & 1)
		err = bench_slab();
	if (!err && benches & 2)
		err = bench_alf_queue();
	if (!err && benches & 4)
		err = bench_qmempool();
	if (!err && benches & 8)
		err = bench_skb();
	return err;
}

static void __exit bulk_bench_exit(void)
{
}

module_init(bulk_bench_init);
module_exit(bulk_bench_exit);

MODULE_AUTHOR("The skbulk authors");
MODULE_DESCRIPTION("What benchmarks of bulk memory in Rust are compared to");
MODULE_LICENSE("GPL");
