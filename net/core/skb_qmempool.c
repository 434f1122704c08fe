// SPDX-License-Identifier: GPL-2.0
/*
 * A pool through which the NAPI caches of CPUs exchange skb heads, and the
 * sysctl net.core.skb_qmempool that enables it.
 */

#include <linux/init.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/skb_qmempool.h>

/* The number of heads that a NAPI cache exchanges at once. */
#define SKB_QMEMPOOL_MAGAZINE	32
/* 1024 heads, 256 KiB: enough for two rings of 512 packets. */
#define SKB_QMEMPOOL_DEPOT	32

DEFINE_STATIC_KEY_FALSE(skb_qmempool_key);
struct qmempool *skb_qmempool __read_mostly;

static DEFINE_MUTEX(skb_qmempool_mutex);

static int skb_qmempool_switch(bool on)
{
	struct qmempool *pool = skb_qmempool;

	if (on == !!pool)
		return 0;

	if (on) {
		pool = qmempool_create("skb", net_hotdata.skbuff_cache,
				       SKB_QMEMPOOL_MAGAZINE,
				       SKB_QMEMPOOL_DEPOT);
		if (!pool)
			return -ENOMEM;
		/* Pairs with the address dependency in skb_qmempool_get(). */
		smp_store_release(&skb_qmempool, pool);
		static_branch_enable(&skb_qmempool_key);
	} else {
		static_branch_disable(&skb_qmempool_key);
		WRITE_ONCE(skb_qmempool, NULL);
		/* Users disable bottom halves, which RCU waits for. */
		synchronize_net();
		qmempool_destroy(pool);
	}
	return 0;
}

int skb_qmempool_set(bool on)
{
	int err;

	mutex_lock(&skb_qmempool_mutex);
	err = skb_qmempool_switch(on);
	mutex_unlock(&skb_qmempool_mutex);
	return err;
}
EXPORT_SYMBOL_GPL(skb_qmempool_set);

static int skb_qmempool_sysctl(const struct ctl_table *table, int write,
			       void *buffer, size_t *lenp, loff_t *ppos)
{
	int err, on;
	const struct ctl_table one = {
		.data	= &on,
		.maxlen	= sizeof(on),
		.extra1	= table->extra1,
		.extra2	= table->extra2,
	};

	mutex_lock(&skb_qmempool_mutex);
	on = !!skb_qmempool;
	err = proc_dointvec_minmax(&one, write, buffer, lenp, ppos);
	if (!err && write)
		err = skb_qmempool_switch(on);
	mutex_unlock(&skb_qmempool_mutex);
	return err;
}

static const struct ctl_table skb_qmempool_table[] = {
	{
		.procname	= "skb_qmempool",
		.maxlen		= sizeof(int),
		.mode		= 0644,
		.proc_handler	= skb_qmempool_sysctl,
		.extra1		= SYSCTL_ZERO,
		.extra2		= SYSCTL_ONE,
	},
};

static int __init skb_qmempool_init(void)
{
	if (!register_net_sysctl(&init_net, "net/core", skb_qmempool_table))
		return -ENOMEM;
	return 0;
}
late_initcall(skb_qmempool_init);
