// SPDX-License-Identifier: GPL-2.0
/*
 * Benchmarks of SKBs that NAPI consumes. Both designs are the same code in the same
 * kernel:
 *
 *	deferral	the default: packets of other CPUs are sent back, but those of
 *			page pools (ours);
 *	in place	all packets are freed where they are consumed, which is the case
 *			if net.core.skb_defer_max is 0 (reference).
 */

#include <linux/atomic.h>
#include <linux/bottom_half.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/hotdata.h>
#include <net/page_pool/helpers.h>

#include "bench.h"
#include "pair.h"

/* Room for a small packet and its struct skb_shared_info. */
#define FRAG	(SKB_DATA_ALIGN(128) + SKB_DATA_ALIGN(sizeof(struct skb_shared_info)))
/* The receive buffer of a driver: half a page. */
#define BUFFER	2048
#define CALLS	40000
#define LOT	256
#define LOTS	400
#define TURNS	50000

static const char *side;

static struct page_pool *pages;

static void report(u64 ps, const char *name)
{
	pr_info("bulk_bench: skb|%s|%s|%llu|ps\n", name, side, (unsigned long long)ps);
}

/* A packet as a driver receives it into the pages of a page pool. */
static struct sk_buff *build_received(void)
{
	unsigned int size = BUFFER;
	struct sk_buff *skb;
	void *data;

	data = page_pool_dev_alloc_va(pages, &size);
	if (!data)
		return NULL;
	skb = napi_build_skb(data, size);
	if (!skb) {
		page_pool_free_va(pages, data, false);
		return NULL;
	}
	skb_mark_for_recycle(skb);
	return skb;
}

/* A packet as a driver receives it into fragments of pages. */
static struct sk_buff *build_fragment(void)
{
	struct sk_buff *skb;
	void *data;

	data = napi_alloc_frag(FRAG);
	if (!data)
		return NULL;
	skb = napi_build_skb(data, FRAG);
	if (!skb)
		skb_free_frag(data);
	return skb;
}

/* A packet as a socket sends it. */
static struct sk_buff *build_sent(void)
{
	return alloc_skb(128, GFP_ATOMIC);
}

typedef struct sk_buff *(*builder)(void);

static unsigned int build(builder build_one, struct sk_buff **skbs, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		skbs[i] = build_one();
		if (!skbs[i])
			break;
	}
	return i;
}

static void consume(struct sk_buff **skbs, unsigned int n)
{
	/* A budget other than zero means NAPI context. */
	for (unsigned int i = 0; i < n; i++)
		napi_consume_skb(skbs[i], 64);
}

/* One CPU builds @n packets and then consumes them. */
static void time_one_cpu(unsigned int n, const char *name)
{
	static struct sk_buff *skbs[LOT];
	u64 time;

	local_bh_disable();
	time = bench_ps(n, CALLS / n, consume(skbs, build(build_fragment, skbs, n)));
	local_bh_enable();
	report(time, name);
}

/*
 * The building side writes @built, the consuming side writes @consumed. Two
 * lots circulate.
 */
struct across {
	builder build_one;
	struct sk_buff *skbs[2][LOT];
	unsigned int len[2];
	atomic_t built, consumed;
	u64 start, end;
};

static void builds(void *data)
{
	struct across *x = data;

	for (unsigned int round = 0; round < LOTS; round++) {
		while (round - (unsigned int)atomic_read_acquire(&x->consumed) >= 2)
			cond_resched();

		if (round == LOTS / 10)
			x->start = ktime_get_ns();
		local_bh_disable();
		x->len[round % 2] = build(x->build_one, x->skbs[round % 2], LOT);
		/* Runs the softirq that frees SKBs which other CPUs returned. */
		local_bh_enable();
		atomic_set_release(&x->built, round + 1);
	}
}

static void consumes(void *data)
{
	struct across *x = data;

	for (unsigned int round = 0; round < LOTS; round++) {
		while ((unsigned int)atomic_read_acquire(&x->built) == round)
			cond_resched();

		local_bh_disable();
		consume(x->skbs[round % 2], x->len[round % 2]);
		local_bh_enable();
		atomic_set_release(&x->consumed, round + 1);
	}
	x->end = ktime_get_ns();
}

/*
 * One CPU builds, another one consumes. The result is the time per packet from
 * end to end, since some of the work runs in places that cannot be timed by
 * themselves.
 */
static int time_two_cpus(builder build_one, const char *name)
{
	struct across *x = kzalloc_obj(*x);
	u64 times[BENCH_REPEATS];
	int err = 0;

	if (!x)
		return -ENOMEM;
	x->build_one = build_one;
	for (int i = 0; !err && i < BENCH_REPEATS; i++) {
		atomic_set(&x->built, 0);
		atomic_set(&x->consumed, 0);
		err = bench_pair(builds, consumes, x);
		times[i] = x->end - x->start;
	}
	kfree(x);
	if (!err)
		report(bench_median(times) * 1000 / ((LOTS - LOTS / 10) * LOT), name);
	return err == -ENODEV ? 0 : err;
}

/* One packet under way: even turns are those of the first CPU. */
struct ping_pong {
	struct sk_buff *skb;
	atomic_t turn;
	u64 start, end;
};

/* Consumes the other CPU's packet and builds one, in every other turn. */
static void takes_turns(struct ping_pong *p, unsigned int first)
{
	for (unsigned int turn = first; turn < TURNS; turn += 2) {
		while ((unsigned int)atomic_read_acquire(&p->turn) != turn)
			cond_resched();

		if (turn == TURNS / 10)
			p->start = ktime_get_ns();
		local_bh_disable();
		if (p->skb)
			consume(&p->skb, 1);
		p->skb = build_sent();
		local_bh_enable();
		atomic_set_release(&p->turn, turn + 1);
	}
}

static void ping(void *data)
{
	takes_turns(data, 0);
}

static void pong(void *data)
{
	struct ping_pong *p = data;

	takes_turns(p, 1);
	p->end = ktime_get_ns();
}

/*
 * Two CPUs answer each other, a packet at a time. Each consumes what the other
 * has built, as the completion of a queue does whose interrupts another CPU takes.
 */
static int time_ping_pong(void)
{
	u64 times[BENCH_REPEATS];
	int err = 0;

	for (int i = 0; !err && i < BENCH_REPEATS; i++) {
		struct ping_pong p = {};

		err = bench_pair(ping, pong, &p);
		kfree_skb(p.skb);
		times[i] = p.end - p.start;
	}
	if (!err)
		report(bench_median(times) * 1000 / (TURNS - TURNS / 10), "ping-pong");
	return err == -ENODEV ? 0 : err;
}

static int time_all(void)
{
	int err;

	time_one_cpu(64, "one cpu");
	time_one_cpu(LOT, "one cpu 256");
	err = time_two_cpus(build_received, "two cpus");
	if (!err)
		err = time_two_cpus(build_fragment, "two cpus fragments");
	if (!err)
		err = time_two_cpus(build_sent, "two cpus sent");
	if (!err)
		err = time_ping_pong();
	return err;
}

static int __init bench_skb(void)
{
	const struct page_pool_params params = {
		.pool_size = 1024,
		.nid = NUMA_NO_NODE,
	};
	int err;

	pages = page_pool_create(&params);
	if (IS_ERR(pages))
		return PTR_ERR(pages);

	side = READ_ONCE(net_hotdata.sysctl_skb_defer_max) ? "ours" : "reference";
	err = time_all();
	page_pool_destroy(pages);
	return err;
}

static void __exit bench_skb_exit(void)
{
}

module_init(bench_skb);
module_exit(bench_skb_exit);

MODULE_AUTHOR("The skbulk authors");
MODULE_DESCRIPTION("Reference for benchmarks in Rust: the SKB cache");
MODULE_LICENSE("GPL");
