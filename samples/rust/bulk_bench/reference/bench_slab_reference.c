// SPDX-License-Identifier: GPL-2.0
/* The reference for the benchmarks of slab: the same allocator, from C. */

#include <linux/slab.h>

#include "bench.h"

/* As large as the head of a packet. */
#define ELEMENT_SIZE (29 * sizeof(u64))
#define MOST 256
#define OBJECTS 8000
#define PASSES BENCH_REPEATS

static const unsigned int sizes[] = {
	1, 2, 3, 4, 8, 16, 30, 32, 34, 48, 64, 128, 158, 250
};

static void *objects[MOST];

/* A pass runs all cases, so that a disturbance hits few results of each. */
static u64 bulk_times[ARRAY_SIZE(sizes)][PASSES];
static u64 sized_times[ARRAY_SIZE(sizes)][PASSES];
static u64 loop_times[ARRAY_SIZE(sizes)][PASSES];
static u64 single_times[PASSES];

static __always_inline void bulk_cycle(struct kmem_cache *cache, size_t count)
{
	if (kmem_cache_alloc_bulk(cache, GFP_ATOMIC, count, objects))
		kmem_cache_free_bulk(cache, count, objects);
}

static __always_inline void loop_cycle(struct kmem_cache *cache, size_t count)
{
	size_t done;

	for (done = 0; done < count; done++) {
		objects[done] = kmem_cache_alloc(cache, GFP_ATOMIC);
		if (!objects[done])
			break;
	}
	while (done--)
		kmem_cache_free(cache, objects[done]);
}

static __always_inline void single_cycle(struct kmem_cache *cache)
{
	void *object = kmem_cache_alloc(cache, GFP_ATOMIC);

	if (object)
		kmem_cache_free(cache, object);
}

/* As options.rs has it for batches of MOST objects. */
#define CAPACITY (2 * MOST - 4)

/* Objects share no cache line, like the heads of packets. */
static struct kmem_cache *create(const char *name, unsigned int capacity)
{
	struct kmem_cache_args args = { .sheaf_capacity = capacity };

	return kmem_cache_create(name, ELEMENT_SIZE, &args,
				 SLAB_HWCACHE_ALIGN | SLAB_NO_MERGE);
}

static int __init bench_slab(void)
{
	/* Single calls fill sheaves that bulk calls would use: keep them apart. */
	struct kmem_cache *bulk = create("bulk_bench_bulk", 0);
	struct kmem_cache *sized = create("bulk_bench_sized", CAPACITY);
	struct kmem_cache *loop = create("bulk_bench_loop", 0);
	int err = -ENOMEM;

	if (!bulk || !sized || !loop)
		goto out;

	for (int pass = 0; pass < PASSES; pass++) {
		for (int i = 0; i < ARRAY_SIZE(sizes); i++) {
			unsigned int size = sizes[i];

			bulk_times[i][pass] = bench_ps(size, OBJECTS / size,
						       bulk_cycle(bulk, size));
			sized_times[i][pass] = bench_ps(size, OBJECTS / size,
							bulk_cycle(sized, size));
			loop_times[i][pass] = bench_ps(size, OBJECTS / size,
						       loop_cycle(loop, size));
		}
		single_times[pass] = bench_ps(1, OBJECTS, single_cycle(loop));
	}

	for (int i = 0; i < ARRAY_SIZE(sizes); i++) {
		bench_time("slab", bench_median(bulk_times[i]), "bulk %u",
			   sizes[i]);
		bench_time("slab-sized", bench_median(sized_times[i]), "bulk %u",
			   sizes[i]);
		bench_time("slab-loop", bench_median(loop_times[i]), "bulk %u",
			   sizes[i]);
	}
	bench_time("slab-single", bench_median(single_times), "single");
	err = 0;
out:
	kmem_cache_destroy(loop);
	kmem_cache_destroy(sized);
	kmem_cache_destroy(bulk);
	return err;
}

static void __exit bench_slab_exit(void)
{
}

module_init(bench_slab);
module_exit(bench_slab_exit);

MODULE_AUTHOR("The skbulk authors");
MODULE_DESCRIPTION("Reference for benchmarks in Rust: kmem_cache");
MODULE_LICENSE("GPL");
