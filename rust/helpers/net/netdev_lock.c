// SPDX-License-Identifier: GPL-2.0

#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/netdev_lock.h>

#ifdef CONFIG_NET

__rust_helper void
rust_helper_netdev_assert_locked_ops_compat(const struct net_device *dev)
{
	netdev_assert_locked_ops_compat_or_invisible(dev);
}

/* For tests. With PREEMPT_RT, mutex_is_locked() is a macro. */
__rust_helper bool rust_helper_netdev_is_locked(struct net_device *dev)
{
	return mutex_is_locked(&dev->lock);
}

__rust_helper void rust_helper_netdev_lock_ops(struct net_device *dev)
{
	netdev_lock_ops(dev);
}

__rust_helper void rust_helper_netdev_unlock_ops(struct net_device *dev)
{
	netdev_unlock_ops(dev);
}

__rust_helper void rust_helper_netdev_lock_ops_to_full(struct net_device *dev)
{
	netdev_lock_ops_to_full(dev);
}

__rust_helper void rust_helper_netdev_unlock_full_to_ops(struct net_device *dev)
{
	netdev_unlock_full_to_ops(dev);
}

__rust_helper void rust_helper_netdev_lock(struct net_device *dev)
{
	netdev_lock(dev);
}

__rust_helper void rust_helper_netdev_unlock(struct net_device *dev)
{
	netdev_unlock(dev);
}

__rust_helper bool rust_helper_lockdep_rtnl_is_held(void)
{
	return lockdep_rtnl_is_held();
}

#endif
