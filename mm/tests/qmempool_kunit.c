// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the C interface of qmempools, and of their connection to memory
 * reclaim and CPU hotplug. The tests in rust/kernel/mm/qmempool cover the
 * implementation and concurrent use.
 */

#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <kunit/test-bug.h>
#include <linux/bottom_half.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/qmempool.h>
#include <linux/sched.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "../slab.h"

#define OBJECT_SIZE	104
#define MAGAZINE	4
#define DEPOT		3
/* The capacity for one CPU: its two magazines, and the depot. */
#define MOST		(MAGAZINE * (2 + DEPOT))

struct pool_test {
	struct kmem_cache *cache;
	struct qmempool *pool;
};

static int qmempool_test_init(struct kunit *test)
{
	struct pool_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	test->priv = t;
	/* Tests count the objects of one CPU: do not migrate. */
	if (set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id())))
		return -EBUSY;
	t->cache = kmem_cache_create("qmempool_kunit", OBJECT_SIZE, 0,
				     SLAB_NO_MERGE, NULL);
	if (!t->cache)
		return -ENOMEM;
	t->pool = qmempool_create("kunit_c_test", t->cache, MAGAZINE, DEPOT);
	return t->pool ? 0 : -ENOMEM;
}

static void qmempool_test_exit(struct kunit *test)
{
	struct pool_test *t = test->priv;

	if (!t)
		return;
	qmempool_destroy(t->pool);
	if (!t->cache)
		return;
	/* If the pool had leaked an object, slabs would be left. */
	KUNIT_EXPECT_EQ(test, kmem_cache_shrink(t->cache), 0);
	kmem_cache_destroy(t->cache);
}

static unsigned long held(struct qmempool *pool)
{
	struct qmempool_stats stats;

	qmempool_stats(pool, &stats);
	return stats.held;
}

/* Fills the pool from this CPU. */
static void fill_pool(struct kunit *test)
{
	struct pool_test *t = test->priv;
	void *objects[MOST];

	local_bh_disable();
	KUNIT_EXPECT_EQ(test, MOST,
			qmempool_alloc_bulk_softirq(t->pool, GFP_ATOMIC, MOST, objects));
	qmempool_free_bulk_softirq(t->pool, MOST, objects);
	local_bh_enable();
	KUNIT_ASSERT_EQ(test, held(t->pool), MOST);
}

static void qmempool_test_create(struct kunit *test)
{
	struct pool_test *t = test->priv;
	struct qmempool *pool;

	KUNIT_EXPECT_NULL(test, qmempool_create("kunit_bad", NULL, 4, 4));
	KUNIT_EXPECT_NULL(test, qmempool_create(NULL, t->cache, 4, 4));
	KUNIT_EXPECT_NULL(test, qmempool_create("kunit_bad", t->cache, 0, 4));
	KUNIT_EXPECT_NULL(test, qmempool_create("kunit_bad", t->cache,
						QMEMPOOL_MAGAZINE_MAX + 1, 4));
	KUNIT_EXPECT_NULL(test, qmempool_create("kunit_bad", t->cache, 4, UINT_MAX));

	pool = qmempool_create("kunit_good", t->cache, QMEMPOOL_MAGAZINE_MAX, 0);
	KUNIT_ASSERT_NOT_NULL(test, pool);
	KUNIT_EXPECT_PTR_EQ(test, pool->cache, t->cache);
	KUNIT_EXPECT_EQ(test, pool->object_size, OBJECT_SIZE);
	qmempool_destroy(pool);
	qmempool_destroy(NULL);
}

static void no_constructor(void *object)
{
}

/* A pool does not keep objects that cannot be given to anyone. */
static void qmempool_test_refused_caches(struct kunit *test)
{
	static const slab_flags_t flags[] = { SLAB_TYPESAFE_BY_RCU, SLAB_ACCOUNT, 0 };

	for (int i = 0; i < ARRAY_SIZE(flags); i++) {
		struct kmem_cache *cache;
		struct qmempool *pool;

		/* Without memory cgroups, the flag is 0. */
		if (flags[i] == 0 && i + 1 < ARRAY_SIZE(flags))
			continue;
		cache = kmem_cache_create("qmempool_kunit_refused", OBJECT_SIZE, 0,
					  flags[i] | SLAB_NO_MERGE,
					  flags[i] ? NULL : no_constructor);
		KUNIT_ASSERT_NOT_NULL(test, cache);
		pool = qmempool_create("kunit_refused", cache, 4, 4);
		KUNIT_EXPECT_NULL_MSG(test, pool, "cache %d", i);
		qmempool_destroy(pool);
		kmem_cache_destroy(cache);
	}
}

/* The number of objects that a CPU keeps depends on their size. */
static void qmempool_test_large_objects(struct kunit *test)
{
	const unsigned int most = 4;
	struct kmem_cache *cache;
	struct qmempool *pool;

	cache = kmem_cache_create("qmempool_kunit_large",
				  QMEMPOOL_MAGAZINE_BYTES / most, 0, SLAB_NO_MERGE, NULL);
	KUNIT_ASSERT_NOT_NULL(test, cache);
	pool = qmempool_create("kunit_large", cache, most + 1, 0);
	KUNIT_EXPECT_NULL(test, pool);
	qmempool_destroy(pool);
	pool = qmempool_create("kunit_large", cache, most, 0);
	KUNIT_EXPECT_NOT_NULL(test, pool);
	qmempool_destroy(pool);
	kmem_cache_destroy(cache);
}

/* Objects of a pool are neither charged nor from the reserves. */
static void qmempool_test_flags(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, (__force u32)qmempool_gfp(GFP_ATOMIC | __GFP_MEMALLOC),
			(__force u32)(GFP_ATOMIC | __GFP_NOMEMALLOC));
	KUNIT_EXPECT_EQ(test, (__force u32)qmempool_gfp(GFP_KERNEL_ACCOUNT),
			(__force u32)(GFP_KERNEL | __GFP_NOMEMALLOC));
}

/* An object of the reserves does not stay in the pool if it was not allocated there. */
static void qmempool_test_reserves(struct kunit *test)
{
	struct pool_test *t = test->priv;
	void *objects[16] = { NULL };
	struct page *page;
	int i;

	KUNIT_ASSERT_TRUE(test, kmem_cache_alloc_bulk(t->cache, GFP_KERNEL,
						      ARRAY_SIZE(objects), objects));
	page = virt_to_head_page(objects[0]);
	/* Another object of that slab keeps it until its mark is taken back. */
	for (i = 1; i < ARRAY_SIZE(objects); i++) {
		if (virt_to_head_page(objects[i]) == page) {
			swap(objects[1], objects[i]);
			break;
		}
	}
	kmem_cache_free_bulk(t->cache, ARRAY_SIZE(objects) - 2, objects + 2);
	KUNIT_ASSERT_PTR_EQ(test, virt_to_head_page(objects[1]), page);
	/* As SLUB marks a slab of the reserves. */
	local_bh_disable();
	set_bit(PG_active, &page->flags.f);
	qmempool_free_any_bulk_softirq(t->pool, 1, objects);
	KUNIT_EXPECT_EQ(test, held(t->pool), 0);
	clear_bit(PG_active, &page->flags.f);
	qmempool_free_any_bulk_softirq(t->pool, 1, objects + 1);
	KUNIT_EXPECT_EQ(test, held(t->pool), 1);
	local_bh_enable();
}

#ifdef CONFIG_MEMCG
/* Nor does one that a memory cgroup pays for. */
static void qmempool_test_charged(struct kunit *test)
{
	struct pool_test *t = test->priv;
	struct slabobj_ext *ext;
	struct slab *slab;
	void *object;

	object = kmem_cache_alloc(t->cache, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, object);
	slab = virt_to_slab(object);
	if (!slab_needs_objcg(slab) ||
	    (!slab_obj_exts(slab) && alloc_slab_obj_exts(slab, t->cache, GFP_KERNEL, 0))) {
		kmem_cache_free(t->cache, object);
		kunit_skip(test, "objects of slab caches are not charged");
	}

	ext = slab_obj_ext(t->cache, slab, slab_obj_exts(slab), object);
	KUNIT_EXPECT_TRUE(test, slab_object_for_anyone(object));
	/* Only whether there is one matters. */
	slab_obj_ext_set_objcg(slab, ext, (struct obj_cgroup *)t);
	KUNIT_EXPECT_FALSE(test, slab_object_for_anyone(object));
	slab_obj_ext_set_objcg(slab, ext, NULL);
	kmem_cache_free(t->cache, object);
}
#endif

static void qmempool_test_softirq(struct kunit *test)
{
	struct pool_test *t = test->priv;
	struct qmempool_stats stats;
	void *objects[2 * MOST];
	int i, j;

	local_bh_disable();
	for (i = 0; i < ARRAY_SIZE(objects); i++) {
		objects[i] = qmempool_alloc_softirq(t->pool, GFP_ATOMIC);
		if (!objects[i])
			break;
		memset(objects[i], i, OBJECT_SIZE);
	}
	KUNIT_EXPECT_EQ(test, i, ARRAY_SIZE(objects));
	qmempool_stats(t->pool, &stats);
	KUNIT_EXPECT_EQ(test, stats.hits, ARRAY_SIZE(objects));
	KUNIT_EXPECT_EQ(test, stats.refills, ARRAY_SIZE(objects) / MAGAZINE);
	KUNIT_EXPECT_EQ(test, stats.held, 0);

	/* All of them are distinct. */
	for (j = 0; j < i; j++)
		KUNIT_EXPECT_NULL(test, memchr_inv(objects[j], j, OBJECT_SIZE));
	while (i--)
		qmempool_free_softirq(t->pool, objects[i]);

	/* The pool is full; the rest went to the slab. */
	qmempool_stats(t->pool, &stats);
	KUNIT_EXPECT_EQ(test, stats.held, MOST);
	KUNIT_EXPECT_EQ(test, stats.bytes, MOST * OBJECT_SIZE);
	KUNIT_EXPECT_EQ(test, stats.exchanges, DEPOT);
	KUNIT_EXPECT_EQ(test, stats.returns, MOST / MAGAZINE);

	/* Last in, first out. */
	objects[1] = qmempool_alloc_softirq(t->pool, GFP_ATOMIC);
	KUNIT_EXPECT_PTR_EQ(test, objects[1], objects[0]);
	qmempool_free_softirq(t->pool, objects[1]);
	local_bh_enable();
}

static void qmempool_test_process(struct kunit *test)
{
	struct pool_test *t = test->priv;
	struct qmempool_stats stats;
	void *objects[9] = {};
	unsigned int n;
	int i;

	for (i = 0; i < 20; i++) {
		void *object = qmempool_alloc(t->pool, GFP_KERNEL | __GFP_ZERO);

		KUNIT_ASSERT_NOT_NULL(test, object);
		KUNIT_EXPECT_NULL(test, memchr_inv(object, 0, OBJECT_SIZE));
		memset(object, 0xff, OBJECT_SIZE);
		qmempool_free(t->pool, object);
	}

	for (n = 0; n <= ARRAY_SIZE(objects); n++) {
		KUNIT_ASSERT_EQ(test, n, qmempool_alloc_bulk(t->pool, GFP_KERNEL | __GFP_ZERO,
							     n, objects));
		for (i = 0; i < n; i++) {
			KUNIT_EXPECT_NULL(test, memchr_inv(objects[i], 0, OBJECT_SIZE));
			memset(objects[i], 0xff, OBJECT_SIZE);
		}
		qmempool_free_bulk(t->pool, n, objects);
	}
	qmempool_stats(t->pool, &stats);
	KUNIT_EXPECT_EQ(test, stats.hits, 20 + 45);
	KUNIT_EXPECT_LE(test, stats.held, MAGAZINE * (2 * num_possible_cpus() + DEPOT));
}

/* A caller that may sleep falls back to the slab. */
static void qmempool_test_shortage(struct kunit *test)
{
	struct pool_test *t = test->priv;
	struct qmempool_stats stats;
	void *atomic, *object, *objects[3] = {};
	unsigned int n;

	__qmempool_shortage(t->cache, 0);
	atomic = qmempool_alloc(t->pool, GFP_ATOMIC);
	object = qmempool_alloc(t->pool, GFP_KERNEL | __GFP_ZERO);
	n = qmempool_alloc_bulk(t->pool, GFP_KERNEL, ARRAY_SIZE(objects), objects);
	__qmempool_shortage(NULL, 0);

	KUNIT_EXPECT_NULL(test, atomic);
	KUNIT_EXPECT_EQ(test, n, 0);
	KUNIT_ASSERT_NOT_NULL(test, object);
	KUNIT_EXPECT_NULL(test, memchr_inv(object, 0, OBJECT_SIZE));
	qmempool_stats(t->pool, &stats);
	KUNIT_EXPECT_EQ(test, stats.hits, 0);
	KUNIT_EXPECT_EQ(test, stats.held, 0);
	/* The object can be freed to the pool. */
	qmempool_free(t->pool, object);
	KUNIT_EXPECT_EQ(test, held(t->pool), 1);
}

/* The shrinkers that were allocated last and freed last. */
static struct shrinker *made_shrinker, *freed_shrinker;
/* The pool that was removed from CPU hotplug last. */
static struct qmempool *removed_pool;

static struct shrinker *no_shrinker(const char *name)
{
	return NULL;
}

static void note_and_free(struct shrinker *shrinker)
{
	freed_shrinker = shrinker;
	shrinker_free(shrinker);
}

static int no_hotplug(struct qmempool *pool)
{
	made_shrinker = pool->shrinker;
	return -EBUSY;
}

/* A stub replaces the function: remove the pool here. */
static void note_and_remove(struct qmempool *pool)
{
	removed_pool = pool;
	kunit_deactivate_static_stub(kunit_get_current_test(), qmempool_hp_remove);
	qmempool_hp_remove(pool);
}

/* If a pool cannot be attached, creating it fails. */
static void qmempool_test_attach(struct kunit *test)
{
	struct pool_test *t = test->priv;
	struct qmempool *pool;

	freed_shrinker = NULL;
	made_shrinker = NULL;
	kunit_activate_static_stub(test, qmempool_shrinker_free, note_and_free);

	kunit_activate_static_stub(test, qmempool_shrinker_alloc, no_shrinker);
	KUNIT_EXPECT_NULL(test, qmempool_create("kunit_attach", t->cache, 4, 4));
	KUNIT_EXPECT_NULL(test, freed_shrinker);
	kunit_deactivate_static_stub(test, qmempool_shrinker_alloc);

	kunit_activate_static_stub(test, qmempool_hp_add, no_hotplug);
	KUNIT_EXPECT_NULL(test, qmempool_create("kunit_attach", t->cache, 4, 4));
	KUNIT_EXPECT_NOT_NULL(test, made_shrinker);
	KUNIT_EXPECT_PTR_EQ(test, freed_shrinker, made_shrinker);
	kunit_deactivate_static_stub(test, qmempool_hp_add);

	/* The failure left nothing behind: the name can be used again. */
	for (int round = 0; round < 2; round++) {
		pool = qmempool_create("kunit_attach", t->cache, 4, 4);
		KUNIT_ASSERT_NOT_NULL(test, pool);
		if (IS_ENABLED(CONFIG_DEBUG_FS))
			KUNIT_EXPECT_FALSE(test, IS_ERR_OR_NULL(pool->dentry));
		made_shrinker = pool->shrinker;
		kunit_activate_static_stub(test, qmempool_hp_remove, note_and_remove);
		qmempool_destroy(pool);
		KUNIT_EXPECT_PTR_EQ(test, freed_shrinker, made_shrinker);
		KUNIT_EXPECT_PTR_EQ(test, removed_pool, pool);
		removed_pool = NULL;
	}
}

/* Memory reclaim frees the objects of the depot, then those of this CPU. */
static void qmempool_test_shrinker(struct kunit *test)
{
	struct pool_test *t = test->priv;
	struct shrinker *shrinker = t->pool->shrinker;
	struct shrink_control sc = { .gfp_mask = GFP_KERNEL };

	KUNIT_ASSERT_NOT_NULL(test, shrinker);
	KUNIT_ASSERT_TRUE(test, shrinker->flags & SHRINKER_REGISTERED);
	KUNIT_EXPECT_EQ(test, shrinker->count_objects(shrinker, &sc), SHRINK_EMPTY);
	sc.nr_to_scan = 100;
	KUNIT_EXPECT_EQ(test, shrinker->scan_objects(shrinker, &sc), SHRINK_STOP);

	fill_pool(test);
	KUNIT_EXPECT_EQ(test, shrinker->count_objects(shrinker, &sc), MOST);

	/* Shrinking frees whole magazines. */
	sc.nr_to_scan = 1;
	KUNIT_EXPECT_EQ(test, shrinker->scan_objects(shrinker, &sc), MAGAZINE);
	KUNIT_EXPECT_EQ(test, held(t->pool), MOST - MAGAZINE);
	sc.nr_to_scan = 100;
	KUNIT_EXPECT_EQ(test, shrinker->scan_objects(shrinker, &sc), MOST - MAGAZINE);
	KUNIT_EXPECT_EQ(test, shrinker->scan_objects(shrinker, &sc), SHRINK_STOP);
	KUNIT_EXPECT_EQ(test, shrinker->count_objects(shrinker, &sc), SHRINK_EMPTY);
	KUNIT_EXPECT_EQ(test, held(t->pool), 0);

	/* The magazines are still there. */
	fill_pool(test);
}

static int fill_store(void *data)
{
	void *objects[2 * MAGAZINE];
	struct qmempool *pool = data;
	unsigned int n;

	local_bh_disable();
	n = qmempool_alloc_bulk_softirq(pool, GFP_ATOMIC, ARRAY_SIZE(objects), objects);
	qmempool_free_bulk_softirq(pool, n, objects);
	local_bh_enable();
	return n == ARRAY_SIZE(objects) ? 0 : -ENOMEM;
}

/* Memory reclaim reaches what other CPUs hold. */
static void qmempool_test_shrinker_other_cpu(struct kunit *test)
{
	struct pool_test *t = test->priv;
	struct shrinker *shrinker = t->pool->shrinker;
	struct shrink_control sc = { .gfp_mask = GFP_KERNEL, .nr_to_scan = 100 };
	unsigned int there = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());

	if (there >= nr_cpu_ids)
		kunit_skip(test, "there is one CPU only");
	KUNIT_ASSERT_EQ(test, smp_call_on_cpu(there, fill_store, t->pool, false), 0);
	KUNIT_EXPECT_EQ(test, held(t->pool), 2 * MAGAZINE);
	KUNIT_EXPECT_EQ(test, shrinker->count_objects(shrinker, &sc), 2 * MAGAZINE);
	/* It has to do that itself, and reclaim does not wait for it. */
	KUNIT_EXPECT_EQ(test, shrinker->scan_objects(shrinker, &sc), SHRINK_STOP);
	for (int i = 0; i < 1000 && held(t->pool); i++)
		fsleep(1000);
	KUNIT_EXPECT_EQ(test, held(t->pool), 0);
}

/* /proc/sys/vm/drop_caches reaches the pool. */
static void qmempool_test_drop_caches(struct kunit *test)
{
#if IS_BUILTIN(CONFIG_QMEMPOOL_KUNIT_TEST)
	struct pool_test *t = test->priv;

	fill_pool(test);
	drop_slab();
	KUNIT_EXPECT_EQ(test, held(t->pool), 0);
#else
	kunit_skip(test, "drop_slab() is not for modules");
#endif
}

/* A CPU that goes offline returns its objects. */
static void qmempool_test_cpu_dead(struct kunit *test)
{
	struct pool_test *t = test->priv;
	unsigned int cpu;

	fill_pool(test);
	local_bh_disable();
	/* This CPU has not stopped, but does not use the pool meanwhile. */
	for_each_possible_cpu(cpu)
		__qmempool_cpu_dead(t->pool, cpu);
	__qmempool_cpu_dead(t->pool, nr_cpu_ids);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, held(t->pool), MAGAZINE * DEPOT);
}

static struct kunit_case qmempool_test_cases[] = {
	KUNIT_CASE(qmempool_test_create),
	KUNIT_CASE(qmempool_test_refused_caches),
	KUNIT_CASE(qmempool_test_large_objects),
	KUNIT_CASE(qmempool_test_flags),
	KUNIT_CASE(qmempool_test_reserves),
#ifdef CONFIG_MEMCG
	KUNIT_CASE(qmempool_test_charged),
#endif
	KUNIT_CASE(qmempool_test_softirq),
	KUNIT_CASE(qmempool_test_process),
	KUNIT_CASE(qmempool_test_shortage),
	KUNIT_CASE(qmempool_test_attach),
	KUNIT_CASE(qmempool_test_shrinker),
	KUNIT_CASE(qmempool_test_shrinker_other_cpu),
	KUNIT_CASE(qmempool_test_drop_caches),
	KUNIT_CASE(qmempool_test_cpu_dead),
	{}
};

static struct kunit_suite qmempool_test_suite = {
	.name = "qmempool",
	.init = qmempool_test_init,
	.exit = qmempool_test_exit,
	.test_cases = qmempool_test_cases,
};

kunit_test_suite(qmempool_test_suite);

MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
MODULE_DESCRIPTION("KUnit tests of the C interface of qmempools");
MODULE_LICENSE("GPL");
