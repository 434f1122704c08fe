/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mechanisms of drivers in Rust that a benchmark turns off.
 */
#ifndef _NET_NET_ABLATION_H
#define _NET_NET_ABLATION_H

#include <linux/jump_label.h>

/**
 * struct net_ablation - keys that are enabled while a mechanism is off
 * @doorbells: doorbells that are deferred to the end of a poll: one per packet instead
 * @fast: the test for skbs that are a page and a head, in napi_consume_skb_bulk()
 * @free: napi_consume_skb_bulk(): napi_consume_skb() for each packet instead
 * @gro: lists that GRO does not look at: napi_gro_receive() for each packet instead
 * @heads: napi_build_skb_list(): napi_build_skb() for each packet instead
 * @lists: the same lists: netif_receive_skb() for each of their packets instead
 * @pages: allocation of pages in bulk: one after the other instead
 * @recycle: return of pages in bulk, in napi_consume_skb_bulk(): one after the other
 * @sheaves: sheaves that kmem_cache_free_bulk() makes: the barn's empty ones only instead
 */
struct net_ablation {
	struct static_key_false doorbells;
	struct static_key_false fast;
	struct static_key_false free;
	struct static_key_false gro;
	struct static_key_false heads;
	struct static_key_false lists;
	struct static_key_false pages;
	struct static_key_false recycle;
	struct static_key_false sheaves;
};

extern struct net_ablation net_ablation;

#define net_ablation_is_off(mechanism) \
	(IS_ENABLED(CONFIG_NET_ABLATION) && \
	 static_branch_unlikely(&net_ablation.mechanism))

#endif /* _NET_NET_ABLATION_H */
