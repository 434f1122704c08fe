/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packets in front of a qdisc, combined in Rust.
 *
 * Who wants to send through a qdisc that needs its root lock adds the packet to
 * q->defer_list. __dev_xmit_skb() does that in C, or leaves it to
 * xmit_llist_rust() while sysctl net.core.xmit_llist_rust is set. Both work on
 * the same two words, also at the same time: the sysctl can be switched while
 * packets are on their way.
 *
 * A qdisc that needs no lock gets its packets from there, too, if it can take
 * several at once and sysctl net.core.qdisc_enqueue_batch is set: those who send
 * would take turns at its cache lines as at a lock.
 *
 * In C, the list is either empty or begins with the youngest packet. In Rust,
 * it can also hold XMIT_LLIST_BUSY: somebody is at work and has taken all there
 * was. To C code it must be a list that is not empty (the one at work will come
 * back for what is added to it), and ends there.
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
DECLARE_STATIC_KEY_FALSE(qdisc_enqueue_batch_key);

/**
 * xmit_llist_rust() - send a packet through a qdisc
 * @skb: the packet, ready for the qdisc, which this takes over
 * @q: the qdisc, for which xmit_llist_takes() is true
 * @dev: its device
 * @txq: the transmit queue of the device
 *
 * If somebody is at work for @q, the packet is left to them. Otherwise the
 * caller puts it into the qdisc and runs that, and does so with what others
 * leave meanwhile.
 *
 * Context: As __dev_xmit_skb(): within rcu_read_lock_bh(), without the lock.
 * Return: As __dev_xmit_skb(): NET_XMIT_SUCCESS if the packet was left to
 * somebody else or sent; NET_XMIT_DROP if there are too many on the list, with
 * the reason SKB_DROP_REASON_QDISC_BURST_DROP; what the qdisc has said if the
 * packet was put into it alone.
 */
int xmit_llist_rust(struct sk_buff *skb, struct Qdisc *q,
		    struct net_device *dev, struct netdev_queue *txq);

/**
 * xmit_llist_work() - put packets into a qdisc with a root lock, and run it
 * @skbs: the packets, linked by ->next, the first one first
 * @count: how many they are, at least one
 * @q: the qdisc
 * @dev: its device
 * @txq: the transmit queue of the device
 * @to_free: what is dropped is put in front of this, to be freed by
 *	tcf_kfree_skb_list() without the lock
 *
 * Context: Under the root lock, which is released while packets are sent.
 * Return: What became of the packet if it is one, NET_XMIT_DROP if the qdisc is
 * deactivated, otherwise NET_XMIT_SUCCESS.
 */
int xmit_llist_work(struct sk_buff *skbs, unsigned int count, struct Qdisc *q,
		    struct net_device *dev, struct netdev_queue *txq,
		    struct sk_buff **to_free);

/**
 * xmit_llist_work_lockless() - put packets into a lockless qdisc, and run it
 * @skbs: the packets, linked by ->next, the first one first
 * @count: how many they are, at least one
 * @q: the qdisc
 * @dev: its device
 * @txq: the transmit queue of the device
 * @to_free: what is dropped is put in front of this
 *
 * Context: As __dev_xmit_skb(), without locks.
 * Return: What became of the packet if it is one, otherwise NET_XMIT_SUCCESS.
 */
int xmit_llist_work_lockless(struct sk_buff *skbs, unsigned int count,
			     struct Qdisc *q, struct net_device *dev,
			     struct netdev_queue *txq,
			     struct sk_buff **to_free);

/**
 * xmit_llist_put_last() - put packets into a lockless qdisc, to be run after that
 * @skbs: the packets, linked by ->next, the first one first
 * @count: how many they are, at least one
 * @q: the qdisc
 * @txq: the transmit queue of the device
 * @to_free: what is dropped is put in front of this
 *
 * Context: Under the root lock, with which whoever leaves packets behind keeps the
 * next one from overtaking them.
 */
void xmit_llist_put_last(struct sk_buff *skbs, unsigned int count,
			 struct Qdisc *q, struct netdev_queue *txq,
			 struct sk_buff **to_free);

/**
 * xmit_llist_takes() - whether packets for a qdisc go through xmit_llist_rust()
 * @q: the qdisc
 *
 * Return: true if so.
 */
static inline bool xmit_llist_takes(const struct Qdisc *q)
{
	if (!static_branch_unlikely(&xmit_llist_rust_key))
		return false;
	return !(q->flags & TCQ_F_NOLOCK) ||
	       (static_branch_unlikely(&qdisc_enqueue_batch_key) &&
		q->ops->enqueue_batch);
}

/**
 * xmit_llist_next() - what a packet must be linked to that is added in C
 * @first: what the list holds
 *
 * Return: the youngest packet on the list, or NULL if there is none.
 */
static inline struct llist_node *xmit_llist_next(struct llist_node *first)
{
	return first == (void *)XMIT_LLIST_BUSY ? NULL : first;
}

/**
 * xmit_llist_has_packets() - whether packets wait for somebody
 * @list: the list in front of a qdisc
 *
 * Return: true if so. That somebody runs the qdisc after having taken them.
 * Who has taken all may already have run it for the last time.
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
