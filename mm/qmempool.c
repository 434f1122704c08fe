// SPDX-License-Identifier: GPL-2.0
/*
 * qmempool: connects pools to CPU hotplug, memory reclaim and debugfs. The pool
 * itself is in rust/kernel/mm/qmempool/.
 */

#include <kunit/static_stub.h>
#include <kunit/visibility.h>
#include <linux/bottom_half.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/qmempool.h>
#include <linux/seq_file.h>
#include <linux/shrinker.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "slab.h"

static int qmempool_hp_state;
static struct dentry *qmempool_dir;

/* Runs on another CPU, after @cpu has stopped and before it can start again. */
static int qmempool_cpu_dead(unsigned int cpu, struct hlist_node *node)
{
	__qmempool_cpu_dead(hlist_entry(node, struct qmempool, node), cpu);
	return 0;
}

static int qmempool_drain_cpu(void *pool)
{
	local_bh_disable();
	__qmempool_drain(pool);
	local_bh_enable();
	return 0;
}

/* Frees what all CPUs hold. Each has to do that itself. */
static void qmempool_drain(struct work_struct *work)
{
	struct qmempool *pool = container_of(work, struct qmempool, drain);
	unsigned int cpu;

	cpus_read_lock();
	for_each_online_cpu(cpu) {
		if (__qmempool_held(pool, cpu))
			smp_call_on_cpu(cpu, qmempool_drain_cpu, pool, false);
	}
	cpus_read_unlock();
}

static unsigned long qmempool_shrink_count(struct shrinker *shrinker,
					   struct shrink_control *sc)
{
	return __qmempool_count(shrinker->private_data) ?: SHRINK_EMPTY;
}

static unsigned long qmempool_shrink_scan(struct shrinker *shrinker,
					  struct shrink_control *sc)
{
	struct qmempool *pool = shrinker->private_data;
	unsigned long freed = __qmempool_shrink(pool, sc->nr_to_scan);

	/* Reclaim cannot wait for the other CPUs, which may wait for memory. */
	if (freed < sc->nr_to_scan && __qmempool_count(pool))
		queue_work(system_dfl_wq, &pool->drain);
	return freed ?: SHRINK_STOP;
}

static int qmempool_show(struct seq_file *m, void *unused)
{
	struct qmempool_stats stats;

	qmempool_stats(m->private, &stats);
	seq_printf(m, "hits %lu\n", stats.hits);
	seq_printf(m, "refills %lu\n", stats.refills);
	seq_printf(m, "exchanges %lu\n", stats.exchanges);
	seq_printf(m, "returns %lu\n", stats.returns);
	seq_printf(m, "held %lu\n", stats.held);
	seq_printf(m, "bytes %lu\n", stats.bytes);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(qmempool);

/* Steps of attaching that can fail, and their reverse: tests replace them. */
VISIBLE_IF_KUNIT struct shrinker *qmempool_shrinker_alloc(const char *name)
{
	KUNIT_STATIC_STUB_REDIRECT(qmempool_shrinker_alloc, name);
	return shrinker_alloc(0, "qmempool-%s", name);
}
EXPORT_SYMBOL_IF_KUNIT(qmempool_shrinker_alloc);

VISIBLE_IF_KUNIT void qmempool_shrinker_free(struct shrinker *shrinker)
{
	KUNIT_STATIC_STUB_REDIRECT(qmempool_shrinker_free, shrinker);
	shrinker_free(shrinker);
}
EXPORT_SYMBOL_IF_KUNIT(qmempool_shrinker_free);

VISIBLE_IF_KUNIT int qmempool_hp_add(struct qmempool *pool)
{
	KUNIT_STATIC_STUB_REDIRECT(qmempool_hp_add, pool);
	return cpuhp_state_add_instance_nocalls(qmempool_hp_state, &pool->node);
}
EXPORT_SYMBOL_IF_KUNIT(qmempool_hp_add);

VISIBLE_IF_KUNIT void qmempool_hp_remove(struct qmempool *pool)
{
	KUNIT_STATIC_STUB_REDIRECT(qmempool_hp_remove, pool);
	cpuhp_state_remove_instance_nocalls(qmempool_hp_state, &pool->node);
}
EXPORT_SYMBOL_IF_KUNIT(qmempool_hp_remove);

/*
 * A pool keeps objects and gives them to anyone. So they must not be charged to
 * their first user, must not have readers after they were freed, and need no
 * constructor.
 */
bool __qmempool_accepts(struct kmem_cache *cache)
{
	return !cache->ctor &&
	       !(cache->flags & (SLAB_ACCOUNT | SLAB_TYPESAFE_BY_RCU));
}

void qmempool_free_any_bulk_softirq(struct qmempool *pool, unsigned int n,
				    void **objects)
{
	unsigned int i, kept = 0;

	for (i = 0; i < n; i++) {
		if (likely(slab_object_for_anyone(objects[i]))) {
			swap(objects[kept], objects[i]);
			kept++;
		}
	}
	qmempool_free_bulk_softirq(pool, kept, objects);
	if (unlikely(kept < n))
		kmem_cache_free_bulk(pool->cache, n - kept, objects + kept);
}
EXPORT_SYMBOL_GPL(qmempool_free_any_bulk_softirq);

int __qmempool_attach(struct qmempool *pool, const char *name)
{
	int err;

	if (unlikely(!qmempool_hp_state))
		return -ENODEV;

	pool->shrinker = qmempool_shrinker_alloc(name);
	if (!pool->shrinker)
		return -ENOMEM;

	err = qmempool_hp_add(pool);
	if (err) {
		qmempool_shrinker_free(pool->shrinker);
		return err;
	}

	INIT_WORK(&pool->drain, qmempool_drain);
	pool->shrinker->count_objects = qmempool_shrink_count;
	pool->shrinker->scan_objects = qmempool_shrink_scan;
	pool->shrinker->private_data = pool;
	shrinker_register(pool->shrinker);

	pool->dentry = debugfs_create_file(name, 0444, qmempool_dir, pool,
					   &qmempool_fops);
	return 0;
}

/* After this, no callback above runs or will run for @pool. */
void __qmempool_detach(struct qmempool *pool)
{
	debugfs_remove(pool->dentry);
	qmempool_shrinker_free(pool->shrinker);
	cancel_work_sync(&pool->drain);
	qmempool_hp_remove(pool);
}

static int __init qmempool_init(void)
{
	int state;

	/* Teardown of these states runs on another CPU than the dead one. */
	state = cpuhp_setup_state_multi(CPUHP_BP_PREPARE_DYN, "mm/qmempool:dead",
					NULL, qmempool_cpu_dead);
	if (state < 0)
		return state;

	qmempool_hp_state = state;
	qmempool_dir = debugfs_create_dir("qmempool", NULL);
	return 0;
}
postcore_initcall(qmempool_init);
