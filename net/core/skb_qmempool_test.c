// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of the pool of skb heads. */

#include <kunit/resource.h>
#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/cpu.h>
#include <linux/interrupt.h>
#include <linux/mm.h>
#include <linux/page_ref.h>
#include <linux/skbuff.h>
#include <linux/smp.h>
#include <net/page_pool/helpers.h>
#include <net/skb_qmempool.h>

/* More than the capacity of a NAPI cache, so that it exchanges heads. */
#define COUNT	256
#define FRAG	(SKB_DATA_ALIGN(64) + SKB_DATA_ALIGN(sizeof(struct skb_shared_info)))

KUNIT_DEFINE_ACTION_WRAPPER(destroy_pages, page_pool_destroy, struct page_pool *);

struct lot {
	struct sk_buff *skbs[COUNT];
	unsigned int len;
};

/* A test leaves the pool as it was. */
static bool skb_pool_was_on;

static int skb_pool_test_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, sizeof(struct lot), GFP_KERNEL);
	if (!test->priv)
		return -ENOMEM;
	skb_pool_was_on = skb_qmempool_enabled();
	return skb_qmempool_set(false);
}

static void skb_pool_test_exit(struct kunit *test)
{
	skb_qmempool_set(skb_pool_was_on);
}

/* Packets whose data is a page of a page pool. */
static void build_of_pages(struct lot *lot, struct page_pool *pages)
{
	local_bh_disable();
	for (lot->len = 0; lot->len < COUNT; lot->len++) {
		struct page *page = page_pool_dev_alloc_pages(pages);
		struct sk_buff *skb = page ? napi_build_skb(page_address(page), PAGE_SIZE) : NULL;

		if (!skb) {
			if (page)
				page_pool_put_full_page(pages, page, false);
			break;
		}
		skb_mark_for_recycle(skb);
		lot->skbs[lot->len] = skb;
	}
	local_bh_enable();
}

static void build(struct lot *lot)
{
	local_bh_disable();
	for (lot->len = 0; lot->len < COUNT; lot->len++) {
		void *data = napi_alloc_frag(FRAG);
		struct sk_buff *skb = data ? napi_build_skb(data, FRAG) : NULL;

		if (!skb) {
			if (data)
				skb_free_frag(data);
			break;
		}
		lot->skbs[lot->len] = skb;
	}
	local_bh_enable();
}

/* A budget other than zero means NAPI context. */
static int consume(void *data)
{
	struct lot *lot = data;

	local_bh_disable();
	while (lot->len)
		napi_consume_skb(lot->skbs[--lot->len], 64);
	local_bh_enable();
	return 0;
}

static struct qmempool_stats stats(struct kunit *test)
{
	struct qmempool_stats stats = {};

	KUNIT_ASSERT_NOT_NULL(test, skb_qmempool);
	qmempool_stats(skb_qmempool, &stats);
	return stats;
}

static void skb_pool_test_switch(struct kunit *test)
{
	struct qmempool *pool;

	KUNIT_EXPECT_NULL(test, skb_qmempool_get());
	for (int round = 0; round < 2; round++) {
		KUNIT_EXPECT_EQ(test, skb_qmempool_set(true), 0);
		pool = skb_qmempool_get();
		KUNIT_EXPECT_NOT_NULL(test, pool);
		/* It is on already: this changes nothing. */
		KUNIT_EXPECT_EQ(test, skb_qmempool_set(true), 0);
		KUNIT_EXPECT_PTR_EQ(test, skb_qmempool_get(), pool);
		KUNIT_EXPECT_TRUE(test, skb_qmempool_enabled());
		KUNIT_EXPECT_EQ(test, skb_qmempool_set(false), 0);
		KUNIT_EXPECT_EQ(test, skb_qmempool_set(false), 0);
		KUNIT_EXPECT_NULL(test, skb_qmempool_get());
		KUNIT_EXPECT_FALSE(test, skb_qmempool_enabled());
	}
}

/* The surplus of a NAPI cache goes to the pool, and comes back. */
static void skb_pool_test_round(struct kunit *test)
{
	struct lot *lot = test->priv;
	struct qmempool_stats before, after;

	/* The test checks the magazines of one CPU: do not migrate. */
	migrate_disable();
	skb_qmempool_set(true);
	build(lot);
	KUNIT_EXPECT_EQ(test, lot->len, COUNT);
	for (int i = 0; i < lot->len; i++) {
		struct sk_buff *skb = lot->skbs[i];

		KUNIT_EXPECT_EQ(test, skb->len, 0);
		KUNIT_EXPECT_EQ(test, refcount_read(&skb->users), 1);
		KUNIT_EXPECT_EQ(test, skb->alloc_cpu, smp_processor_id());
		KUNIT_EXPECT_NULL(test, skb->dev);
		/* A head is not in use twice: each changes once. */
		skb->dev = (struct net_device *)skb;
		skb->pfmemalloc = true;
	}
	for (int i = 0; i < lot->len; i++)
		lot->skbs[i]->dev = NULL;
	consume(lot);

	before = stats(test);
	KUNIT_EXPECT_GE(test, before.held, COUNT / 2);
	build(lot);
	KUNIT_EXPECT_EQ(test, lot->len, COUNT);
	/* Heads are cleared on allocation. */
	for (int i = 0; i < lot->len; i++)
		KUNIT_EXPECT_FALSE(test, lot->skbs[i]->pfmemalloc);
	after = stats(test);
	KUNIT_EXPECT_GE(test, after.hits - before.hits, COUNT / 2);
	KUNIT_EXPECT_LE(test, after.held, before.held - COUNT / 4);
	/* Disabling destroys the pool; heads in use stay valid. */
	skb_qmempool_set(false);
	consume(lot);
	migrate_enable();
}

/* Number of heads in the magazines of an idle CPU. */
static unsigned int held_by(unsigned int cpu)
{
	struct qmempool_cpu *own = per_cpu_ptr(skb_qmempool->cpu, cpu);

	return own->count + own->previous_count;
}

/* With migration disabled, returns another CPU, or skips the test. */
static unsigned int other_cpu(struct kunit *test)
{
	unsigned int there = cpumask_any_but(cpu_online_mask, smp_processor_id());

	if (there >= nr_cpu_ids) {
		migrate_enable();
		kunit_skip(test, "there is one CPU only");
	}
	return there;
}

/* An skb from another CPU is freed on the CPU that consumes it. */
static void skb_pool_test_other_cpu(struct kunit *test)
{
	const struct page_pool_params params = { .pool_size = COUNT, .nid = NUMA_NO_NODE };
	struct page_pool *pages = page_pool_create(&params);
	struct lot *lot = test->priv;
	unsigned int there;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, pages);
	kunit_add_action(test, destroy_pages, pages);
	migrate_disable();
	there = other_cpu(test);
	skb_qmempool_set(true);
	build_of_pages(lot, pages);
	KUNIT_EXPECT_EQ(test, lot->len, COUNT);
	KUNIT_EXPECT_EQ(test, smp_call_on_cpu(there, consume, lot, false), 0);
	/* All but the heads that the NAPI cache of that CPU keeps. */
	KUNIT_EXPECT_GE(test, stats(test).held, COUNT / 2);
	/* They were not returned and put into the pool on this CPU. */
	KUNIT_EXPECT_GE(test, held_by(there), COUNT / 8);
	consume(lot);
	skb_qmempool_set(false);
	migrate_enable();
}

/* A page that is part of some packets. */
struct shared_page {
	struct lot *lot;
	struct page *page;
	int left;
};

static int consume_shared(void *data)
{
	struct shared_page *shared = data;

	local_bh_disable();
	consume(shared->lot);
	shared->left = page_ref_count(shared->page);
	local_bh_enable();
	return 0;
}

/* Data that is not from a page pool is freed on the CPU that allocated it. */
static void skb_pool_test_data_goes_back(struct kunit *test)
{
	struct shared_page shared = { .lot = test->priv, .page = alloc_page(GFP_KERNEL) };
	/* Fewer than what is sent back at once. */
	const unsigned int count = 16;
	unsigned int there;

	KUNIT_ASSERT_NOT_NULL(test, shared.page);
	migrate_disable();
	there = other_cpu(test);
	skb_qmempool_set(true);
	build(shared.lot);
	while (shared.lot->len > count)
		consume_skb(shared.lot->skbs[--shared.lot->len]);
	for (int i = 0; i < shared.lot->len; i++) {
		get_page(shared.page);
		skb_add_rx_frag(shared.lot->skbs[i], 0, shared.page, 0, 1, 1);
	}
	KUNIT_EXPECT_EQ(test, smp_call_on_cpu(there, consume_shared, &shared, false), 0);
	KUNIT_EXPECT_EQ(test, shared.left, 1 + count);
	/* They are on a list of this CPU, which looks at it when it receives packets. */
	for (int i = 0; i < 1000 && page_ref_count(shared.page) > 1; i++) {
		local_bh_disable();
		raise_softirq(NET_RX_SOFTIRQ);
		local_bh_enable();
	}
	KUNIT_EXPECT_EQ(test, page_ref_count(shared.page), 1);
	put_page(shared.page);
	skb_qmempool_set(false);
	migrate_enable();
}

/* Heads of fclone skbs belong to another cache. */
static void skb_pool_test_fclone(struct kunit *test)
{
	struct lot *lot = test->priv;

	skb_qmempool_set(true);
	for (lot->len = 0; lot->len < COUNT; lot->len++) {
		lot->skbs[lot->len] = alloc_skb_fclone(64, GFP_KERNEL);
		if (!lot->skbs[lot->len])
			break;
	}
	KUNIT_EXPECT_EQ(test, lot->len, COUNT);
	consume(lot);
	KUNIT_EXPECT_EQ(test, stats(test).held, 0);
	KUNIT_EXPECT_EQ(test, stats(test).exchanges + stats(test).returns, 0);
	skb_qmempool_set(false);
}

static struct kunit_case skb_pool_test_cases[] = {
	KUNIT_CASE(skb_pool_test_switch),
	KUNIT_CASE(skb_pool_test_round),
	KUNIT_CASE(skb_pool_test_other_cpu),
	KUNIT_CASE(skb_pool_test_data_goes_back),
	KUNIT_CASE(skb_pool_test_fclone),
	{}
};

static struct kunit_suite skb_pool_test_suite = {
	.name = "skb_qmempool",
	.init = skb_pool_test_init,
	.exit = skb_pool_test_exit,
	.test_cases = skb_pool_test_cases,
};

kunit_test_suite(skb_pool_test_suite);
