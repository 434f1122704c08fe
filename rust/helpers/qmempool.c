// SPDX-License-Identifier: GPL-2.0

#include <linux/kasan.h>

__rust_helper bool rust_helper_kasan_mempool_poison_object(void *ptr)
{
	return kasan_mempool_poison_object(ptr);
}

__rust_helper void rust_helper_kasan_mempool_unpoison_object(void *ptr,
							     size_t size)
{
	kasan_mempool_unpoison_object(ptr, size);
}
