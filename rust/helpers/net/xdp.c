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
