// SPDX-License-Identifier: GPL-2.0

#include <linux/slab.h>
#include <linux/slab_footprint.h>

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

__rust_helper bool rust_helper_kmem_cache_footprint(struct kmem_cache *s,
						    size_t *slabs,
						    size_t *bytes,
						    size_t *objects)
{
	struct kmem_cache_footprint footprint = {};
	bool known = kmem_cache_footprint(s, &footprint);

	*slabs = footprint.slabs;
	*bytes = footprint.bytes;
	*objects = footprint.objects;
	return known;
}
