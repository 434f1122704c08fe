// SPDX-License-Identifier: GPL-2.0

#include <linux/dma-mapping.h>
#include <linux/skbuff.h>

#ifdef CONFIG_NET

/*
 * dma_map_single() for memory that is known to be in the linear mapping: this
 * needs neither a check nor the detour through struct page.
 */
__rust_helper dma_addr_t rust_helper_dma_map_linear(struct device *dev, void *ptr,
						    size_t size,
						    enum dma_data_direction dir)
{
	debug_dma_map_single(dev, ptr, size);
	return dma_map_phys(dev, virt_to_phys(ptr), size, dir, 0);
}

__rust_helper dma_addr_t
rust_helper___skb_frag_dma_map(struct device *dev, const skb_frag_t *frag,
			       size_t offset, size_t size,
			       enum dma_data_direction dir)
{
	return __skb_frag_dma_map(dev, frag, offset, size, dir);
}

__rust_helper int rust_helper_dma_mapping_error(struct device *dev,
						dma_addr_t dma_addr)
{
	return dma_mapping_error(dev, dma_addr);
}

__rust_helper void rust_helper_dma_unmap_page(struct device *dev,
					      dma_addr_t addr, size_t size,
					      enum dma_data_direction dir)
{
	dma_unmap_page(dev, addr, size, dir);
}

/* dma_need_unmap() is out of line, or a constant. */
__rust_helper bool rust_helper_dma_unmap_needed(struct device *dev)
{
	return dma_need_unmap(dev);
}

__rust_helper bool rust_helper_skb_frags_readable(const struct sk_buff *skb)
{
	return skb_frags_readable(skb);
}

#endif
