// SPDX-License-Identifier: GPL-2.0

#include <linux/netdevice.h>
#include <net/busy_poll.h>
#include <net/gro.h>

#ifdef CONFIG_NET

__rust_helper bool rust_helper_netif_elide_gro(const struct net_device *dev)
{
	return netif_elide_gro(dev);
}

__rust_helper bool rust_helper_udp_gro_wanted(const struct net_device *dev)
{
	return IS_ENABLED(CONFIG_INET) && udp_gro_wanted(dev);
}

__rust_helper void rust_helper_skb_mark_napi_id(struct sk_buff *skb,
						struct napi_struct *napi)
{
	skb_mark_napi_id(skb, napi);
}

__rust_helper void rust_helper_gro_normal_splice(struct gro_node *gro,
						 struct list_head *list,
						 unsigned int segs)
{
	gro_normal_splice(gro, list, segs);
}

__rust_helper void rust_helper_gro_normal_receive_list(struct gro_node *gro,
						       struct list_head *list)
{
	gro_normal_receive_list(gro, list);
}

#endif
