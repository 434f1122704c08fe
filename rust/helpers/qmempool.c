// SPDX-License-Identifier: GPL-2.0

#include <linux/kasan.h>
#include <linux/lockdep.h>
#include <linux/qmempool.h>

__rust_helper bool rust_helper_kasan_mempool_poison_object(void *ptr)
{
	return kasan_mempool_poison_object(ptr);
}

__rust_helper void rust_helper_kasan_mempool_unpoison_object(void *ptr,
							     size_t size)
{
	kasan_mempool_unpoison_object(ptr, size);
}

/* The context in which a CPU may use its part of a pool. */
__rust_helper void rust_helper_qmempool_assert_softirq(void)
{
	lockdep_assert_in_softirq();
}

__rust_helper gfp_t rust_helper_qmempool_gfp(gfp_t gfp)
{
	return qmempool_gfp(gfp);
}
