// SPDX-License-Identifier: GPL-2.0

#include <linux/dma-mapping.h>
#include <linux/skbuff.h>

#ifdef CONFIG_NET

__rust_helper void rust_helper_debug_dma_map_single(struct device *dev,
						    const void *addr,
						    unsigned long len)
{
	debug_dma_map_single(dev, addr, len);
}

__rust_helper phys_addr_t rust_helper_virt_to_phys(void *address)
{
	return virt_to_phys(address);
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

__rust_helper bool rust_helper_dma_need_unmap(struct device *dev)
{
	return dma_need_unmap(dev);
}

__rust_helper bool rust_helper_skb_frags_readable(const struct sk_buff *skb)
{
	return skb_frags_readable(skb);
}

#endif
