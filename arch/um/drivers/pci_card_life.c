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
#include <net/tcp.h>

#include "pci_card.h"

#define FRAMES		64
#define FRAME_LENGTH	128
/* The first type for local experiments. */
#define FRAME_TYPE	0x88b5
/* From one byte of a payload to the next, as the card's side has it. */
#define FRAME_STEP	7

/* A packet of TCP that the card cuts into pieces. */
#define PIECES		3
#define PIECE_LENGTH	1000
#define STREAM		(PIECES * PIECE_LENGTH)
#define PACKET_HEADERS	(sizeof(struct iphdr) + sizeof(struct tcphdr))

/* Packets that a driver sends by itself, in a test, and the stack. */
#define OWN_PACKETS	64

static unsigned int received;
/* Bytes of the stream, of which packets may have been joined. */
static unsigned int streamed;
/* Packets for the card since it was bound. */
static unsigned int asked;

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

static int card_receive_stream(struct sk_buff *skb, struct net_device *dev,
			       struct packet_type *type, struct net_device *orig)
{
	struct { struct iphdr ip; struct tcphdr tcp; } buffer;
	const typeof(buffer) *headers = skb_header_pointer(skb, 0, sizeof(buffer), &buffer);
	unsigned int at = 0, i, length;
	u8 bytes[256], first;

	if (headers && skb->len == ntohs(headers->ip.tot_len)) {
		first = ntohl(headers->tcp.seq) * FRAME_STEP;
		while (sizeof(buffer) + at < skb->len) {
			length = min_t(unsigned int, sizeof(bytes), skb->len - sizeof(buffer) - at);
			skb_copy_bits(skb, sizeof(buffer) + at, bytes, length);
			for (i = 0; i < length; i++, at++)
				streamed += bytes[i] == (u8)(first + at * FRAME_STEP);
		}
	}
	kfree_skb(skb);
	return NET_RX_SUCCESS;
}

static struct packet_type card_stream = {
	.type = htons(ETH_P_IP),
	.func = card_receive_stream,
};

static struct packet_type card_packets = {
	.type = htons(FRAME_TYPE),
	.func = card_receive,
};

/* A packet with a header for Ethernet, and room for @length bytes behind it. */
static struct sk_buff *card_packet(struct net_device *dev, u16 type, unsigned int length)
{
	struct sk_buff *skb = alloc_skb(LL_MAX_HEADER + ETH_HLEN + length, GFP_KERNEL);
	struct ethhdr *header;

	if (!skb)
		return NULL;
	skb_reserve(skb, LL_MAX_HEADER);
	skb_reset_mac_header(skb);
	header = skb_put(skb, ETH_HLEN);
	eth_broadcast_addr(header->h_dest);
	ether_addr_copy(header->h_source, dev->dev_addr);
	header->h_proto = htons(type);
	skb_set_network_header(skb, ETH_HLEN);
	skb->protocol = header->h_proto;
	skb->dev = dev;
	return skb;
}

static void card_fill(u8 *data, unsigned int length, u8 first)
{
	unsigned int i;

	for (i = 0; i < length; i++)
		data[i] = first + i * FRAME_STEP;
}

static void card_send(struct net_device *dev, u8 number)
{
	unsigned int length = FRAME_LENGTH - ETH_HLEN;
	struct sk_buff *skb = card_packet(dev, FRAME_TYPE, length);

	if (!skb)
		return;
	card_fill(skb_put(skb, length), length, number);
	asked++;
	dev_queue_xmit(skb);
}

/* A page for each piece; checksums are the card's, as far as the driver offers that. */
static void card_send_pieces(struct net_device *dev)
{
	struct sk_buff *skb = card_packet(dev, ETH_P_IP, PACKET_HEADERS);
	struct tcphdr *tcp;
	struct iphdr *ip;
	int i;

	if (!skb)
		return;
	ip = skb_put_zero(skb, sizeof(*ip));
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->ttl = 64;
	ip->protocol = IPPROTO_TCP;
	ip->tot_len = htons(PACKET_HEADERS + STREAM);
	ip_send_check(ip);
	skb_set_transport_header(skb, skb->len);
	tcp = skb_put_zero(skb, sizeof(*tcp));
	tcp->doff = sizeof(*tcp) / 4;
	tcp->ack = 1;
	for (i = 0; i < PIECES; i++) {
		struct page *page = alloc_page(GFP_KERNEL);

		if (!page)
			break;
		card_fill(page_address(page), PIECE_LENGTH, i * PIECE_LENGTH * FRAME_STEP);
		skb_add_rx_frag(skb, i, page, 0, PIECE_LENGTH, PAGE_SIZE);
	}
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct tcphdr, check);
	tcp->check = ~tcp_v4_check(sizeof(*tcp) + STREAM, 0, 0, 0);
	skb_shinfo(skb)->gso_type = SKB_GSO_TCPV4;
	skb_shinfo(skb)->gso_size = PIECE_LENGTH;
	skb_shinfo(skb)->gso_segs = PIECES;
	asked += PIECES;
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
	streamed = 0;
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
	card_arrive(FRAMES + PIECES);
	for (i = 0; i < FRAMES; i++)
		card_send(dev, i);
	card_send_pieces(dev);
	for (i = 0; i < 10 && (sent < FRAMES + PIECES || received < FRAMES || streamed < STREAM);
	     i++) {
		msleep(20);
		sent += card->sent();
	}
	dev_put(dev);
	pr_debug("pci_card: %u sent, %u and %u bytes received\n", sent, received, streamed);
	return sent == FRAMES + PIECES && received == FRAMES && streamed == STREAM;
}

bool card_counts_right(struct pci_dev *pdev)
{
	struct rtnl_link_stats64 stats = {};
	struct net_device *dev;

	rtnl_lock();
	dev = card_netdev(pdev);
	if (dev)
		dev_get_stats(dev, &stats);
	rtnl_unlock();
	return stats.tx_packets + stats.tx_dropped <= asked + OWN_PACKETS;
}

void card_open(struct pci_dev *pdev, bool up)
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
	asked = 0;
	dev_add_pack(&card_packets);
	dev_add_pack(&card_stream);
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
	dev_remove_pack(&card_stream);
	device_release_driver(&pdev->dev);
}
