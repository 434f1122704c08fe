// SPDX-License-Identifier: GPL-2.0

#include <linux/build_bug.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/workqueue.h>

#ifdef CONFIG_NET

/* Rust code has copies of these: bindgen does not evaluate BIT(). */
static_assert(ETHTOOL_OP_NEEDS_RTNL_SRINGPARAM == 1 << 2);
static_assert(ETHTOOL_OP_NEEDS_RTNL_SCHANNELS == 1 << 3);
static_assert(ETHTOOL_OP_NEEDS_RTNL_GLINK == 1 << 8);
static_assert(ETHTOOL_OP_NEEDS_RTNL_TEST == 1 << 9);
static_assert(ETHTOOL_COALESCE_RX_USECS == 1 << 0);
static_assert(ETHTOOL_COALESCE_USE_ADAPTIVE_RX == 1 << 9);

__rust_helper void rust_helper_eth_hw_addr_set(struct net_device *dev,
					       const u8 *addr)
{
	eth_hw_addr_set(dev, addr);
}

__rust_helper void rust_helper_netdev_add_priv_flags(struct net_device *dev,
						     unsigned int flags)
{
	dev->priv_flags |= flags;
}

__rust_helper bool
rust_helper_netif_is_rxfh_configured(const struct net_device *dev)
{
	return netif_is_rxfh_configured(dev);
}

/* Then DSA has replaced the ethtool operations by its own, which call those. */
__rust_helper bool
rust_helper_netdev_is_dsa_conduit(const struct net_device *dev)
{
#if IS_ENABLED(CONFIG_NET_DSA)
	return dev->dsa_ptr;
#else
	return false;
#endif
}

__rust_helper bool rust_helper_schedule_work(struct work_struct *work)
{
	return schedule_work(work);
}

#endif
