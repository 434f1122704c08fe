// SPDX-License-Identifier: GPL-2.0

#include <linux/netdevice.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#ifdef CONFIG_NET_SCHED

__rust_helper void *rust_helper_qdisc_priv(struct Qdisc *sch)
{
	return qdisc_priv(sch);
}

__rust_helper unsigned int rust_helper_qdisc_pkt_len(const struct sk_buff *skb)
{
	return qdisc_pkt_len(skb);
}

__rust_helper unsigned int rust_helper_qdisc_tx_queue_len(struct Qdisc *sch)
{
	return READ_ONCE(qdisc_dev(sch)->tx_queue_len);
}

__rust_helper void rust_helper_qdisc_allow_bypass(struct Qdisc *sch)
{
	sch->flags |= TCQ_F_CAN_BYPASS;
}

__rust_helper void rust_helper_qdisc_enqueued(struct Qdisc *sch,
					      unsigned int bytes)
{
	qdisc_update_stats_at_enqueue(sch, bytes);
}

__rust_helper void rust_helper_qdisc_dequeued(struct Qdisc *sch,
					      struct sk_buff *skb)
{
	qdisc_update_stats_at_dequeue(sch, skb);
}

__rust_helper int rust_helper_qdisc_refuse(struct sk_buff *skb, struct Qdisc *sch,
					   struct sk_buff **to_free,
					   enum qdisc_drop_reason reason)
{
	tcf_set_qdisc_drop_reason(skb, reason);
	if (qdisc_is_percpu_stats(sch))
		return qdisc_drop_cpu(skb, sch, to_free);
	return qdisc_drop(skb, sch, to_free);
}

/*
 * Whether packets may have been enqueued after the qdisc was found empty. A CPU
 * that enqueued one and could not run the qdisc has set a flag after that. It is
 * cleared here, and then the qdisc has to be checked again: if it is empty, the
 * run can end without scheduling another one.
 */
__rust_helper bool rust_helper_qdisc_look_again(struct Qdisc *sch)
{
	if (nolock_qdisc_is_empty(sch))
		return false;

	clear_bit(__QDISC_STATE_MISSED, &sch->state);
	clear_bit(__QDISC_STATE_DRAINING, &sch->state);
	/* Order this before the next dequeue. */
	smp_mb__after_atomic();
	return true;
}

/* Resets the per-CPU counters of packets in a qdisc that is empty now. */
__rust_helper void rust_helper_qdisc_emptied(struct Qdisc *sch)
{
	int cpu;

	if (!qdisc_is_percpu_stats(sch))
		return;
	for_each_possible_cpu(cpu) {
		struct gnet_stats_queue *stats = per_cpu_ptr(sch->cpu_qstats, cpu);

		stats->backlog = 0;
		stats->qlen = 0;
	}
}

/*
 * Excludes dequeueing and resets. RTNL is held, so that the qdisc does not become
 * the child of one with a lock meanwhile.
 */
__rust_helper void rust_helper_qdisc_dequeue_lock(struct Qdisc *sch)
{
	if (sch->flags & TCQ_F_NOLOCK)
		spin_lock_bh(&sch->seqlock);
	else
		sch_tree_lock(sch);
}

__rust_helper void rust_helper_qdisc_dequeue_unlock(struct Qdisc *sch)
{
	if (!(sch->flags & TCQ_F_NOLOCK)) {
		sch_tree_unlock(sch);
		return;
	}

	spin_unlock(&sch->seqlock);
	/*
	 * A CPU that could not run the qdisc meanwhile has set a flag and relies on
	 * this one, as on qdisc_run_end(): look at it after the lock is free.
	 */
	smp_mb();
	if (test_bit(__QDISC_STATE_MISSED, &sch->state))
		__netif_schedule(sch);
	local_bh_enable();
}

#endif
