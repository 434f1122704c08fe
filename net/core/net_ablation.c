// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters that turn mechanisms of drivers in Rust off: net_ablation.heads=1, or
 * /sys/module/net_ablation/parameters/heads at run time.
 */

#include <linux/kstrtox.h>
#include <linux/moduleparam.h>
#include <net/net_ablation.h>

struct net_ablation net_ablation;
EXPORT_SYMBOL_GPL(net_ablation);

static int net_ablation_set(const char *val, const struct kernel_param *kp)
{
	struct static_key_false *key = kp->arg;
	bool off;
	int err;

	err = kstrtobool(val, &off);
	if (err)
		return err;

	if (off)
		static_branch_enable(key);
	else
		static_branch_disable(key);
	return 0;
}

static int net_ablation_get(char *buffer, const struct kernel_param *kp)
{
	struct static_key_false *key = kp->arg;

	return sysfs_emit(buffer, "%d\n", static_key_enabled(key));
}

static const struct kernel_param_ops net_ablation_ops = {
	.set = net_ablation_set,
	.get = net_ablation_get,
};

module_param_cb(doorbells, &net_ablation_ops, &net_ablation.doorbells, 0644);
module_param_cb(fast, &net_ablation_ops, &net_ablation.fast, 0644);
module_param_cb(free, &net_ablation_ops, &net_ablation.free, 0644);
module_param_cb(gro, &net_ablation_ops, &net_ablation.gro, 0644);
module_param_cb(heads, &net_ablation_ops, &net_ablation.heads, 0644);
module_param_cb(lists, &net_ablation_ops, &net_ablation.lists, 0644);
module_param_cb(pages, &net_ablation_ops, &net_ablation.pages, 0644);
module_param_cb(recycle, &net_ablation_ops, &net_ablation.recycle, 0644);
module_param_cb(sheaves, &net_ablation_ops, &net_ablation.sheaves, 0644);
