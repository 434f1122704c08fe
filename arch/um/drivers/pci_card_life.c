// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a network card: its driver is bound, frames are sent and received.
 */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/netdev_lock.h>

#include "pci_card.h"

#define FRAMES		64
#define FRAME_LENGTH	128
/* The first type for local experiments. */
#define FRAME_TYPE	0x88b5
/* From one byte of a payload to the next, as the card's side has it. */
#define FRAME_STEP	7

static unsigned int received;

static int card_receive(struct sk_buff *skb, struct net_device *dev,
			struct packet_type *type, struct net_device *orig)
{
	u8 buffer[FRAME_LENGTH - ETH_HLEN];
	const u8 *data;
	int i;

	data = skb_header_pointer(skb, 0, sizeof(buffer), buffer);
	for (i = 0; data && i < sizeof(buffer); i++) {
		if (data[i] != (u8)(data[0] + i * FRAME_STEP))
			data = NULL;
	}
	if (data && skb->len == sizeof(buffer))
		received++;
	kfree_skb(skb);
	return NET_RX_SUCCESS;
}

static struct packet_type card_packets = {
	.type = htons(FRAME_TYPE),
	.func = card_receive,
};

static void card_send(struct net_device *dev, u8 number)
{
	struct sk_buff *skb = alloc_skb(FRAME_LENGTH + LL_MAX_HEADER, GFP_KERNEL);
	u8 *data;
	int i;

	if (!skb)
		return;
	skb_reserve(skb, LL_MAX_HEADER);
	skb_reset_mac_header(skb);
	data = skb_put(skb, FRAME_LENGTH);
	eth_broadcast_addr(data);
	ether_addr_copy(data + ETH_ALEN, dev->dev_addr);
	data[12] = FRAME_TYPE >> 8;
	data[13] = FRAME_TYPE & 0xff;
	for (i = 0; i < FRAME_LENGTH - ETH_HLEN; i++)
		data[ETH_HLEN + i] = number + i * FRAME_STEP;
	skb->protocol = htons(FRAME_TYPE);
	skb->dev = dev;
	dev_queue_xmit(skb);
}

struct net_device *card_netdev(struct pci_dev *pdev)
{
	struct net_device *dev;

	for_each_netdev(&init_net, dev) {
		if (dev->dev.parent == &pdev->dev)
			return dev;
	}
	return NULL;
}

bool card_traffic(struct pci_dev *pdev)
{
	struct net_device *dev;
	unsigned int sent = 0;
	int i;

	received = 0;
	card->sent();
	rtnl_lock();
	dev = card_netdev(pdev);
	/* The stack gets at it without RTNL. */
	if (dev)
		dev_hold(dev);
	rtnl_unlock();
	if (!dev)
		return false;
	for (i = 0; i < 100 && !netif_carrier_ok(dev); i++)
		msleep(100);
	/* The queueing discipline of a link that has come up is put in place a second later. */
	msleep(1500);
	card_arrive(FRAMES);
	for (i = 0; i < FRAMES; i++)
		card_send(dev, i);
	for (i = 0; i < 10 && (sent < FRAMES || received < FRAMES); i++) {
		msleep(20);
		sent += card->sent();
	}
	dev_put(dev);
	pr_debug("pci_card: %u sent, %u received\n", sent, received);
	return sent == FRAMES && received == FRAMES;
}

static void card_open(struct pci_dev *pdev, bool up)
{
	struct net_device *dev;

	rtnl_lock();
	dev = card_netdev(pdev);
	if (dev && up)
		dev_open(dev, NULL);
	else if (dev)
		dev_close(dev);
	rtnl_unlock();
}

bool card_begin(struct pci_dev *pdev, struct device_driver *drv)
{
	if (device_driver_attach(drv, &pdev->dev))
		return false;
	dev_add_pack(&card_packets);
	card_open(pdev, true);
	return true;
}

void card_reopen(struct pci_dev *pdev)
{
	card_open(pdev, false);
	card_open(pdev, true);
}

void card_remove(struct pci_dev *pdev)
{
	card_open(pdev, false);
	dev_remove_pack(&card_packets);
	device_release_driver(&pdev->dev);
}
