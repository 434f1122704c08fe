// SPDX-License-Identifier: GPL-2.0

#include <linux/slab.h>

#include "../../mm/slab.h"

__rust_helper void *rust_helper_kmem_cache_alloc(struct kmem_cache *s,
						 gfp_t flags)
{
	return kmem_cache_alloc(s, flags);
}

__rust_helper bool rust_helper_kmem_cache_alloc_bulk(struct kmem_cache *s,
						     gfp_t flags, size_t size,
						     void **p)
{
	return kmem_cache_alloc_bulk(s, flags, size, p);
}

/* Slabs are only counted with CONFIG_SLUB_DEBUG. */
__rust_helper bool rust_helper_kmem_cache_footprint(struct kmem_cache *s,
						    size_t *slabs,
						    size_t *bytes,
						    size_t *objects)
{
#ifdef CONFIG_SLUB_DEBUG
	struct slabinfo info = {};

	get_slabinfo(s, &info);
	*slabs = info.num_slabs;
	*bytes = info.num_slabs << (info.cache_order + PAGE_SHIFT);
	*objects = info.active_objs;
	return true;
#else
	return false;
#endif
}
