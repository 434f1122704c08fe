// SPDX-License-Identifier: GPL-2.0
/*
 * Requests of users of a network card. Each kind is made once; whether the
 * driver grants it does not matter.
 */
#include <linux/delay.h>
#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/pm.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/netdev_lock.h>

#include "pci_card.h"

/* Bytes of a module's page that are read: drivers read some at a time, each by many accesses. */
#define MODULE_BYTES	32

static void ask_link(struct net_device *dev)
{
	const struct ethtool_ops *ops = dev->ethtool_ops;
	struct kernel_ethtool_ts_info time = {};
	struct ethtool_link_ksettings link = {};
	struct ethtool_pauseparam pause = {};
	struct ethtool_drvinfo info = {};
	struct ethtool_fecparam fec = {};
	struct ethtool_wolinfo wol = {};
	struct ethtool_keee eee = {};

	if (ops->get_drvinfo)
		ops->get_drvinfo(dev, &info);
	if (ops->get_wol)
		ops->get_wol(dev, &wol);
	if (ops->get_fecparam)
		ops->get_fecparam(dev, &fec);
	if (ops->get_eee)
		ops->get_eee(dev, &eee);
	if (ops->get_ts_info)
		ops->get_ts_info(dev, &time);
	if (ops->get_link)
		ops->get_link(dev);
	if (ops->get_link_ksettings && !ops->get_link_ksettings(dev, &link) &&
	    ops->set_link_ksettings)
		ops->set_link_ksettings(dev, &link);
	if (ops->get_pauseparam)
		ops->get_pauseparam(dev, &pause);
	if (ops->set_pauseparam) {
		pause.rx_pause = !pause.rx_pause;
		ops->set_pauseparam(dev, &pause);
	}
	if (ops->nway_reset)
		ops->nway_reset(dev);
	if (ops->set_phys_id) {
		ops->set_phys_id(dev, ETHTOOL_ID_ACTIVE);
		ops->set_phys_id(dev, ETHTOOL_ID_ON);
		ops->set_phys_id(dev, ETHTOOL_ID_INACTIVE);
	}
}

static void ask_statistics(struct net_device *dev)
{
	const struct ethtool_ops *ops = dev->ethtool_ops;
	const struct ethtool_rmon_hist_range *ranges;
	struct ethtool_pause_stats pause = {};
	struct ethtool_eth_mac_stats mac = {};
	struct ethtool_rmon_stats rmon = {};
	struct rtnl_link_stats64 stats;
	struct ethtool_stats header = {};
	u64 *values;
	int count;

	dev_get_stats(dev, &stats);
	if (ops->get_pause_stats)
		ops->get_pause_stats(dev, &pause);
	if (ops->get_eth_mac_stats)
		ops->get_eth_mac_stats(dev, &mac);
	if (ops->get_rmon_stats)
		ops->get_rmon_stats(dev, &rmon, &ranges);
	count = ops->get_sset_count ? ops->get_sset_count(dev, ETH_SS_STATS) : 0;
	if (count <= 0 || !ops->get_ethtool_stats)
		return;
	header.n_stats = count;
	values = kcalloc(count, sizeof(*values), GFP_KERNEL);
	if (values)
		ops->get_ethtool_stats(dev, &header, values);
	kfree(values);
}

static void ask_memories(struct net_device *dev)
{
	const struct ethtool_ops *ops = dev->ethtool_ops;
	struct ethtool_eeprom words = { .len = 64 };
	struct ethtool_module_eeprom page = { .length = MODULE_BYTES, .i2c_address = 0x50 };
	struct ethtool_modinfo info = {};
	struct ethtool_regs regs = {};
	u8 *buffer = kzalloc(SZ_16K, GFP_KERNEL);

	if (!buffer)
		return;
	page.data = buffer;
	if (ops->get_eeprom_len && ops->get_eeprom && ops->get_eeprom_len(dev) >= words.len)
		ops->get_eeprom(dev, &words, buffer);
	if (ops->get_module_info && !ops->get_module_info(dev, &info) &&
	    info.eeprom_len <= SZ_16K) {
		words.len = min_t(u32, info.eeprom_len, MODULE_BYTES);
		ops->get_module_eeprom(dev, &words, buffer);
	}
	if (ops->get_module_eeprom_by_page) {
		ops->get_module_eeprom_by_page(dev, &page, NULL);
		page.i2c_address = 0x51;
		ops->get_module_eeprom_by_page(dev, &page, NULL);
	}
	if (ops->get_regs_len && ops->get_regs) {
		regs.len = ops->get_regs_len(dev);
		if (regs.len > 0 && regs.len <= SZ_16K)
			ops->get_regs(dev, &regs, buffer);
	}
	kfree(buffer);
}

static void ask_test(struct net_device *dev)
{
	const struct ethtool_ops *ops = dev->ethtool_ops;
	struct ethtool_test test = { .flags = ETH_TEST_FL_OFFLINE };
	u64 *values;
	int count;

	count = ops->get_sset_count ? ops->get_sset_count(dev, ETH_SS_TEST) : 0;
	if (count <= 0 || !ops->self_test)
		return;
	test.len = count;
	values = kcalloc(count, sizeof(*values), GFP_KERNEL);
	if (values)
		ops->self_test(dev, &test, values);
	kfree(values);
}

static void ask_queues(struct net_device *dev)
{
	const struct ethtool_ops *ops = dev->ethtool_ops;
	struct kernel_ethtool_ringparam kernel_ring = {};
	struct kernel_ethtool_coalesce kernel_coalesce = {};
	struct ethtool_coalesce coalesce = {};
	struct ethtool_channels channels = {};
	struct ethtool_ringparam ring = {};
	struct ethtool_rxnfc rule = {
		.cmd = ETHTOOL_SRXCLSRLINS,
		.fs = { .flow_type = UDP_V4_FLOW, .location = 1 },
	};

	if (ops->get_ringparam && ops->set_ringparam) {
		ops->get_ringparam(dev, &ring, &kernel_ring, NULL);
		ring.rx_pending = 256;
		ring.tx_pending = 256;
		ops->set_ringparam(dev, &ring, &kernel_ring, NULL);
	}
	if (ops->get_coalesce && ops->set_coalesce &&
	    !ops->get_coalesce(dev, &coalesce, &kernel_coalesce, NULL))
		ops->set_coalesce(dev, &coalesce, &kernel_coalesce, NULL);
	if (ops->get_channels)
		ops->get_channels(dev, &channels);
	if (ops->set_rxnfc) {
		rule.fs.h_u.udp_ip4_spec.pdst = htons(9);
		rule.fs.m_u.udp_ip4_spec.pdst = htons(0xffff);
		ops->set_rxnfc(dev, &rule);
		rule.cmd = ETHTOOL_SRXCLSRLDEL;
		ops->set_rxnfc(dev, &rule);
	}
}

/* With RTNL, which the functions above want as well as the device's own lock. */
static void ask(struct pci_dev *pdev, void (*what)(struct net_device *dev))
{
	struct net_device *dev;

	rtnl_lock();
	dev = card_netdev(pdev);
	if (dev && dev->ethtool_ops) {
		const struct ethtool_ops *ops = dev->ethtool_ops;

		netdev_lock_ops(dev);
		if (!ops->begin || !ops->begin(dev)) {
			what(dev);
			if (ops->complete)
				ops->complete(dev);
		}
		netdev_unlock_ops(dev);
	}
	rtnl_unlock();
}

static void users_link(struct pci_dev *pdev)
{
	ask(pdev, ask_link);
}

static void users_statistics(struct pci_dev *pdev)
{
	ask(pdev, ask_statistics);
}

static void users_memories(struct pci_dev *pdev)
{
	ask(pdev, ask_memories);
}

static void users_test(struct pci_dev *pdev)
{
	ask(pdev, ask_test);
}

static void users_queues(struct pci_dev *pdev)
{
	ask(pdev, ask_queues);
}

static void users_settings(struct pci_dev *pdev)
{
	struct net_device *dev;

	rtnl_lock();
	dev = card_netdev(pdev);
	if (dev) {
		dev_set_promiscuity(dev, 1);
		dev_set_promiscuity(dev, -1);
		dev_set_mtu(dev, 9000);
		dev_set_mtu(dev, 1500);
		netdev_lock_ops(dev);
		dev->wanted_features ^= NETIF_F_LRO | NETIF_F_RXHASH | NETIF_F_HW_VLAN_CTAG_RX;
		netdev_update_features(dev);
		netdev_unlock_ops(dev);
	}
	rtnl_unlock();
}

/* The watchdog of the stack: packets are stuck. */
static void users_timeout(struct pci_dev *pdev)
{
	struct net_device *dev;

	rtnl_lock();
	dev = card_netdev(pdev);
	if (dev && netif_running(dev) && dev->netdev_ops->ndo_tx_timeout) {
		netif_tx_lock_bh(dev);
		dev->netdev_ops->ndo_tx_timeout(dev, 0);
		netif_tx_unlock_bh(dev);
	}
	rtnl_unlock();
	msleep(100);
}

static void users_reset(struct pci_dev *pdev)
{
	pci_reset_function(pdev);
}

/* As the core does when the machine sleeps. */
static void users_sleep(struct pci_dev *pdev)
{
	const struct dev_pm_ops *pm = pci_bus_type.pm;
	struct device *dev = &pdev->dev;

	device_lock(dev);
	if (!pm->suspend(dev)) {
		if (!pm->suspend_noirq(dev))
			pm->resume_noirq(dev);
		pm->resume(dev);
	}
	device_unlock(dev);
}

/* As the core does when the bus has seen an error. */
static void users_error(struct pci_dev *pdev)
{
	const struct pci_error_handlers *handlers;
	pci_ers_result_t result;

	device_lock(&pdev->dev);
	handlers = pdev->driver ? pdev->driver->err_handler : NULL;
	if (handlers && handlers->error_detected) {
		pdev->error_state = pci_channel_io_frozen;
		result = handlers->error_detected(pdev, pci_channel_io_frozen);
		pdev->error_state = pci_channel_io_normal;
		if (result == PCI_ERS_RESULT_NEED_RESET && handlers->slot_reset)
			result = handlers->slot_reset(pdev);
		if (result == PCI_ERS_RESULT_RECOVERED && handlers->resume)
			handlers->resume(pdev);
	}
	device_unlock(&pdev->dev);
}

/* Each has a bit in the input, the lowest one first. */
static void (* const kinds[])(struct pci_dev *pdev) = {
	users_link,
	users_statistics,
	users_memories,
	users_queues,
	users_settings,
	users_timeout,
	users_reset,
	users_sleep,
	users_test,
	users_error,
};

void card_users(struct pci_dev *pdev, u16 which)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (which & BIT(i))
			kinds[i](pdev);
	}
}
