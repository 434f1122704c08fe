/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Building skbs for all frames of a NAPI poll at once.
 */
#ifndef _NET_NAPI_BUILD_H
#define _NET_NAPI_BUILD_H

#include <linux/types.h>

struct encoded_page;
struct list_head;
struct net_device;

/* The NIC has verified the checksum of the transport layer. */
#define NAPI_BUILD_CSUM_VERIFIED	0x01
/* There is a hash. */
#define NAPI_BUILD_HASH			0x02
/* The hash covers the ports. */
#define NAPI_BUILD_HASH_L4		0x04
/* There is the tag of a VLAN of 802.1Q. */
#define NAPI_BUILD_VLAN			0x08
/* There is metadata of an XDP program in front of the frame. */
#define NAPI_BUILD_METADATA		0x10

/* The bit of an encoded page that says that the buffer is the second one of that size
 * in the page.
 */
#define NAPI_BUILD_SECOND_HALF		1ul

/**
 * struct napi_build_frame - a received Ethernet frame in a buffer of a page pool
 * @page: page of the buffer, not a tail page, with NAPI_BUILD_SECOND_HALF or 0
 * @size: size of the whole buffer
 * @hash: flow hash
 * @len: length of the frame, at least ETH_HLEN
 * @headroom: number of bytes in front of the frame
 * @vlan_tci: VLAN tag that was stripped
 * @metasize: number of bytes of metadata
 * @flags: flags of type NAPI_BUILD_*
 */
struct napi_build_frame {
	struct encoded_page *page;
	u32 size;
	u32 hash;
	u16 len;
	u16 headroom;
	u16 vlan_tci;
	u8 metasize;
	u8 flags;
};

unsigned int napi_build_skb_list(struct net_device *dev, unsigned int napi_id,
				 u16 queue_mapping,
				 const struct napi_build_frame *frames,
				 unsigned int n, struct list_head *list);

#endif /* _NET_NAPI_BUILD_H */
