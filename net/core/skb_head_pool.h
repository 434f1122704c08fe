/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Between the NAPI caches of skb heads and the slab allocator: heads in bulk,
 * with CONFIG_SKB_HEAD_POOL through a pool that all CPUs share.
 *
 * For softirqs, or with bottom halves disabled.
 */
#ifndef _NET_CORE_SKB_HEAD_POOL_H
#define _NET_CORE_SKB_HEAD_POOL_H

#include <linux/slab.h>
#include <net/hotdata.h>

/* Returns the number of heads: @n, or 0 if there is no memory. */
static inline unsigned int skb_heads_alloc_slab(unsigned int n, void **heads)
{
	return kmem_cache_alloc_bulk(net_hotdata.skbuff_cache,
				     GFP_ATOMIC | __GFP_NOWARN, n, heads) ? n : 0;
}

static inline void skb_heads_free_slab(unsigned int n, void **heads)
{
	kmem_cache_free_bulk(net_hotdata.skbuff_cache, n, heads);
}

#ifdef CONFIG_SKB_HEAD_POOL
unsigned int skb_heads_alloc(unsigned int n, void **heads);
void skb_heads_free(unsigned int n, void **heads);
#else
#define skb_heads_alloc	skb_heads_alloc_slab
#define skb_heads_free	skb_heads_free_slab
#endif

#endif /* _NET_CORE_SKB_HEAD_POOL_H */
