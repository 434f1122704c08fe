/* SPDX-License-Identifier: GPL-2.0 */
/* Where the NAPI cache of skb heads gets more of them, and puts its surplus. */
#ifndef _NET_SKB_QMEMPOOL_H
#define _NET_SKB_QMEMPOOL_H

#include <linux/errno.h>
#include <linux/jump_label.h>
#include <linux/qmempool.h>
#include <linux/slab.h>
#include <net/hotdata.h>

#ifdef CONFIG_SKB_QMEMPOOL

DECLARE_STATIC_KEY_FALSE(skb_qmempool_key);
extern struct qmempool *skb_qmempool;

/**
 * skb_qmempool_set() - put the pool between NAPI caches and slab, or take it out
 * @on: which of the two
 *
 * Does the same as writing to the sysctl net.core.skb_qmempool.
 *
 * Context: process context, may sleep.
 * Return: 0, or -ENOMEM.
 */
int skb_qmempool_set(bool on);

static inline bool skb_qmempool_enabled(void)
{
	return static_branch_unlikely(&skb_qmempool_key);
}

/*
 * The pool, or NULL. It is there as long as bottom halves stay disabled.
 *
 * The key does not order anything where code is not patched, so the pointer is
 * looked at as well. What it points to depends on it.
 */
static inline struct qmempool *skb_qmempool_get(void)
{
	return skb_qmempool_enabled() ? READ_ONCE(skb_qmempool) : NULL;
}

#else

static inline bool skb_qmempool_enabled(void)
{
	return false;
}

static inline struct qmempool *skb_qmempool_get(void)
{
	return NULL;
}

static inline int skb_qmempool_set(bool on)
{
	return on ? -EOPNOTSUPP : 0;
}

#endif

/* Gets up to @n skb heads, and returns how many. The slab gives all or none. */
static inline unsigned int skb_heads_alloc(gfp_t gfp, unsigned int n,
					   void **heads)
{
	struct qmempool *pool = skb_qmempool_get();

	if (pool)
		return qmempool_alloc_bulk_softirq(pool, gfp, n, heads);

	return kmem_cache_alloc_bulk(net_hotdata.skbuff_cache, gfp, n, heads) ?
	       n : 0;
}

/* Gives @n skb heads back, which KASAN takes for being in use. */
static inline void skb_heads_free(unsigned int n, void **heads)
{
	struct qmempool *pool = skb_qmempool_get();

	if (pool)
		qmempool_free_bulk_softirq(pool, n, heads);
	else
		kmem_cache_free_bulk(net_hotdata.skbuff_cache, n, heads);
}

#endif
