// SPDX-License-Identifier: GPL-2.0

#include <linux/dma-mapping.h>
#include <linux/filter.h>
#include <net/xdp_sock_drv.h>

#include "../../../net/xdp/xdp_umem.h"
#include "../../../net/xdp/xsk_queue.h"

#ifdef CONFIG_PAGE_POOL

__rust_helper int rust_helper_xsk_pool_dma_map(struct xsk_buff_pool *pool,
					       struct device *dev,
					       unsigned long attrs)
{
	return xsk_pool_dma_map(pool, dev, attrs);
}

__rust_helper void rust_helper_xsk_pool_dma_unmap(struct xsk_buff_pool *pool,
						  unsigned long attrs)
{
	xsk_pool_dma_unmap(pool, attrs);
}

__rust_helper void rust_helper_xsk_pool_set_rxq_info(struct xsk_buff_pool *pool,
						     struct xdp_rxq_info *rxq)
{
	xsk_pool_set_rxq_info(pool, rxq);
}

__rust_helper u32
rust_helper_xsk_pool_get_rx_frame_size(struct xsk_buff_pool *pool)
{
	return xsk_pool_get_rx_frame_size(pool);
}

/*
 * That of a frame in several buffers, whose list is in the first one; 0 if the
 * user does not take such frames, or if there is no room.
 */
__rust_helper u32
rust_helper_xsk_pool_get_rx_part_size(struct xsk_buff_pool *pool)
{
#ifdef CONFIG_XDP_SOCKETS
	u32 size = __xsk_pool_get_rx_frame_size(pool);
	u32 tailroom = xsk_pool_get_tailroom(true);

	if (pool->umem->flags & XDP_UMEM_SG_FLAG && size > tailroom)
		return ALIGN_DOWN(size - tailroom, 128);
#endif
	return 0;
}

__rust_helper u32
rust_helper_xsk_pool_get_rx_frag_step(struct xsk_buff_pool *pool)
{
	return xsk_pool_get_rx_frag_step(pool);
}

__rust_helper bool
rust_helper_xsk_pool_has_tx_metadata(struct xsk_buff_pool *pool)
{
#ifdef CONFIG_XDP_SOCKETS
	return xp_tx_metadata_enabled(pool);
#else
	return false;
#endif
}

/* The number of descriptors that were taken from users, frames or not. */
__rust_helper u32 rust_helper_xsk_pool_tx_taken(struct xsk_buff_pool *pool)
{
	u32 taken = 0;

#ifdef CONFIG_XDP_SOCKETS
	struct xdp_sock *xs;

	rcu_read_lock();
	list_for_each_entry_rcu(xs, &pool->xsk_tx_list, tx_list)
		taken += xs->tx->cached_cons;
	rcu_read_unlock();
#endif
	return taken;
}

__rust_helper u32 rust_helper_xsk_buff_alloc_batch(struct xsk_buff_pool *pool,
						   struct xdp_buff **xdp, u32 max)
{
	return xsk_buff_alloc_batch(pool, xdp, max);
}

__rust_helper void rust_helper_xsk_buff_free(struct xdp_buff *xdp)
{
	xsk_buff_free(xdp);
}

__rust_helper void rust_helper_xsk_buff_set_size(struct xdp_buff *xdp, u32 size)
{
	xsk_buff_set_size(xdp, size);
}

__rust_helper dma_addr_t rust_helper_xsk_buff_xdp_get_dma(struct xdp_buff *xdp)
{
	return xsk_buff_xdp_get_dma(xdp);
}

__rust_helper void rust_helper_xsk_buff_dma_sync_for_cpu(struct xdp_buff *xdp)
{
	xsk_buff_dma_sync_for_cpu(xdp);
}

/*
 * As xsk_buff_add_frag(), which reads the number of fragments from the chunk:
 * the user may write there. This one is told that, and the bytes in all.
 */
__rust_helper void rust_helper_xsk_buff_put_frag(struct xdp_buff *head,
						 struct xdp_buff *xdp,
						 u32 number, u32 bytes)
{
#ifdef CONFIG_XDP_SOCKETS
	struct skb_shared_info *info = xdp_get_shared_info_from_buff(head);
	struct xdp_buff_xsk *frag = container_of(xdp, struct xdp_buff_xsk, xdp);

	__skb_fill_netmem_desc_noacc(info, number, virt_to_netmem(xdp->data),
				     offset_in_page(xdp->data),
				     xdp->data_end - xdp->data);
	info->nr_frags = number + 1;
	info->xdp_frags_size = bytes;
	info->xdp_frags_truesize = (number + 1) * xdp->frame_sz;
	xdp_buff_set_frags_flag(head);
	list_add_tail(&frag->list_node, &frag->pool->xskb_list);
#endif
}

/* Whether it is on a list: of a pool, or of a frame in several buffers. */
__rust_helper bool rust_helper_xsk_buff_is_listed(struct xdp_buff *xdp)
{
#ifdef CONFIG_XDP_SOCKETS
	struct xdp_buff_xsk *buff = container_of(xdp, struct xdp_buff_xsk, xdp);

	return !list_empty(&buff->list_node);
#else
	return false;
#endif
}

__rust_helper struct xdp_buff *
rust_helper_xsk_buff_get_frag(const struct xdp_buff *first)
{
	return xsk_buff_get_frag(first);
}

__rust_helper dma_addr_t
rust_helper_xsk_buff_raw_get_dma(struct xsk_buff_pool *pool, u64 addr)
{
	return xsk_buff_raw_get_dma(pool, addr);
}

__rust_helper struct xsk_tx_metadata *
rust_helper_xsk_buff_get_metadata(struct xsk_buff_pool *pool, u64 addr,
				  u32 options)
{
	return xsk_buff_get_metadata(pool, addr, options);
}

__rust_helper void
rust_helper_xsk_tx_metadata_request(const struct xsk_buff_pool *pool,
				    struct xsk_tx_metadata **pmeta,
				    const struct xsk_tx_metadata_ops *ops,
				    void *priv)
{
	xsk_tx_metadata_request(pool, pmeta, ops, priv);
}

__rust_helper void
rust_helper_xsk_buff_raw_dma_sync_for_device(struct xsk_buff_pool *pool,
					     dma_addr_t dma, size_t size)
{
	xsk_buff_raw_dma_sync_for_device(pool, dma, size);
}

__rust_helper struct bpf_redirect_info *rust_helper_bpf_net_ctx_get_ri(void)
{
	return bpf_net_ctx_get_ri();
}

#ifdef CONFIG_XDP_SOCKETS
__rust_helper void rust_helper_xdp_get_umem(struct xdp_umem *umem)
{
	xdp_get_umem(umem);
}

/*
 * A device is about to go, and leaves a mapping behind. Another one may get its
 * address, by which mappings are found.
 */
__rust_helper void rust_helper_xdp_umem_forget(struct xdp_umem *umem,
					       const struct net_device *dev)
{
	struct xsk_dma_map *map;

	list_for_each_entry(map, &umem->xsk_dma_list, list) {
		if (map->netdev == dev)
			map->netdev = NULL;
	}
}

__rust_helper void rust_helper_xdp_put_umem(struct xdp_umem *umem,
					    bool defer_cleanup)
{
	xdp_put_umem(umem, defer_cleanup);
}
#else
__rust_helper void rust_helper_xsk_tx_completed(struct xsk_buff_pool *pool,
						u32 nb_entries)
{
	xsk_tx_completed(pool, nb_entries);
}

__rust_helper u32
rust_helper_xsk_tx_peek_release_desc_batch(struct xsk_buff_pool *pool, u32 max)
{
	return xsk_tx_peek_release_desc_batch(pool, max);
}

__rust_helper void rust_helper_xsk_set_rx_need_wakeup(struct xsk_buff_pool *pool)
{
	xsk_set_rx_need_wakeup(pool);
}

__rust_helper void rust_helper_xsk_clear_rx_need_wakeup(struct xsk_buff_pool *pool)
{
	xsk_clear_rx_need_wakeup(pool);
}

__rust_helper void rust_helper_xsk_set_tx_need_wakeup(struct xsk_buff_pool *pool)
{
	xsk_set_tx_need_wakeup(pool);
}

__rust_helper void rust_helper_xsk_clear_tx_need_wakeup(struct xsk_buff_pool *pool)
{
	xsk_clear_tx_need_wakeup(pool);
}

__rust_helper bool rust_helper_xsk_uses_need_wakeup(struct xsk_buff_pool *pool)
{
	return xsk_uses_need_wakeup(pool);
}
#endif

#endif /* CONFIG_PAGE_POOL */
