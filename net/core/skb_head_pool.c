// SPDX-License-Identifier: GPL-2.0
/*
 * A pool of skb heads between the NAPI caches and the slab allocator.
 *
 * A head may have been allocated with any flags when it comes back, so those that
 * are charged, or from the reserves, do not stay in the pool.
 */

#include <linux/init.h>
#include <linux/qmempool.h>

#include "skb_head_pool.h"

/* As many heads as a NAPI cache gets or gives at once. */
#define SKB_HEAD_POOL_MAGAZINE	32
/* Heads of two rings of 512 packets. */
#define SKB_HEAD_POOL_DEPOT	32

static struct qmempool *skb_head_pool;

unsigned int skb_heads_alloc(unsigned int n, void **heads)
{
	/* Pairs with the release in skb_head_pool_init(). */
	struct qmempool *pool = smp_load_acquire(&skb_head_pool);

	if (likely(pool))
		return qmempool_alloc_bulk_softirq(pool, GFP_ATOMIC | __GFP_NOWARN,
						   n, heads);
	return skb_heads_alloc_slab(n, heads);
}

void skb_heads_free(unsigned int n, void **heads)
{
	/* As above. */
	struct qmempool *pool = smp_load_acquire(&skb_head_pool);

	if (likely(pool))
		qmempool_free_any_bulk_softirq(pool, n, heads);
	else
		skb_heads_free_slab(n, heads);
}

static int __init skb_head_pool_init(void)
{
	struct qmempool *pool;

	pool = qmempool_create("skb-heads", net_hotdata.skbuff_cache,
			       SKB_HEAD_POOL_MAGAZINE, SKB_HEAD_POOL_DEPOT);
	if (!pool)
		return -ENOMEM;
	/* CPUs that see it see its contents, too. */
	smp_store_release(&skb_head_pool, pool);
	return 0;
}
late_initcall(skb_head_pool_init);
