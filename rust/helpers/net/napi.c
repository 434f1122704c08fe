// SPDX-License-Identifier: GPL-2.0

#include <linux/interrupt.h>
#include <linux/netdevice.h>
#include <net/netdev_lock.h>

#ifdef CONFIG_NET

__rust_helper int rust_helper_dev_to_node(struct device *dev)
{
	return dev_to_node(dev);
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

__rust_helper void rust_helper_napi_schedule(struct napi_struct *napi)
{
	napi_schedule(napi);
}

__rust_helper void rust_helper_napi_schedule_irqoff(struct napi_struct *napi)
{
	napi_schedule_irqoff(napi);
}

#endif
