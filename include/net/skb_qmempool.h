/* SPDX-License-Identifier: GPL-2.0 */
/* The pool behind the NAPI caches of skb heads. */
#ifndef _NET_SKB_QMEMPOOL_H
#define _NET_SKB_QMEMPOOL_H

#include <linux/errno.h>
#include <linux/jump_label.h>
#include <linux/qmempool.h>
#include <linux/slab.h>
#include <net/hotdata.h>
#include <net/sock.h>

#ifdef CONFIG_SKB_QMEMPOOL

DECLARE_STATIC_KEY_FALSE(skb_qmempool_key);
extern struct qmempool *skb_qmempool;

/**
 * skb_qmempool_set() - enable or disable the pool between NAPI caches and slab
 * @on: whether to enable it
 *
 * The same as writing to the sysctl net.core.skb_qmempool.
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
 * Returns the pool, or NULL. It stays valid while bottom halves are disabled.
 *
 * Without jump label patching, the key provides no ordering, so check the
 * pointer as well: accesses through it depend on it.
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

/* Returns the number of allocated skb heads. The slab gives all @n or none. */
static inline unsigned int skb_heads_alloc(gfp_t gfp, unsigned int n,
					   void **heads)
{
	struct qmempool *pool = skb_qmempool_get();

	if (pool)
		return qmempool_alloc_bulk_softirq(pool, gfp, n, heads);

	return kmem_cache_alloc_bulk(net_hotdata.skbuff_cache, gfp, n, heads) ?
	       n : 0;
}

/*
 * Frees @n skb heads, which must not be poisoned for KASAN. With sockets that free
 * memory, some may come from the reserves for that, to which the slab returns them.
 */
static inline void skb_heads_free(unsigned int n, void **heads)
{
	struct qmempool *pool = skb_qmempool_get();

	if (pool && !sk_memalloc_socks())
		qmempool_free_bulk_softirq(pool, n, heads);
	else
		kmem_cache_free_bulk(net_hotdata.skbuff_cache, n, heads);
}

#endif
