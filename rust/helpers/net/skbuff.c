// SPDX-License-Identifier: GPL-2.0

#include <linux/skbuff.h>

#ifdef CONFIG_NET

__rust_helper struct sk_buff *rust_helper_alloc_skb(unsigned int size,
						    gfp_t priority)
{
	return alloc_skb(size, priority);
}

__rust_helper struct sk_buff *rust_helper_skb_get(struct sk_buff *skb)
{
	return skb_get(skb);
}

__rust_helper int rust_helper_skb_tailroom(const struct sk_buff *skb)
{
	return skb_tailroom(skb);
}

__rust_helper int rust_helper___skb_put_padto(struct sk_buff *skb,
					      unsigned int len,
					      bool free_on_error)
{
	return __skb_put_padto(skb, len, free_on_error);
}

__rust_helper int rust_helper_skb_unclone(struct sk_buff *skb, gfp_t priority)
{
	return skb_unclone(skb, priority);
}

__rust_helper int rust_helper_skb_cow_head(struct sk_buff *skb,
					   unsigned int headroom)
{
	return skb_cow_head(skb, headroom);
}

__rust_helper int rust_helper_skb_orphan_frags(struct sk_buff *skb,
					       gfp_t priority)
{
	return skb_orphan_frags(skb, priority);
}

__rust_helper void rust_helper_skb_forward_csum(struct sk_buff *skb)
{
	skb_forward_csum(skb);
}

__rust_helper void rust_helper_skb_orphan(struct sk_buff *skb)
{
	skb_orphan(skb);
}

__rust_helper void rust_helper___skb_set_hash(struct sk_buff *skb, u32 hash,
					      bool is_sw, bool is_l4)
{
	__skb_set_hash(skb, hash, is_sw, is_l4);
}

#endif
