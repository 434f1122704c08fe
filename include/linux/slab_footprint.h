/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_SLAB_FOOTPRINT_H
#define _LINUX_SLAB_FOOTPRINT_H

#include <linux/types.h>

struct kmem_cache;

/**
 * struct kmem_cache_footprint - the memory that a cache takes
 * @slabs: number of slabs
 * @bytes: size of all slabs in bytes, if each has the preferred order
 * @objects: number of objects that are in use or in a sheaf
 */
struct kmem_cache_footprint {
	size_t slabs;
	size_t bytes;
	size_t objects;
};

#ifdef CONFIG_SLUB_DEBUG
bool kmem_cache_footprint(struct kmem_cache *s, struct kmem_cache_footprint *footprint);
#else
static inline bool kmem_cache_footprint(struct kmem_cache *s,
					struct kmem_cache_footprint *footprint)
{
	return false;
}
#endif

#endif /* _LINUX_SLAB_FOOTPRINT_H */
