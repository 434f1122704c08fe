// SPDX-License-Identifier: GPL-2.0

#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <net/netdev_queues.h>

#ifdef CONFIG_NET

__rust_helper struct netdev_queue *
rust_helper_netdev_get_tx_queue(const struct net_device *dev,
				unsigned int index)
{
	return netdev_get_tx_queue(dev, index);
}

__rust_helper bool rust_helper_netdev_xmit_more(void)
{
	return netdev_xmit_more();
}

__rust_helper netdev_features_t
rust_helper_vlan_features_check(struct sk_buff *skb, netdev_features_t features)
{
	return vlan_features_check(skb, features);
}

__rust_helper void rust_helper_netif_tx_disable(struct net_device *dev)
{
	netif_tx_disable(dev);
}

__rust_helper void rust_helper_netif_tx_wake_all_queues(struct net_device *dev)
{
	netif_tx_wake_all_queues(dev);
}

__rust_helper void
rust_helper_dev_core_stats_tx_dropped_inc(struct net_device *dev)
{
	dev_core_stats_tx_dropped_inc(dev);
}

__rust_helper const struct cpumask *rust_helper_cpumask_of(unsigned int cpu)
{
	return cpumask_of(cpu);
}

/* An inline function in a kernel for one processor. */
__rust_helper unsigned int rust_helper_cpumask_local_spread(unsigned int i,
							    int node)
{
	return cpumask_local_spread(i, node);
}

__rust_helper int rust_helper_netif_set_xps_queue(struct net_device *dev,
						  const struct cpumask *mask,
						  u16 index)
{
	return netif_set_xps_queue(dev, mask, index);
}

__rust_helper unsigned int rust_helper_num_online_cpus(void)
{
	return num_online_cpus();
}

__rust_helper void rust_helper___netif_tx_lock_bh(struct netdev_queue *txq)
{
	__netif_tx_lock_bh(txq);
}

__rust_helper void rust_helper___netif_tx_unlock_bh(struct netdev_queue *txq)
{
	__netif_tx_unlock_bh(txq);
}

__rust_helper bool rust_helper_netif_tx_owned(struct netdev_queue *txq)
{
	return netif_tx_owned(txq, smp_processor_id());
}

__rust_helper bool
rust_helper_netif_tx_queue_stopped(const struct netdev_queue *txq)
{
	return netif_tx_queue_stopped(txq);
}

__rust_helper bool
rust_helper_netif_xmit_stopped(const struct netdev_queue *txq)
{
	return netif_xmit_stopped(txq);
}

__rust_helper void rust_helper_netif_tx_stop_queue(struct netdev_queue *txq)
{
	netif_tx_stop_queue(txq);
}

__rust_helper void rust_helper_netif_tx_start_queue(struct netdev_queue *txq)
{
	netif_tx_start_queue(txq);
}

__rust_helper bool rust_helper___netdev_tx_sent_queue(struct netdev_queue *txq,
						      unsigned int bytes,
						      bool xmit_more)
{
	return __netdev_tx_sent_queue(txq, bytes, xmit_more);
}

__rust_helper void
rust_helper_netdev_queue_set_dql_min_limit(struct netdev_queue *txq,
					   unsigned int min_limit)
{
	netdev_queue_set_dql_min_limit(txq, min_limit);
}

__rust_helper void rust_helper_netdev_tx_reset_queue(struct netdev_queue *txq)
{
	netdev_tx_reset_queue(txq);
}

__rust_helper void
rust_helper_netdev_txq_completed_mb(struct netdev_queue *dev_queue,
				    unsigned int pkts, unsigned int bytes)
{
	netdev_txq_completed_mb(dev_queue, pkts, bytes);
}

#endif
