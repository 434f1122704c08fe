// SPDX-License-Identifier: GPL-2.0
/*
 * Moves packets from the list in front of a qdisc into the qdisc, and provides
 * the sysctl net.core.xmit_llist_rust.
 */

#include <linux/init.h>
#include <linux/prefetch.h>
#include <linux/skbuff.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/pkt_sched.h>
#include <net/sock.h>
#include <net/tcp_states.h>
#include <net/xmit_llist.h>
#include <trace/events/qdisc.h>

DEFINE_STATIC_KEY_FALSE(xmit_llist_rust_key);

/* Packets that running the qdisc has dropped: few, if any. */
static void xmit_llist_drop(struct sk_buff *skbs, struct sk_buff **to_free)
{
	struct sk_buff *next;

	for (; unlikely(skbs); skbs = next) {
		next = skbs->next;
		__qdisc_drop(skbs, to_free);
	}
}

static bool xmit_llist_batch(const struct Qdisc *q)
{
	/* The tracepoint reports each packet with its result. */
	return q->ops->enqueue_batch && q->enqueue == q->ops->enqueue &&
	       !trace_qdisc_enqueue_enabled();
}

static int xmit_llist_enqueue(struct sk_buff *skbs, struct Qdisc *q,
			      struct netdev_queue *txq,
			      struct sk_buff **to_free)
{
	int rc = NET_XMIT_SUCCESS;
	struct sk_buff *next;

	for (; skbs; skbs = next) {
		next = skbs->next;
		if (next) {
			prefetch(next);
			prefetch(&next->priority);
			skb_mark_not_on_list(skbs);
		}
		rc = q->enqueue(skbs, q, to_free) & NET_XMIT_MASK;
		if (rc == NET_XMIT_SUCCESS)
			trace_qdisc_enqueue(q, txq, skbs);
	}
	return rc;
}

static int xmit_llist_put(struct sk_buff *skbs, unsigned int count,
			  struct Qdisc *q, struct netdev_queue *txq,
			  struct sk_buff **to_free)
{
	if (count > 1 && xmit_llist_batch(q)) {
		q->ops->enqueue_batch(skbs, q, to_free);
		return NET_XMIT_SUCCESS;
	}
	return xmit_llist_enqueue(skbs, q, txq, to_free);
}

int xmit_llist_work(struct sk_buff *skbs, unsigned int count, struct Qdisc *q,
		    struct net_device *dev, struct netdev_queue *txq,
		    struct sk_buff **to_free)
{
	int rc = NET_XMIT_SUCCESS;

	lockdep_assert_held(qdisc_lock(q));

	if (unlikely(test_bit(__QDISC_STATE_DEACTIVATED, &q->state))) {
		xmit_llist_drop(skbs, to_free);
		return NET_XMIT_DROP;
	}
	if ((q->flags & TCQ_F_CAN_BYPASS) && !qdisc_qlen(q) && count == 1 &&
	    qdisc_run_begin(q)) {
		/* This is a work-conserving queue; there are no old skbs
		 * waiting to be sent out; and the qdisc is not running -
		 * xmit the skb directly.
		 */
		qdisc_bstats_update(q, skbs);
		/* The packet may come from another CPU, for another queue. */
		txq = skb_get_tx_queue(dev, skbs);
		if (sch_direct_xmit(skbs, q, dev, txq, qdisc_lock(q), true))
			__qdisc_run(q);
		xmit_llist_drop(qdisc_run_end(q), to_free);
		return NET_XMIT_SUCCESS;
	}
	rc = xmit_llist_put(skbs, count, q, txq, to_free);
	xmit_llist_drop(qdisc_run(q), to_free);
	return count == 1 ? rc : NET_XMIT_SUCCESS;
}

/*
 * Packets of a connected socket are classified by the socket. An answer to a SYN
 * is none: it has the request or the listener for a socket.
 */
void xmit_llist_hash_flow(struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;

	if (!sk || sk_listener_or_tw(sk) || sk->sk_state == TCP_CLOSE)
		skb_get_hash(skb);
}

static const struct ctl_table xmit_llist_table[] = {
	{
		.procname	= "xmit_llist_rust",
		.data		= &xmit_llist_rust_key.key,
		.maxlen		= sizeof(xmit_llist_rust_key),
		.mode		= 0644,
		.proc_handler	= proc_do_static_key,
	},
};

static int __init xmit_llist_init(void)
{
	if (!register_net_sysctl(&init_net, "net/core", xmit_llist_table))
		return -ENOMEM;
	return 0;
}
late_initcall(xmit_llist_init);
