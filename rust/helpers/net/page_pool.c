// SPDX-License-Identifier: GPL-2.0

#include <linux/build_bug.h>
#include <linux/prefetch.h>
#include <linux/skbuff.h>
#include <net/page_pool/helpers.h>

#ifdef CONFIG_PAGE_POOL
/* Rust code has copies of these: bindgen does not evaluate BIT(). */
static_assert(PP_FLAG_DMA_MAP == 1 << 0);
static_assert(PP_FLAG_DMA_SYNC_DEV == 1 << 1);

__rust_helper struct page *
rust_helper_page_pool_dev_alloc_frag(struct page_pool *pool, unsigned int *offset,
				     unsigned int size)
{
	return page_pool_dev_alloc_frag(pool, offset, size);
}

__rust_helper void rust_helper_page_pool_fragment_page(struct page *page,
						       long nr)
{
	page_pool_fragment_page(page, nr);
}

__rust_helper void rust_helper_page_pool_put_full_page(struct page_pool *pool,
						       struct page *page,
						       bool allow_direct)
{
	page_pool_put_full_page(pool, page, allow_direct);
}

__rust_helper struct netmem_desc *
rust_helper_pp_page_to_nmdesc(struct page *page)
{
	return pp_page_to_nmdesc(page);
}

__rust_helper void
rust_helper_page_pool_dma_sync_netmem_for_cpu(const struct page_pool *pool,
					      const netmem_ref netmem,
					      u32 offset, u32 dma_sync_size)
{
	page_pool_dma_sync_netmem_for_cpu(pool, netmem, offset, dma_sync_size);
}

__rust_helper bool rust_helper_dma_dev_need_sync(const struct device *dev)
{
	return dma_dev_need_sync(dev);
}

__rust_helper netmem_ref rust_helper_page_to_netmem(struct page *page)
{
	return page_to_netmem(page);
}
#endif /* CONFIG_PAGE_POOL */

__rust_helper void *rust_helper_page_address(const struct page *page)
{
	return page_address(page);
}

__rust_helper void rust_helper_net_prefetch(void *p)
{
	net_prefetch(p);
}

__rust_helper void rust_helper_skb_set_tail_pointer(struct sk_buff *skb,
						    const int offset)
{
	skb_set_tail_pointer(skb, offset);
}

__rust_helper void rust_helper_skb_mark_for_recycle(struct sk_buff *skb)
{
	skb_mark_for_recycle(skb);
}

__rust_helper bool rust_helper_skb_pp_recycle(const struct sk_buff *skb)
{
	return skb->pp_recycle;
}

__rust_helper void rust_helper_skb_add_rx_frag(struct sk_buff *skb, int i,
					       struct page *page, int off,
					       int size, unsigned int truesize)
{
	skb_add_rx_frag(skb, i, page, off, size, truesize);
}

/* For tests */

__rust_helper struct page *rust_helper_virt_to_page(const void *address)
{
	return virt_to_page(address);
}

__rust_helper void rust_helper_get_page(struct page *page)
{
	get_page(page);
}

__rust_helper void rust_helper_put_page(struct page *page)
{
	put_page(page);
}

__rust_helper int rust_helper_page_count(const struct page *page)
{
	return page_count(page);
}
