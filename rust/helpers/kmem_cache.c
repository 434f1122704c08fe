// SPDX-License-Identifier: GPL-2.0

#include <linux/irqflags.h>
#include <linux/slab.h>

__rust_helper struct kmem_cache *
rust_helper_kmem_cache_create_typed(const char *name, unsigned int size,
				    unsigned int align,
				    unsigned int sheaf_capacity)
{
	struct kmem_cache_args args = {
		.align = align,
		.sheaf_capacity = sheaf_capacity,
	};

	/* A merged cache would keep the capacity of the cache it was merged into. */
	return kmem_cache_create(name, size, &args, SLAB_NO_MERGE);
}

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

__rust_helper bool rust_helper_irqs_disabled(void)
{
	return irqs_disabled();
}
