// SPDX-License-Identifier: GPL-2.0

#include <linux/build_bug.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/interrupt.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/busy_poll.h>
#include <net/gro.h>
#include <net/netdev_lock.h>
#include <net/netdev_queues.h>

#ifdef CONFIG_NET

/* Rust code has copies of these: bindgen does not evaluate BIT(). */
static_assert(ETHTOOL_OP_NEEDS_RTNL_SRINGPARAM == 1 << 2);
static_assert(ETHTOOL_OP_NEEDS_RTNL_SCHANNELS == 1 << 3);
static_assert(ETHTOOL_OP_NEEDS_RTNL_GLINK == 1 << 8);
static_assert(ETHTOOL_OP_NEEDS_RTNL_TEST == 1 << 9);
static_assert(ETHTOOL_COALESCE_RX_USECS == 1 << 0);
static_assert(ETHTOOL_COALESCE_USE_ADAPTIVE_RX == 1 << 9);

__rust_helper void *rust_helper_netdev_priv(const struct net_device *dev)
{
	return netdev_priv(dev);
}

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

__rust_helper bool rust_helper_netif_running(const struct net_device *dev)
{
	return netif_running(dev);
}

__rust_helper bool rust_helper_netif_carrier_ok(const struct net_device *dev)
{
	return netif_carrier_ok(dev);
}

__rust_helper void rust_helper_eth_hw_addr_set(struct net_device *dev,
					       const u8 *addr)
{
	eth_hw_addr_set(dev, addr);
}

__rust_helper void rust_helper_eth_hw_addr_random(struct net_device *dev)
{
	eth_hw_addr_random(dev);
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

__rust_helper netdev_features_t
rust_helper_vlan_features_check(struct sk_buff *skb, netdev_features_t features)
{
	return vlan_features_check(skb, features);
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

__rust_helper void rust_helper_netif_tx_disable(struct net_device *dev)
{
	netif_tx_disable(dev);
}

__rust_helper void rust_helper_netif_tx_wake_all_queues(struct net_device *dev)
{
	netif_tx_wake_all_queues(dev);
}

__rust_helper void rust_helper_dev_core_stats_tx_dropped_inc(struct net_device *dev)
{
	dev_core_stats_tx_dropped_inc(dev);
}

__rust_helper int rust_helper_dev_to_node(struct device *dev)
{
	return dev_to_node(dev);
}

__rust_helper const struct cpumask *rust_helper_cpumask_of(unsigned int cpu)
{
	return cpumask_of(cpu);
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

__rust_helper bool rust_helper_schedule_work(struct work_struct *work)
{
	return schedule_work(work);
}

/* Locks */

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

/* Transmit queues */

__rust_helper void rust_helper___netif_tx_lock_bh(struct netdev_queue *txq)
{
	__netif_tx_lock_bh(txq);
}

__rust_helper void rust_helper___netif_tx_unlock_bh(struct netdev_queue *txq)
{
	__netif_tx_unlock_bh(txq);
}

__rust_helper bool
rust_helper_netif_xmit_frozen_or_drv_stopped(const struct netdev_queue *txq)
{
	return netif_xmit_frozen_or_drv_stopped(txq);
}

__rust_helper netdev_tx_t
rust_helper_netdev_start_xmit(struct sk_buff *skb, struct net_device *dev,
			      struct netdev_queue *txq, bool more)
{
	return netdev_start_xmit(skb, dev, txq, more);
}

__rust_helper void rust_helper_skb_reset_mac_header(struct sk_buff *skb)
{
	skb_reset_mac_header(skb);
}

__rust_helper void rust_helper_skb_set_network_header(struct sk_buff *skb,
						      const int offset)
{
	skb_set_network_header(skb, offset);
}

__rust_helper bool rust_helper_netif_tx_owned(struct netdev_queue *txq)
{
	return netif_tx_owned(txq, smp_processor_id());
}

__rust_helper bool rust_helper_netif_tx_queue_stopped(const struct netdev_queue *txq)
{
	return netif_tx_queue_stopped(txq);
}

__rust_helper bool rust_helper_netif_xmit_stopped(const struct netdev_queue *txq)
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

/* NAPI */

__rust_helper void rust_helper_netdev_lock_ops_to_full(struct net_device *dev)
{
	netdev_lock_ops_to_full(dev);
}

__rust_helper void rust_helper_netdev_unlock_full_to_ops(struct net_device *dev)
{
	netdev_unlock_full_to_ops(dev);
}

__rust_helper void
rust_helper_netif_napi_add_config_locked(struct net_device *dev,
					 struct napi_struct *napi,
					 int (*poll)(struct napi_struct *, int),
					 int index)
{
	netif_napi_add_config_locked(dev, napi, poll, index);
}

__rust_helper void rust_helper_netif_napi_del_locked(struct napi_struct *napi)
{
	netif_napi_del_locked(napi);
}

__rust_helper int rust_helper_irq_set_affinity(unsigned int irq,
					       const struct cpumask *cpumask)
{
	return irq_set_affinity(irq, cpumask);
}

__rust_helper void rust_helper_netdev_lock(struct net_device *dev)
{
	netdev_lock(dev);
}

__rust_helper void rust_helper_netdev_unlock(struct net_device *dev)
{
	netdev_unlock(dev);
}

__rust_helper void rust_helper_dev_put(struct net_device *dev)
{
	dev_put(dev);
}

__rust_helper bool rust_helper_lockdep_rtnl_is_held(void)
{
	return lockdep_rtnl_is_held();
}

__rust_helper void rust_helper_napi_schedule(struct napi_struct *napi)
{
	napi_schedule(napi);
}

__rust_helper void rust_helper_napi_schedule_irqoff(struct napi_struct *napi)
{
	napi_schedule_irqoff(napi);
}

/* Reception */

/* For handlers of GRO: a packet goes on as it is, and at once. */
__rust_helper void rust_helper_skb_gro_pass(struct sk_buff *skb)
{
	NAPI_GRO_CB(skb)->flush |= 1;
}

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
