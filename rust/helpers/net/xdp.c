// SPDX-License-Identifier: GPL-2.0

#include <linux/bpf_trace.h>
#include <linux/dma-mapping.h>
#include <linux/filter.h>
#include <net/xdp.h>

#ifdef CONFIG_PAGE_POOL

__rust_helper u32 rust_helper_bpf_prog_run_xdp(const struct bpf_prog *prog,
					       struct xdp_buff *xdp)
{
	return bpf_prog_run_xdp(prog, xdp);
}

__rust_helper void rust_helper_xdp_init_buff(struct xdp_buff *xdp, u32 frame_sz,
					     struct xdp_rxq_info *rxq)
{
	xdp_init_buff(xdp, frame_sz, rxq);
}

__rust_helper struct xdp_frame *
rust_helper_xdp_convert_buff_to_frame(struct xdp_buff *xdp)
{
	return xdp_convert_buff_to_frame(xdp);
}

__rust_helper int rust_helper_xdp_ok_fwd_dev(const struct net_device *fwd,
					     unsigned int pktlen)
{
	return xdp_ok_fwd_dev(fwd, pktlen);
}

__rust_helper bool rust_helper_xdp_buff_add_frag(struct xdp_buff *xdp,
						 netmem_ref netmem, u32 offset,
						 u32 size, u32 truesize)
{
	return xdp_buff_add_frag(xdp, netmem, offset, size, truesize);
}

__rust_helper struct skb_shared_info *
rust_helper_xdp_get_shared_info_from_buff(const struct xdp_buff *xdp)
{
	return xdp_get_shared_info_from_buff(xdp);
}

__rust_helper struct skb_shared_info *
rust_helper_xdp_get_shared_info_from_frame(const struct xdp_frame *frame)
{
	return xdp_get_shared_info_from_frame(frame);
}

__rust_helper void
rust_helper_xdp_update_skb_frags_info(struct sk_buff *skb, u8 nr_frags,
				      unsigned int size, unsigned int truesize,
				      u32 xdp_flags)
{
	xdp_update_skb_frags_info(skb, nr_frags, size, truesize, xdp_flags);
}

__rust_helper struct page *rust_helper_skb_frag_page(const skb_frag_t *frag)
{
	return skb_frag_page(frag);
}

__rust_helper void rust_helper_skb_metadata_set(struct sk_buff *skb, u8 meta_len)
{
	skb_metadata_set(skb, meta_len);
}

__rust_helper void rust_helper_trace_xdp_exception(const struct net_device *dev,
						   const struct bpf_prog *xdp,
						   u32 act)
{
	trace_xdp_exception(dev, xdp, act);
}

__rust_helper void
rust_helper_dma_sync_single_for_device(struct device *dev, dma_addr_t addr,
				       size_t size, enum dma_data_direction dir)
{
	dma_sync_single_for_device(dev, addr, size, dir);
}

__rust_helper bool rust_helper_page_is_pfmemalloc(const struct page *page)
{
	return page_is_pfmemalloc(page);
}

#ifndef CONFIG_BPF_SYSCALL
__rust_helper void rust_helper_bpf_prog_put(struct bpf_prog *prog)
{
	bpf_prog_put(prog);
}
#endif

#endif /* CONFIG_PAGE_POOL */
