// SPDX-License-Identifier: GPL-2.0
/*
 * Processes fork and exit, as far as the tree of their mappings is concerned: its nodes come from
 * prefilled sheaves, and are freed in bulk.
 */

#include <linux/maple_tree.h>
#include <linux/rwsem.h>

#include "reference/bench.h"

#define MOST 16
/* Mappings of all processes of a pass: few, so that most passes are not disturbed */
#define TOTAL 20000
#define PASSES 1000

static const unsigned int mappings[] = { 30, 300, 3000 };
/* How many fork before the first one exits */
static const unsigned int processes[] = { 1, MOST };

/* One kernel is compared with another, or with itself in another state. */
static char *side = "ours";
module_param(side, charp, 0);
MODULE_PARM_DESC(side, "ours or reference");

static DECLARE_RWSEM(lock);

static void init(struct maple_tree *tree)
{
	/* As that of a process, which has no other readers when it exits */
	mt_init_flags(tree, MT_FLAGS_ALLOC_RANGE | MT_FLAGS_LOCK_EXTERN);
	mt_set_external_lock(tree, &lock);
}

static int map(struct maple_tree *tree, unsigned int count)
{
	MA_STATE(mas, tree, 0, 0);
	int err = 0;

	for (unsigned long i = 0; i < count && !err; i++) {
		mas_set_range(&mas, i << PAGE_SHIFT, ((i + 1) << PAGE_SHIFT) - 1);
		err = mas_store_gfp(&mas, xa_mk_value(i + 1), GFP_KERNEL);
	}
	return err;
}

static __always_inline void cycle(struct maple_tree *parent, struct maple_tree *children,
				  unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (__mt_dup(parent, &children[i], GFP_KERNEL))
			break;
	while (i--)
		__mt_destroy(&children[i]);
}

static int measure(unsigned int size, unsigned int count)
{
	unsigned int calls = max(TOTAL / size / count, 1u);
	static struct maple_tree children[MOST];
	static u64 times[PASSES];
	struct maple_tree parent;
	int err;

	init(&parent);
	for (int i = 0; i < count; i++)
		init(&children[i]);

	down_write(&lock);
	err = map(&parent, size);
	for (int pass = 0; pass < PASSES && !err; pass++)
		times[pass] = bench_ns(calls, cycle(&parent, children, count));
	__mt_destroy(&parent);
	up_write(&lock);
	if (err)
		return err;

	pr_info("bulk_bench: maple|%u mappings%s|%s|%llu|ps\n", size,
		count > 1 ? ", 16 processes" : "", side,
		bench_median_of(times, PASSES) * 1000 / (calls * count));
	return 0;
}

static int __init maple_bench(void)
{
	int err = 0;

	for (int i = 0; i < ARRAY_SIZE(mappings) && !err; i++)
		for (int j = 0; j < ARRAY_SIZE(processes) && !err; j++)
			err = measure(mappings[i], processes[j]);
	return err;
}

static void __exit maple_bench_exit(void)
{
}

module_init(maple_bench);
module_exit(maple_bench_exit);

MODULE_AUTHOR("The skbulk authors");
MODULE_DESCRIPTION("Benchmark of the slab allocator: fork and exit");
MODULE_LICENSE("GPL");
