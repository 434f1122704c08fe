// SPDX-License-Identifier: GPL-2.0
/* The reference for the benchmarks of qmempool: a slab cache. */

#include <linux/atomic.h>
#include <linux/bottom_half.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "bench.h"
#include "pair.h"

#define OBJECT_SIZE	232
#define CALLS		100000
#define PATTERN		256
#define LOT		256
#define LOTS		400
#define WARM		(LOTS / 10)

static struct kmem_cache *new_cache(void)
{
	return kmem_cache_create("bulk_bench_qmempool_c", OBJECT_SIZE, 8,
				 SLAB_NO_MERGE, NULL);
}

static u64 time_single(struct kmem_cache *cache, gfp_t gfp)
{
	return bench_ps(1, CALLS, ({
		void *object = kmem_cache_alloc(cache, gfp);

		barrier_data(object);
		if (likely(object))
			kmem_cache_free(cache, object);
	}));
}

static u64 time_pattern(struct kmem_cache *cache)
{
	static void *objects[PATTERN];

	return bench_ps(PATTERN, CALLS / PATTERN, ({
		for (int i = 0; i < PATTERN; i++)
			objects[i] = kmem_cache_alloc(cache, GFP_ATOMIC);
		for (int i = PATTERN - 1; i >= 0; i--)
			if (likely(objects[i]))
				kmem_cache_free(cache, objects[i]);
	}));
}

/* Objects in transit from the allocating CPU to the freeing one. */
struct lot {
	unsigned int len;
	void *objects[LOT];
};

/*
 * The allocating side writes @made, the freeing side writes @freed. Two lots
 * circulate.
 */
struct across {
	struct kmem_cache *cache;
	unsigned int batch;
	struct lot *lots[2];
	atomic_t made, freed;
	u64 allocating[LOTS], freeing[LOTS];
};

static unsigned int alloc_some(struct across *x, void **to, unsigned int n)
{
	if (x->batch > 1)
		return kmem_cache_alloc_bulk(x->cache, GFP_ATOMIC, n, to) ? n : 0;

	*to = kmem_cache_alloc(x->cache, GFP_ATOMIC);
	return *to ? 1 : 0;
}

static void allocates(void *data)
{
	struct across *x = data;

	for (unsigned int round = 0; round < WARM + LOTS; round++) {
		struct lot *lot = x->lots[round % 2];
		unsigned int n;
		u64 start;

		while (round - (unsigned int)atomic_read_acquire(&x->freed) >= 2)
			cond_resched();

		local_bh_disable();
		start = ktime_get_ns();
		for (lot->len = 0; lot->len < LOT; lot->len += n) {
			n = min(x->batch, LOT - lot->len);
			n = alloc_some(x, lot->objects + lot->len, n);
			if (!n)
				break;
		}
		if (round >= WARM)
			x->allocating[round - WARM] = ktime_get_ns() - start;
		local_bh_enable();
		atomic_set_release(&x->made, round + 1);
	}
}

static void frees(void *data)
{
	struct across *x = data;

	for (unsigned int round = 0; round < WARM + LOTS; round++) {
		struct lot *lot = x->lots[round % 2];
		u64 start;

		while ((unsigned int)atomic_read_acquire(&x->made) == round)
			cond_resched();

		local_bh_disable();
		start = ktime_get_ns();
		while (lot->len) {
			unsigned int n = min(x->batch, lot->len);

			lot->len -= n;
			if (x->batch > 1)
				kmem_cache_free_bulk(x->cache, n,
						     lot->objects + lot->len);
			else
				kmem_cache_free(x->cache,
						lot->objects[lot->len]);
		}
		if (round >= WARM)
			x->freeing[round - WARM] = ktime_get_ns() - start;
		local_bh_enable();
		atomic_set_release(&x->freed, round + 1);
	}
}

static int time_across(unsigned int batch)
{
	int err = -ENOMEM;
	struct across *x;

	x = kzalloc_obj(*x);
	if (!x)
		return err;
	x->batch = batch;
	x->cache = new_cache();
	x->lots[0] = kmalloc_obj(*x->lots[0]);
	x->lots[1] = kmalloc_obj(*x->lots[1]);
	if (!x->cache || !x->lots[0] || !x->lots[1])
		goto out;

	err = bench_pair(allocates, frees, x);
	if (!err)
		bench_time("qmempool-xcpu",
			   (bench_median_of(x->allocating, LOTS) +
			    bench_median_of(x->freeing, LOTS)) * 1000 / LOT,
			   "batch %u", batch);
	else if (err == -ENODEV)
		err = 0;
out:
	kfree(x->lots[0]);
	kfree(x->lots[1]);
	kmem_cache_destroy(x->cache);
	kfree(x);
	return err;
}

static int __init bench_qmempool(void)
{
	struct kmem_cache *cache = new_cache();
	u64 time;
	int err;

	if (!cache)
		return -ENOMEM;
	local_bh_disable();
	time = time_single(cache, GFP_ATOMIC);
	local_bh_enable();
	bench_time("qmempool", time, "softirq");
	bench_time("qmempool", time, "softirq lookup");
	bench_time("qmempool", time_single(cache, GFP_KERNEL), "process");
	kmem_cache_destroy(cache);

	cache = new_cache();
	if (!cache)
		return -ENOMEM;
	local_bh_disable();
	time = time_pattern(cache);
	local_bh_enable();
	bench_time("qmempool", time, "n-pattern %u", PATTERN);
	kmem_cache_destroy(cache);

	err = time_across(1);
	if (!err)
		err = time_across(16);
	if (!err)
		err = time_across(64);
	return err;
}

static void __exit bench_qmempool_exit(void)
{
}

module_init(bench_qmempool);
module_exit(bench_qmempool_exit);

MODULE_AUTHOR("The skbulk authors");
MODULE_DESCRIPTION("Reference for benchmarks in Rust: kmem_cache");
MODULE_LICENSE("GPL");
