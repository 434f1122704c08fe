// SPDX-License-Identifier: GPL-2.0

#include <linux/slab.h>

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
