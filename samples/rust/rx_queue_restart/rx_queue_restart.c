// SPDX-License-Identifier: GPL-2.0
/*
 * Restarts a receive queue of a network device when it is loaded.
 *
 * The device is one of the network namespace of the task that loads the module,
 * and may have any driver with queue management. The result is that of loading
 * the module. Drivers in Rust have no such function: it waits for a lock that
 * the core holds while it waits for their callbacks.
 */

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <net/netdev_lock.h>
#include <net/netdev_queues.h>
#include <net/netdev_rx_queue.h>

static int ifindex;
module_param(ifindex, int, 0444);
MODULE_PARM_DESC(ifindex, "Index of the network device");

static unsigned int queue;
module_param(queue, uint, 0444);
MODULE_PARM_DESC(queue, "Number of the receive queue");

static int restart(struct net_device *dev)
{
	if (dev->reg_state != NETREG_REGISTERED)
		return -ENODEV;
	if (!dev->queue_mgmt_ops)
		return -EOPNOTSUPP;
	if (queue >= dev->real_num_rx_queues)
		return -ERANGE;
	return netdev_rx_queue_restart(dev, queue);
}

static int __init rx_queue_restart_init(void)
{
	struct net_device *dev;
	int err;

	dev = dev_get_by_index(current->nsproxy->net_ns, ifindex);
	if (!dev)
		return -ENODEV;

	netdev_lock(dev);
	err = restart(dev);
	netdev_unlock(dev);
	dev_put(dev);
	return err;
}
module_init(rx_queue_restart_init);

/* The work is done when the module has been loaded. */
static void __exit rx_queue_restart_exit(void)
{
}
module_exit(rx_queue_restart_exit);

MODULE_AUTHOR("The skbulk authors");
MODULE_DESCRIPTION("Restart of a receive queue");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("NETDEV_INTERNAL");
