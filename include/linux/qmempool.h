/* SPDX-License-Identifier: GPL-2.0 */
/*
 * qmempool: per-CPU magazines of objects in front of a slab cache.
 *
 * See Documentation/rust/qmempool.rst.
 */
#ifndef _LINUX_QMEMPOOL_H
#define _LINUX_QMEMPOOL_H

#include <linux/bottom_half.h>
#include <linux/cache.h>
#include <linux/gfp.h>
#include <linux/kasan.h>
#include <linux/lockdep.h>
#include <linux/percpu.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/workqueue_types.h>

struct dentry;
struct shrinker;

/* With this many objects, a magazine is 512 bytes. */
#define QMEMPOOL_MAGAZINE_MAX	62
/* Maximum size of the objects in a magazine together. */
#define QMEMPOOL_MAGAZINE_BYTES	SZ_128K

/*
 * The per-CPU part of a pool. Only that CPU writes to it, with bottom halves
 * disabled; any CPU may read the object counts and the event counters.
 */
struct qmempool_cpu {
	/* The current magazine: its first @count slots hold objects. */
	void **slots;
	unsigned int count;
	/* Number of slots of a magazine. */
	unsigned int size;
	unsigned long hits;
	/* private: for the slow path. Full or empty, most of the time. */
	void *previous;
	unsigned int previous_count;
	unsigned long refills;
	unsigned long exchanges;
	unsigned long returns;
} ____cacheline_aligned;

/**
 * struct qmempool - a pool of objects
 * @cpu: magazines of each CPU
 * @cache: slab cache that the objects come from and return to
 * @object_size: size of an object
 *
 * Created by qmempool_create(). Other members are private.
 */
struct qmempool {
	struct qmempool_cpu __percpu *cpu;
	struct kmem_cache *cache;
	unsigned int object_size;
	/* private: */
	bool attached;
	struct hlist_node node;
	struct shrinker *shrinker;
	struct work_struct drain;
	struct dentry *dentry;
};

/**
 * struct qmempool_stats - statistics of a pool
 * @hits: allocations that the current magazine of a CPU served
 * @refills: number of times that a magazine was filled from the slab
 * @exchanges: number of times that a magazine was exchanged with the depot
 * @returns: number of times that a magazine was emptied to the slab
 * @held: objects in the pool
 * @bytes: memory of these objects, without the magazines
 */
struct qmempool_stats {
	unsigned long hits;
	unsigned long refills;
	unsigned long exchanges;
	unsigned long returns;
	unsigned long held;
	unsigned long bytes;
};

/**
 * qmempool_create() - create a pool in front of a slab cache
 * @name: name of the pool in debugfs
 * @cache: the slab cache; it outlives the pool
 * @magazine: number of objects in a magazine, 1 to QMEMPOOL_MAGAZINE_MAX, of
 *	      QMEMPOOL_MAGAZINE_BYTES together at most
 * @depot: number of magazines in the depot, with which CPUs exchange theirs
 *
 * A CPU keeps up to two magazines of unused objects, and the depot @depot more.
 *
 * Objects in a pool are given to anyone, without the slab. So a cache with a
 * constructor, with SLAB_ACCOUNT or with SLAB_TYPESAFE_BY_RCU is refused.
 *
 * Context: process context, may sleep.
 * Return: the pool, or NULL if there is no memory, @magazine is out of range,
 * the cache is refused, or @name or @cache is NULL.
 */
struct qmempool *qmempool_create(const char *name, struct kmem_cache *cache,
				 unsigned int magazine, unsigned int depot);

/**
 * qmempool_destroy() - destroy a pool
 * @pool: the pool, or NULL
 *
 * The objects in the pool return to the slab. Objects in use stay valid: they
 * are objects of the slab cache.
 *
 * Context: process context, may sleep. The pool must not be in use.
 */
void qmempool_destroy(struct qmempool *pool);

/**
 * qmempool_stats() - get statistics of a pool
 * @pool: the pool
 * @stats: where to write them
 *
 * The numbers are not a snapshot while the pool is in use.
 *
 * Context: any.
 */
void qmempool_stats(struct qmempool *pool, struct qmempool_stats *stats);

/*
 * The flags of an allocation that may end up in a pool: it is not charged to
 * anyone, and does not use the reserves for freeing memory, since the pool would
 * give it to anyone else.
 */
static inline gfp_t qmempool_gfp(gfp_t gfp)
{
	return (gfp | __GFP_NOMEMALLOC) & ~(__GFP_MEMALLOC | __GFP_ACCOUNT);
}

/* Slow paths: the current magazine is empty, or full. */
void *__qmempool_alloc(struct qmempool *pool, gfp_t gfp);
void __qmempool_free(struct qmempool *pool, void *object);

/**
 * qmempool_alloc_bulk_softirq() - allocate objects in softirq context
 * @pool: the pool
 * @gfp: flags for the slab; this never waits for memory
 * @n: number of objects
 * @objects: where to put them
 *
 * Context: softirq, or process context with bottom halves disabled.
 * Return: number of objects, less than @n if there is no more memory.
 */
unsigned int qmempool_alloc_bulk_softirq(struct qmempool *pool, gfp_t gfp,
					 unsigned int n, void **objects);

/**
 * qmempool_free_bulk_softirq() - free objects in softirq context
 * @pool: the pool
 * @n: number of objects
 * @objects: the objects, allocated from the pool
 *
 * Context: softirq, or process context with bottom halves disabled.
 */
void qmempool_free_bulk_softirq(struct qmempool *pool, unsigned int n,
				void **objects);

/**
 * qmempool_free_any_bulk_softirq() - free objects that were allocated without the pool
 * @pool: the pool
 * @n: number of objects
 * @objects: the objects, of the slab cache of the pool; scratch space afterwards
 *
 * The same as qmempool_free_bulk_softirq(), but objects that are charged to a memory
 * cgroup, or are from the reserves for freeing memory, go to the slab.
 *
 * Context: softirq, or process context with bottom halves disabled.
 */
void qmempool_free_any_bulk_softirq(struct qmempool *pool, unsigned int n,
				    void **objects);

/**
 * qmempool_alloc_softirq() - allocate an object in softirq context
 * @pool: the pool
 * @gfp: flags for the slab; this never waits for memory
 *
 * Context: softirq, or process context with bottom halves disabled.
 * Return: the object, or NULL if there is no memory.
 */
static __always_inline void *qmempool_alloc_softirq(struct qmempool *pool,
						    gfp_t gfp)
{
	struct qmempool_cpu *cpu;
	unsigned int count;
	void *object;

	lockdep_assert_in_softirq();
	cpu = this_cpu_ptr(pool->cpu);
	count = cpu->count;
	if (unlikely(!count))
		return __qmempool_alloc(pool, gfp);

	object = cpu->slots[--count];
	WRITE_ONCE(cpu->count, count);
	WRITE_ONCE(cpu->hits, cpu->hits + 1);
	kasan_mempool_unpoison_object(object, pool->object_size);
	if (unlikely(gfp & __GFP_ZERO))
		memset(object, 0, pool->object_size);
	return object;
}

/**
 * qmempool_free_softirq() - free an object in softirq context
 * @pool: the pool
 * @object: the object, allocated from the pool
 *
 * Context: softirq, or process context with bottom halves disabled.
 */
static __always_inline void qmempool_free_softirq(struct qmempool *pool,
						  void *object)
{
	struct qmempool_cpu *cpu;
	unsigned int count;

	lockdep_assert_in_softirq();
	cpu = this_cpu_ptr(pool->cpu);
	count = cpu->count;
	if (unlikely(count == cpu->size)) {
		__qmempool_free(pool, object);
		return;
	}
	if (unlikely(!kasan_mempool_poison_object(object)))
		return;

	cpu->slots[count] = object;
	WRITE_ONCE(cpu->count, count + 1);
}

/**
 * qmempool_alloc() - allocate an object
 * @pool: the pool
 * @gfp: flags for the slab
 *
 * Objects are not charged to a memory cgroup, and do not come from the reserves
 * for freeing memory, whatever @gfp says.
 *
 * Context: process or softirq context, with interrupts enabled. May sleep if
 * @gfp says so.
 * Return: the object, or NULL if there is no memory.
 */
static inline void *qmempool_alloc(struct qmempool *pool, gfp_t gfp)
{
	void *object;

	might_alloc(gfp);
	local_bh_disable();
	object = qmempool_alloc_softirq(pool, gfp);
	local_bh_enable();

	if (unlikely(!object) && gfpflags_allow_blocking(gfp))
		object = kmem_cache_alloc(pool->cache, qmempool_gfp(gfp));
	return object;
}

/**
 * qmempool_free() - free an object
 * @pool: the pool
 * @object: the object, allocated from the pool
 *
 * Context: process or softirq context, with interrupts enabled.
 */
static inline void qmempool_free(struct qmempool *pool, void *object)
{
	local_bh_disable();
	qmempool_free_softirq(pool, object);
	local_bh_enable();
}

/**
 * qmempool_alloc_bulk() - allocate objects
 * @pool: the pool
 * @gfp: flags for the slab; this never waits for memory
 * @n: number of objects
 * @objects: where to put them
 *
 * Context: process or softirq context, with interrupts enabled.
 * Return: number of objects, less than @n if there is no more memory.
 */
static inline unsigned int qmempool_alloc_bulk(struct qmempool *pool, gfp_t gfp,
					       unsigned int n, void **objects)
{
	local_bh_disable();
	n = qmempool_alloc_bulk_softirq(pool, gfp, n, objects);
	local_bh_enable();
	return n;
}

/**
 * qmempool_free_bulk() - free objects
 * @pool: the pool
 * @n: number of objects
 * @objects: the objects, allocated from the pool
 *
 * Context: process or softirq context, with interrupts enabled.
 */
static inline void qmempool_free_bulk(struct qmempool *pool, unsigned int n,
				      void **objects)
{
	local_bh_disable();
	qmempool_free_bulk_softirq(pool, n, objects);
	local_bh_enable();
}

/* Between the C part and the Rust part of the implementation. */
int __qmempool_attach(struct qmempool *pool, const char *name);
void __qmempool_detach(struct qmempool *pool);
void __qmempool_cpu_dead(struct qmempool *pool, unsigned int cpu);
bool __qmempool_accepts(struct kmem_cache *cache);
void __qmempool_drain(struct qmempool *pool);
unsigned long __qmempool_held(struct qmempool *pool, unsigned int cpu);
unsigned long __qmempool_count(struct qmempool *pool);
unsigned long __qmempool_shrink(struct qmempool *pool, unsigned long objects);

#if IS_ENABLED(CONFIG_QMEMPOOL_KUNIT_TEST)
/* Fault injection for tests. */
void __qmempool_shortage(struct kmem_cache *cache, unsigned long left);
#endif
#if IS_ENABLED(CONFIG_KUNIT)
struct shrinker *qmempool_shrinker_alloc(const char *name);
void qmempool_shrinker_free(struct shrinker *shrinker);
int qmempool_hp_add(struct qmempool *pool);
void qmempool_hp_remove(struct qmempool *pool);
#endif

#endif /* _LINUX_QMEMPOOL_H */
