/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The list of packets in front of a qdisc, with combining in Rust.
 *
 * A sender to a qdisc that needs its root lock adds the packet to
 * q->defer_list. __dev_xmit_skb() does that in C, or calls xmit_llist_rust()
 * while sysctl net.core.xmit_llist_rust is set. Both work on the same two words,
 * also concurrently: the sysctl can be switched while packets are on the list.
 *
 * If the qdisc implements ->enqueue_batch(), packets of several senders are
 * enqueued together. A lockless qdisc does not use the list.
 *
 * In C, the list is either empty or starts with the newest packet. In Rust, it
 * can also hold XMIT_LLIST_BUSY: a CPU has taken all packets and is sending
 * them. C code must treat this as a list that is not empty (that CPU will take
 * packets added to it) and has no elements.
 */
#ifndef _NET_XMIT_LLIST_H
#define _NET_XMIT_LLIST_H

#include <linux/jump_label.h>
#include <linux/llist.h>
#include <linux/netdevice.h>
#include <net/hotdata.h>
#include <net/sch_generic.h>

#ifdef CONFIG_NET_XMIT_LLIST_RUST

#define XMIT_LLIST_BUSY		1UL

DECLARE_STATIC_KEY_FALSE(xmit_llist_rust_key);

/**
 * xmit_llist_rust() - send a packet through a qdisc
 * @skb: the packet, ready for the qdisc; this takes ownership
 * @q: the qdisc, for which xmit_llist_takes() is true
 * @dev: its device
 * @txq: the transmit queue of the device
 *
 * If another CPU is sending for @q, the packet is left to it. Otherwise this
 * enqueues the packet and runs the qdisc, and does the same for packets that
 * other CPUs add meanwhile.
 *
 * Context: As __dev_xmit_skb(): within rcu_read_lock_bh(), without the lock.
 * Return: As __dev_xmit_skb(): NET_XMIT_SUCCESS if the packet was sent or left
 * to another CPU; NET_XMIT_DROP, with the reason
 * SKB_DROP_REASON_QDISC_BURST_DROP, if the list is too long; the result of
 * ->enqueue() if the packet was enqueued alone.
 */
int xmit_llist_rust(struct sk_buff *skb, struct Qdisc *q,
		    struct net_device *dev, struct netdev_queue *txq);

/**
 * xmit_llist_work() - put packets into a qdisc with a root lock, and run it
 * @skbs: the packets, linked by ->next, the first one first
 * @count: their number, at least one
 * @q: the qdisc
 * @dev: its device
 * @txq: the transmit queue of the device
 * @to_free: list that dropped packets are added to, to be freed by
 *	tcf_kfree_skb_list() without the lock
 *
 * Context: Under the root lock, which is released while packets are sent.
 * Return: The result for a single packet, NET_XMIT_DROP if the qdisc is
 * deactivated, otherwise NET_XMIT_SUCCESS.
 */
int xmit_llist_work(struct sk_buff *skbs, unsigned int count, struct Qdisc *q,
		    struct net_device *dev, struct netdev_queue *txq,
		    struct sk_buff **to_free);

/**
 * xmit_llist_hash_flow() - compute the flow hash of a packet ahead of the lock
 * @skb: a packet for a qdisc with TCQ_F_FLOW_HASH
 *
 * This leaves out packets that such a qdisc classifies by their socket.
 */
void xmit_llist_hash_flow(struct sk_buff *skb);

/**
 * xmit_llist_takes() - check whether a qdisc gets packets by xmit_llist_rust()
 * @q: the qdisc
 *
 * Return: true if so.
 */
static inline bool xmit_llist_takes(const struct Qdisc *q)
{
	return static_branch_unlikely(&xmit_llist_rust_key) &&
	       !(q->flags & TCQ_F_NOLOCK);
}

/**
 * xmit_llist_next() - get the successor of a packet that C code adds
 * @first: the first word of the list
 *
 * Return: the newest packet on the list, or NULL if there is none.
 */
static inline struct llist_node *xmit_llist_next(struct llist_node *first)
{
	return first == (void *)XMIT_LLIST_BUSY ? NULL : first;
}

/**
 * xmit_llist_has_packets() - check whether packets are still on the list
 * @list: the list in front of a qdisc
 *
 * Return: true if so: the CPU that takes them will run the qdisc afterwards. If
 * false, a CPU that has taken all packets may have run it for the last time.
 */
static inline bool xmit_llist_has_packets(const struct llist_head *list)
{
	return (unsigned long)READ_ONCE(list->first) > XMIT_LLIST_BUSY;
}

#else

static inline bool xmit_llist_takes(const struct Qdisc *q)
{
	return false;
}

static inline int xmit_llist_rust(struct sk_buff *skb, struct Qdisc *q,
				  struct net_device *dev,
				  struct netdev_queue *txq)
{
	return NET_XMIT_DROP;
}

static inline struct llist_node *xmit_llist_next(struct llist_node *first)
{
	return first;
}

static inline bool xmit_llist_has_packets(const struct llist_head *list)
{
	return !llist_empty(list);
}

#endif /* CONFIG_NET_XMIT_LLIST_RUST */
#endif /* _NET_XMIT_LLIST_H */
