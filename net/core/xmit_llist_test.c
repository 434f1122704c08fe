// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of the list of packets in front of a qdisc, and of batches. */

#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/static_key.h>
#include <net/pkt_sched.h>
#include <net/sock.h>
#include <net/tcp_states.h>
#include <net/xmit_llist.h>

#define COUNT	8

/* A device that is never registered, and a qdisc in front of it. */
struct fixture {
	struct net_device *dev;
	struct netdev_queue *txq;
	struct Qdisc *q;
	bool was_rust;
	int burst, weight;
};

static int sent[2 * COUNT], sent_count, freed;

/* Packets that arrive while another is being sent, as if from another CPU. */
static struct sk_buff *meanwhile[COUNT];

static netdev_tx_t keep_number(struct sk_buff *skb, struct net_device *dev)
{
	int i;

	if (sent_count < ARRAY_SIZE(sent))
		sent[sent_count++] = skb->mark;
	dev_consume_skb_any(skb);
	for (i = 0; i < ARRAY_SIZE(meanwhile) && meanwhile[i]; i++) {
		struct sk_buff *other = meanwhile[i];

		meanwhile[i] = NULL;
		dev_queue_xmit(other);
	}
	return NETDEV_TX_OK;
}

static const struct net_device_ops test_ops = {
	.ndo_start_xmit	= keep_number,
};

static void set_key(struct static_key *key, bool on)
{
	if (on)
		static_key_enable(key);
	else
		static_key_disable(key);
}

static struct Qdisc *make_qdisc_of(struct kunit *test,
				   const struct Qdisc_ops *ops, u32 limit)
{
	struct fixture *fix = test->priv;
	struct Qdisc *q;

	rtnl_lock();
	q = qdisc_create_dflt(fix->txq, ops, TC_H_ROOT, NULL);
	rtnl_unlock();
	KUNIT_ASSERT_NOT_NULL(test, q);
	/* As on a device with one queue: a stopped queue prevents dequeueing. */
	q->flags |= TCQ_F_ONETXQUEUE;
	WRITE_ONCE(q->limit, limit);
	return q;
}

/* Not all of these are exported, but any can be the default qdisc. */
static const struct Qdisc_ops *find_ops(struct kunit *test, const char *name)
{
	const char *old = default_qdisc_ops->id;
	const struct Qdisc_ops *ops;

	KUNIT_ASSERT_EQ(test, qdisc_set_default(name), 0);
	ops = default_qdisc_ops;
	KUNIT_ASSERT_EQ(test, qdisc_set_default(old), 0);
	return ops;
}

static struct Qdisc *make_qdisc(struct kunit *test, const char *name, u32 limit)
{
	return make_qdisc_of(test, find_ops(test, name), limit);
}

static void put_qdisc(struct Qdisc *q)
{
	rtnl_lock();
	qdisc_put(q);
	rtnl_unlock();
}

static int xmit_llist_init(struct kunit *test)
{
	struct fixture *fix = kunit_kzalloc(test, sizeof(*fix), GFP_KERNEL);

	if (!fix)
		return -ENOMEM;
	fix->dev = alloc_etherdev(0);
	if (!fix->dev)
		return -ENOMEM;
	fix->dev->netdev_ops = &test_ops;
	fix->txq = netdev_get_tx_queue(fix->dev, 0);
	/* As register_netdevice() does: qdiscs check for a lock there. */
	rcu_assign_pointer(fix->txq->qdisc_sleeping, &noop_qdisc);
	fix->was_rust = static_key_enabled(&xmit_llist_rust_key);
	fix->burst = net_hotdata.qdisc_max_burst;
	fix->weight = net_hotdata.dev_tx_weight;
	test->priv = fix;
	set_key(&xmit_llist_rust_key.key, true);
	fix->q = make_qdisc(test, "pfifo", COUNT);
	rcu_assign_pointer(fix->txq->qdisc, fix->q);
	memset(meanwhile, 0, sizeof(meanwhile));
	sent_count = 0;
	freed = 0;
	return 0;
}

static void xmit_llist_exit(struct kunit *test)
{
	struct fixture *fix = test->priv;

	if (!fix)
		return;
	if (fix->q) {
		rcu_assign_pointer(fix->txq->qdisc, &noop_qdisc);
		synchronize_net();
		put_qdisc(fix->q);
	}
	set_key(&xmit_llist_rust_key.key, fix->was_rust);
	WRITE_ONCE(net_hotdata.qdisc_max_burst, fix->burst);
	WRITE_ONCE(net_hotdata.dev_tx_weight, fix->weight);
	free_netdev(fix->dev);
}

static void count_freed(struct sk_buff *skb)
{
	freed++;
}

static struct sk_buff *packet(struct kunit *test, int number, unsigned int len)
{
	struct fixture *fix = test->priv;
	struct sk_buff *skb = alloc_skb(1024, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_put_zero(skb, len);
	skb_reset_mac_header(skb);
	skb_set_hash(skb, 1, PKT_HASH_TYPE_L4);
	skb->dev = fix->dev;
	skb->mark = number;
	skb->destructor = count_freed;
	return skb;
}

/* Sends as the network stack does, by the C code or the Rust code. */
static int send(struct kunit *test, int number)
{
	return dev_queue_xmit(packet(test, number, 64));
}

static bool in_order(int first, int count)
{
	int i;

	for (i = 0; i < count; i++)
		if (sent[i] != first + i)
			return false;
	return sent_count == count;
}

static void until_sent(int count)
{
	int tries;

	for (tries = 0; tries < 100 && READ_ONCE(sent_count) < count; tries++)
		msleep(20);
}

static void alone_goes_straight_to_the_device(struct kunit *test)
{
	struct fixture *fix = test->priv;
	int i;

	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, send(test, i), NET_XMIT_SUCCESS);
	KUNIT_EXPECT_TRUE(test, in_order(0, 3));
	KUNIT_EXPECT_EQ(test, freed, 3);
	KUNIT_EXPECT_EQ(test, u64_stats_read(&fix->q->bstats.packets), 3);
	KUNIT_EXPECT_NULL(test, fix->q->defer_list.first);
}

static void a_stopped_queue_is_woken(struct kunit *test)
{
	struct fixture *fix = test->priv;
	int i;

	netif_tx_stop_queue(fix->txq);
	for (i = 0; i < COUNT; i++)
		KUNIT_EXPECT_EQ(test, send(test, i), NET_XMIT_SUCCESS);
	KUNIT_EXPECT_EQ(test, send(test, COUNT), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ(test, freed, 1);
	KUNIT_EXPECT_EQ(test, fix->q->q.qlen, COUNT);
	KUNIT_EXPECT_EQ(test, fix->q->qstats.drops, 1);
	KUNIT_EXPECT_NULL(test, fix->q->defer_list.first);
	netif_tx_wake_queue(fix->txq);
	until_sent(COUNT);
	KUNIT_EXPECT_TRUE(test, in_order(0, COUNT));
}

/*
 * A CPU that has taken all packets may not run the qdisc again, so a wakeup
 * must not rely on that. A CPU that still has to take packets will run it.
 */
static void a_combiner_does_not_hold_up_others(struct kunit *test)
{
	struct fixture *fix = test->priv;
	struct Qdisc *q = fix->q;
	struct llist_node node = { };

	netif_tx_stop_queue(fix->txq);
	KUNIT_EXPECT_EQ(test, send(test, 0), NET_XMIT_SUCCESS);

	WRITE_ONCE(q->defer_list.first, &node);
	netif_tx_wake_queue(fix->txq);
	KUNIT_EXPECT_FALSE(test, test_bit(__QDISC_STATE_SCHED, &q->state));
	msleep(20);
	KUNIT_EXPECT_EQ(test, sent_count, 0);

	netif_tx_stop_queue(fix->txq);
	WRITE_ONCE(q->defer_list.first, (void *)XMIT_LLIST_BUSY);
	netif_tx_wake_queue(fix->txq);
	until_sent(1);
	KUNIT_EXPECT_TRUE(test, in_order(0, 1));
	WRITE_ONCE(q->defer_list.first, NULL);
}

static void both_leave_packets_to_the_combiner(struct kunit *test)
{
	struct fixture *fix = test->priv;
	struct llist_head *list = &fix->q->defer_list;
	struct llist_node *node;
	struct sk_buff *skb;
	int i;

	for (i = 0; i < 2; i++) {
		/* A combiner is active; the first packet comes from C or Rust. */
		set_key(&xmit_llist_rust_key.key, i);
		WRITE_ONCE(list->first, (void *)XMIT_LLIST_BUSY);
		KUNIT_EXPECT_EQ(test, send(test, 0), NET_XMIT_SUCCESS);
		KUNIT_EXPECT_NULL(test, READ_ONCE(list->first)->next);
		set_key(&xmit_llist_rust_key.key, !i);
		KUNIT_EXPECT_EQ(test, send(test, 1), NET_XMIT_SUCCESS);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&fix->q->defer_count), 2);
		KUNIT_EXPECT_EQ(test, sent_count, 0);

		node = llist_del_all(list);
		atomic_long_set(&fix->q->defer_count, 0);
		skb = llist_entry(node, struct sk_buff, ll_node);
		KUNIT_EXPECT_EQ(test, skb->mark, 1);
		node = node->next;
		KUNIT_ASSERT_NOT_NULL(test, node);
		kfree_skb(skb);
		skb = llist_entry(node, struct sk_buff, ll_node);
		KUNIT_EXPECT_EQ(test, skb->mark, 0);
		KUNIT_EXPECT_NULL(test, node->next);
		kfree_skb(skb);
	}
}

static void the_list_has_a_limit(struct kunit *test)
{
	struct fixture *fix = test->priv;
	struct sk_buff *skb, *next;
	struct llist_node *node;
	int i;

	WRITE_ONCE(net_hotdata.qdisc_max_burst, 2);
	WRITE_ONCE(fix->q->defer_list.first, (void *)XMIT_LLIST_BUSY);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, send(test, i), NET_XMIT_SUCCESS);
	for (; i < 4; i++)
		KUNIT_EXPECT_EQ(test, send(test, i), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ(test, freed, 2);

	/* As if the combiner had taken these and left. */
	node = llist_del_all(&fix->q->defer_list);
	llist_for_each_entry_safe(skb, next, node, ll_node)
		kfree_skb(skb);
	KUNIT_EXPECT_EQ(test, freed, 4);
	/* A lone sender is not refused, whatever the count is. */
	KUNIT_EXPECT_EQ(test, send(test, 4), NET_XMIT_SUCCESS);
	KUNIT_EXPECT_TRUE(test, in_order(4, 1));
}

static void a_deactivated_qdisc_drops(struct kunit *test)
{
	struct fixture *fix = test->priv;

	set_bit(__QDISC_STATE_DEACTIVATED, &fix->q->state);
	KUNIT_EXPECT_EQ(test, send(test, 0), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ(test, freed, 1);
	KUNIT_EXPECT_EQ(test, sent_count, 0);
	KUNIT_EXPECT_NULL(test, fix->q->defer_list.first);
}

struct outcome {
	u32 qlen, backlog, drops;
	int dropped, count, marks[2 * COUNT];
};

static int enqueue_alone(struct sk_buff *skb, struct Qdisc *q,
			 struct sk_buff **to_free)
{
	return q->ops->enqueue(skb, q, to_free);
}

/* Enqueues packets twice, then dequeues all. */
static void enqueue(struct kunit *test, const char *name, u32 limit,
		    bool batch, struct outcome *out)
{
	static const unsigned int lengths[COUNT] = {
		64, 900, 70, 60, 1000, 61, 62, 500
	};
	struct Qdisc *q = make_qdisc(test, name, limit);
	struct sk_buff *skb, *to_free = NULL;
	struct fixture *fix = test->priv;
	int round, i;

	/* Something else in front of ->enqueue() must not be left out. */
	if (!batch)
		q->enqueue = enqueue_alone;
	netif_tx_stop_queue(fix->txq);
	for (round = 0; round < 2; round++) {
		struct sk_buff *first = NULL, **end = &first;

		for (i = 0; i < COUNT; i++) {
			skb = packet(test, COUNT * round + i, lengths[i]);
			/* As __dev_queue_xmit() does. */
			qdisc_skb_cb(skb)->pkt_len = skb->len;
			qdisc_skb_cb(skb)->pkt_segs = 1;
			tcf_set_qdisc_drop_reason(skb, QDISC_DROP_GENERIC);
			*end = skb;
			end = &skb->next;
		}
		rcu_read_lock_bh();
		spin_lock(qdisc_lock(q));
		KUNIT_EXPECT_EQ(test, xmit_llist_work(first, COUNT, q, fix->dev,
						      fix->txq, &to_free),
				NET_XMIT_SUCCESS);
		spin_unlock(qdisc_lock(q));
		for (skb = to_free; skb; skb = skb->next)
			out->dropped++;
		tcf_kfree_skb_list(to_free, q, fix->txq, fix->dev);
		rcu_read_unlock_bh();
		to_free = NULL;
	}
	out->qlen = q->q.qlen;
	out->backlog = q->qstats.backlog;
	out->drops = q->qstats.drops;
	rcu_read_lock_bh();
	spin_lock(qdisc_lock(q));
	for (i = 0; i < ARRAY_SIZE(out->marks); i++) {
		skb = q->dequeue(q);
		if (!skb)
			break;
		out->marks[i] = skb->mark;
		kfree_skb(skb);
	}
	spin_unlock(qdisc_lock(q));
	rcu_read_unlock_bh();
	out->count = i;
	KUNIT_EXPECT_EQ(test, q->q.qlen, 0);
	KUNIT_EXPECT_EQ(test, q->qstats.backlog, 0);
	netif_tx_start_queue(fix->txq);
	put_qdisc(q);
}

static void a_batch_is_like_one_by_one(struct kunit *test)
{
	static const struct {
		const char *name;
		u32 limit, kept;
	} cases[] = {
		{ "pfifo", 100, 16 }, { "pfifo", 11, 11 }, { "pfifo", 0, 0 },
		/* A packet that is too long is dropped, a shorter one still fits. */
		{ "bfifo", 10000, 16 }, { "bfifo", 1200, 5 }, { "bfifo", 0, 0 },
		{ "fq", 100, 16 }, { "fq", 3, 11 },
	};
	struct outcome one, many;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		memset(&one, 0, sizeof(one));
		memset(&many, 0, sizeof(many));
		enqueue(test, cases[i].name, cases[i].limit, false, &one);
		enqueue(test, cases[i].name, cases[i].limit, true, &many);
		KUNIT_EXPECT_EQ_MSG(test, many.qlen, cases[i].kept, "%s %u",
				    cases[i].name, cases[i].limit);
		KUNIT_EXPECT_EQ(test, many.qlen + many.drops, 2 * COUNT);
		KUNIT_EXPECT_EQ(test, many.dropped, many.drops);
		KUNIT_EXPECT_EQ(test, many.count, many.qlen);
		KUNIT_EXPECT_MEMEQ(test, &one, &many, sizeof(one));
	}
}

/* Has packets sent through another qdisc. */
static struct Qdisc *use(struct kunit *test, const struct Qdisc_ops *ops, u32 limit)
{
	struct fixture *fix = test->priv;
	struct Qdisc *old = fix->q, *q = make_qdisc_of(test, ops, limit);

	rcu_assign_pointer(fix->txq->qdisc, q);
	synchronize_net();
	fix->q = q;
	put_qdisc(old);
	return q;
}

static int batches, in_batches;

static void note_batch(struct sk_buff *skbs, struct Qdisc *q,
		       struct sk_buff **to_free)
{
	struct sk_buff *next;

	batches++;
	for (; skbs; skbs = next) {
		next = skbs->next;
		skb_mark_not_on_list(skbs);
		in_batches++;
		q->ops->enqueue(skbs, q, to_free);
	}
}

static struct Qdisc *use_noting_pfifo(struct kunit *test)
{
	static struct Qdisc_ops ops;

	ops = *find_ops(test, "pfifo");
	ops.enqueue_batch = note_batch;
	batches = 0;
	in_batches = 0;
	return use(test, &ops, COUNT);
}

static void packets_left_meanwhile_are_one_batch(struct kunit *test)
{
	struct Qdisc *q = use_noting_pfifo(test);
	int i;

	for (i = 0; i < 5; i++)
		meanwhile[i] = packet(test, 1 + i, 64);
	KUNIT_EXPECT_EQ(test, send(test, 0), NET_XMIT_SUCCESS);
	KUNIT_EXPECT_TRUE(test, in_order(0, 6));
	KUNIT_EXPECT_EQ(test, freed, 6);
	KUNIT_EXPECT_EQ(test, batches, 1);
	KUNIT_EXPECT_EQ(test, in_batches, 5);
	KUNIT_EXPECT_NULL(test, q->defer_list.first);
}

static bool is_free(spinlock_t *lock)
{
	if (!spin_trylock_bh(lock))
		return false;
	spin_unlock_bh(lock);
	return true;
}

/* Sends a packet, and three more while the combiner sends the first one. */
static void send_with_weight(struct kunit *test, int weight)
{
	struct Qdisc *q = use_noting_pfifo(test);
	int i;

	WRITE_ONCE(net_hotdata.dev_tx_weight, weight);
	for (i = 0; i < 3; i++)
		meanwhile[i] = packet(test, 1 + i, 64);
	KUNIT_EXPECT_EQ(test, send(test, 0), NET_XMIT_SUCCESS);
	/* The qdisc stops after a packet, and continues later. */
	until_sent(4);
	KUNIT_EXPECT_TRUE(test, in_order(0, 4));
	KUNIT_EXPECT_NULL(test, q->defer_list.first);
	KUNIT_EXPECT_TRUE(test, is_free(qdisc_lock(q)));
}

/* A packet after the role was given up is not left on the list. */
static void a_combiner_ends_after_enough(struct kunit *test)
{
	send_with_weight(test, 1);
	KUNIT_EXPECT_EQ(test, in_batches, 3);
}

/* dev_weight times dev_weight_tx_bias can overflow. */
static void a_combiner_ends_with_a_negative_weight(struct kunit *test)
{
	send_with_weight(test, -1);
	/* The role was given up before each packet was sent: none waited for it. */
	KUNIT_EXPECT_EQ(test, in_batches, 0);
}

/* Its senders take turns at cache lines of the qdisc instead, which costs no more. */
static void lockless_has_no_list(struct kunit *test)
{
	/* Its limit is the device's tx_queue_len. */
	struct Qdisc *q = use(test, &pfifo_fast_ops, 0);

	KUNIT_ASSERT_TRUE(test, q->flags & TCQ_F_NOLOCK);
	WRITE_ONCE(q->defer_list.first, (void *)XMIT_LLIST_BUSY);
	KUNIT_EXPECT_EQ(test, send(test, 0), NET_XMIT_SUCCESS);
	KUNIT_EXPECT_TRUE(test, in_order(0, 1));
	WRITE_ONCE(q->defer_list.first, NULL);
}

/* Sends a packet of @sk through a qdisc, and checks whether its flow is known. */
static void send_of(struct kunit *test, const char *name, struct sock *sk,
		    bool busy, bool known)
{
	struct Qdisc *q = make_qdisc(test, name, COUNT);
	struct sk_buff *skb = packet(test, 0, 64);
	struct fixture *fix = test->priv;

	rcu_assign_pointer(fix->txq->qdisc, q);
	skb_clear_hash(skb);
	skb->sk = sk;
	/* The packet stays in the qdisc, or on the list. */
	netif_tx_stop_queue(fix->txq);
	if (busy)
		WRITE_ONCE(q->defer_list.first, (void *)XMIT_LLIST_BUSY);
	skb_get(skb);
	KUNIT_EXPECT_EQ(test, dev_queue_xmit(skb), NET_XMIT_SUCCESS);
	KUNIT_EXPECT_EQ(test, !!skb->sw_hash, known);
	KUNIT_EXPECT_EQ(test, q->q.qlen, !busy);
	WRITE_ONCE(q->defer_list.first, NULL);
	rcu_assign_pointer(fix->txq->qdisc, fix->q);
	synchronize_net();
	/* The list owned the packet. */
	if (busy)
		kfree_skb(skb);
	put_qdisc(q);
	kfree_skb(skb);
	netif_tx_start_queue(fix->txq);
}

static void the_flow_is_known_before_the_lock_is_taken(struct kunit *test)
{
	struct sock *listener = kunit_kzalloc(test, sizeof(*listener), GFP_KERNEL);
	int busy;

	KUNIT_ASSERT_NOT_NULL(test, listener);
	listener->sk_state = TCP_LISTEN;
	for (busy = 0; busy < 2; busy++) {
		send_of(test, "pfifo", NULL, busy, false);
		send_of(test, "pfifo", listener, busy, false);
		send_of(test, "fq", NULL, busy, true);
		/* An answer to a SYN: there are many of them in a flood. */
		send_of(test, "fq", listener, busy, true);
	}
}

static struct kunit_case xmit_llist_cases[] = {
	KUNIT_CASE(alone_goes_straight_to_the_device),
	KUNIT_CASE(a_stopped_queue_is_woken),
	KUNIT_CASE(a_combiner_does_not_hold_up_others),
	KUNIT_CASE(both_leave_packets_to_the_combiner),
	KUNIT_CASE(the_list_has_a_limit),
	KUNIT_CASE(a_deactivated_qdisc_drops),
	KUNIT_CASE(a_batch_is_like_one_by_one),
	KUNIT_CASE(packets_left_meanwhile_are_one_batch),
	KUNIT_CASE(a_combiner_ends_after_enough),
	KUNIT_CASE(a_combiner_ends_with_a_negative_weight),
	KUNIT_CASE(lockless_has_no_list),
	KUNIT_CASE(the_flow_is_known_before_the_lock_is_taken),
	{}
};

static struct kunit_suite xmit_llist_suite = {
	.name		= "xmit_llist",
	.init		= xmit_llist_init,
	.exit		= xmit_llist_exit,
	.test_cases	= xmit_llist_cases,
};

kunit_test_suite(xmit_llist_suite);
