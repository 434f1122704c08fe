// SPDX-License-Identifier: GPL-2.0
/*
 * Benchmarks of the SKB cache. Both sides are the same code in the same kernel,
 * with the pool between NAPI caches and slab (ours) and without (reference).
 */

#include <linux/atomic.h>
#include <linux/bottom_half.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/skb_qmempool.h>

#include "bench.h"
#include "pair.h"

/* Room for a small packet and its struct skb_shared_info. */
#define FRAG	(SKB_DATA_ALIGN(128) + SKB_DATA_ALIGN(sizeof(struct skb_shared_info)))
#define CALLS	40000
#define LOT	256
#define LOTS	400

static const char *side;

#define skb_time(ps, fmt, ...)						\
	pr_info("bulk_bench: skb|" fmt "|%s|%llu|ps\n",			\
		##__VA_ARGS__, side, (unsigned long long)(ps))

static unsigned int build(struct sk_buff **skbs, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		void *data = napi_alloc_frag(FRAG);

		if (!data)
			break;
		skbs[i] = napi_build_skb(data, FRAG);
		if (!skbs[i]) {
			skb_free_frag(data);
			break;
		}
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
	time = bench_ps(n, CALLS / n, consume(skbs, build(skbs, n)));
	local_bh_enable();
	skb_time(time, "%s", name);
}

/*
 * The building side writes @built, the consuming side writes @consumed. Two
 * lots circulate.
 */
struct across {
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
		x->len[round % 2] = build(x->skbs[round % 2], LOT);
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
static int time_two_cpus(void)
{
	struct across *x = kzalloc_obj(*x);
	u64 times[BENCH_REPEATS];
	int err = 0;

	if (!x)
		return -ENOMEM;
	for (int i = 0; !err && i < BENCH_REPEATS; i++) {
		atomic_set(&x->built, 0);
		atomic_set(&x->consumed, 0);
		err = bench_pair(builds, consumes, x);
		times[i] = x->end - x->start;
	}
	kfree(x);
	if (!err)
		skb_time(bench_median(times) * 1000 / ((LOTS - LOTS / 10) * LOT),
			 "two cpus");
	return err == -ENODEV ? 0 : err;
}

static int __init bench_skb(void)
{
	int err;

	for (int on = 0; on <= 1; on++) {
		side = on ? "ours" : "reference";
		err = skb_qmempool_set(on);
		if (err == -EOPNOTSUPP)
			return 0;
		if (err)
			return err;

		time_one_cpu(64, "one cpu");
		time_one_cpu(LOT, "one cpu 256");
		err = time_two_cpus();
		skb_qmempool_set(false);
		if (err)
			return err;
	}
	return 0;
}

static void __exit bench_skb_exit(void)
{
}

module_init(bench_skb);
module_exit(bench_skb_exit);

MODULE_AUTHOR("The skbulk authors");
MODULE_DESCRIPTION("Reference for benchmarks in Rust: the SKB cache");
MODULE_LICENSE("GPL");
