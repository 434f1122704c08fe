// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the C interface of the array-based lock-free queue. The tests in
 * rust/kernel/sync/alf_queue cover the implementation and concurrent use.
 */

#include <kunit/test.h>
#include <linux/alf_queue.h>
#include <linux/bottom_half.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/smp.h>

typedef int (*alf_op)(struct alf_queue *q, void **ptr, u32 n);

static const struct ways {
	const char *name;
	alf_op enqueue;
	alf_op dequeue;
} ways[] = {
	{ "spsc", alf_sp_enqueue, alf_sc_dequeue },
	{ "mpsc", alf_mp_enqueue, alf_sc_dequeue },
	{ "spmc", alf_sp_enqueue, alf_mc_dequeue },
	{ "mpmc", alf_mp_enqueue, alf_mc_dequeue },
};

KUNIT_ARRAY_PARAM_DESC(ways, ways, name);

static void *number(unsigned long n)
{
	return (void *)n;
}

/* Enqueues @n numbers from @first on, if they fit. */
static int put(const struct ways *way, struct alf_queue *q, unsigned long first, u32 n)
{
	void *ptr[16];
	int ret;

	for (u32 i = 0; i < n; i++)
		ptr[i] = number(first + i);
	local_bh_disable();
	ret = way->enqueue(q, ptr, n);
	local_bh_enable();
	return ret;
}

static int take(const struct ways *way, struct alf_queue *q, void **ptr, u32 n)
{
	int ret;

	local_bh_disable();
	ret = way->dequeue(q, ptr, n);
	local_bh_enable();
	return ret;
}

static void alf_queue_test_sizes(struct kunit *test)
{
	static const u32 bad[] = { 0, 3, 12, (1 << 20) + 1, 1 << 21, U32_MAX };
	struct alf_queue *q;

	for (int i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ(test, PTR_ERR(alf_queue_alloc(bad[i], GFP_KERNEL)), -EINVAL);

	q = alf_queue_alloc(1, GFP_ATOMIC);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, q);
	KUNIT_EXPECT_EQ(test, alf_queue_avail_space(q), 1);
	alf_queue_free(q);
	alf_queue_free(NULL);
}

static void alf_queue_test_all_or_nothing(struct kunit *test)
{
	const struct ways *way = test->param_value;
	struct alf_queue *q = alf_queue_alloc(8, GFP_KERNEL);
	void *ptr[16];

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, q);
	KUNIT_EXPECT_TRUE(test, alf_queue_empty(q));
	KUNIT_EXPECT_EQ(test, take(way, q, ptr, 16), 0);

	KUNIT_EXPECT_EQ(test, put(way, q, 0, 5), 5);
	KUNIT_EXPECT_EQ(test, put(way, q, 5, 4), 0);
	KUNIT_EXPECT_EQ(test, put(way, q, 5, 0), 0);
	KUNIT_EXPECT_EQ(test, alf_queue_count(q), 5);
	KUNIT_EXPECT_EQ(test, alf_queue_avail_space(q), 3);
	KUNIT_EXPECT_EQ(test, put(way, q, 5, 3), 3);
	KUNIT_EXPECT_EQ(test, alf_queue_avail_space(q), 0);
	KUNIT_EXPECT_EQ(test, put(way, q, 8, 1), 0);
	KUNIT_EXPECT_FALSE(test, alf_queue_empty(q));

	KUNIT_EXPECT_EQ(test, take(way, q, ptr, 3), 3);
	KUNIT_EXPECT_EQ(test, take(way, q, ptr + 3, 13), 5);
	for (int i = 0; i < 8; i++)
		KUNIT_EXPECT_PTR_EQ(test, ptr[i], number(i));
	KUNIT_EXPECT_TRUE(test, alf_queue_empty(q));
	KUNIT_EXPECT_EQ(test, alf_queue_count(q), 0);
	alf_queue_free(q);
}

static void alf_queue_test_order(struct kunit *test)
{
	const struct ways *way = test->param_value;
	struct alf_queue *q = alf_queue_alloc(16, GFP_KERNEL);
	unsigned long in = 0, out = 0;
	void *ptr[16];

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, q);
	for (int round = 0; round < 1000; round++) {
		in += put(way, q, in, 1 + round % 11);
		for (int i = 0, n = take(way, q, ptr, 1 + round % 7); i < n; i++)
			KUNIT_ASSERT_PTR_EQ(test, ptr[i], number(out++));
		KUNIT_ASSERT_EQ(test, (unsigned long)alf_queue_count(q), in - out);
	}
	KUNIT_EXPECT_GT(test, out, 1000);
	alf_queue_free(q);
}

/* A queue may be used in both ways, one after the other. */
static void alf_queue_test_mixed(struct kunit *test)
{
	struct alf_queue *q = alf_queue_alloc(4, GFP_KERNEL);
	unsigned long in = 0, out = 0;
	void *ptr[4];

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, q);
	for (int round = 0; round < 100; round++) {
		in += put(&ways[round % 4], q, in, 3);
		for (int i = 0, n = take(&ways[round % 3], q, ptr, 2); i < n; i++)
			KUNIT_ASSERT_PTR_EQ(test, ptr[i], number(out++));
	}
	KUNIT_EXPECT_GT(test, out, 100);
	alf_queue_free(q);
}

#define MANY	2048

struct busy {
	struct alf_queue *q;
	void *ptr[MANY];
};

/* Uses a queue most of the time, so that it is mostly preempted while it does. */
static int use_without_end(void *data)
{
	struct busy *busy = data;

	while (!kthread_should_stop()) {
		alf_mp_enqueue(busy->q, busy->ptr, MANY);
		alf_mc_dequeue(busy->q, busy->ptr, MANY);
		cond_resched();
	}
	return 0;
}

/*
 * A user that has claimed slots is not preempted until it has copied. Otherwise a
 * thread that preempts it would wait for a user that cannot run.
 */
static void alf_queue_test_preemption(struct kunit *test)
{
	struct busy *busy = kunit_kzalloc(test, sizeof(*busy), GFP_KERNEL);
	struct task_struct *other;
	s64 longest = 0;

	if (!IS_ENABLED(CONFIG_PREEMPTION))
		kunit_skip(test, "there is no preemption");
	KUNIT_ASSERT_NOT_NULL(test, busy);
	busy->q = alf_queue_alloc(2 * MANY, GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, busy->q);

	migrate_disable();
	other = kthread_create_on_cpu(use_without_end, busy, smp_processor_id(),
				      "alf_busy/%u");
	if (!IS_ERR(other)) {
		get_task_struct(other);
		wake_up_process(other);
		sched_set_fifo(current);
		for (int i = 0; i < 200; i++) {
			ktime_t start;
			void *ptr[1] = { number(i) };

			/* Wakes at any point of the other one's work. */
			usleep_range(100 + i, 100 + i);
			start = ktime_get();
			alf_mp_enqueue(busy->q, ptr, 1);
			alf_mc_dequeue(busy->q, ptr, 1);
			longest = max(longest, ktime_to_ns(ktime_sub(ktime_get(), start)));
		}
		sched_set_normal(current, 0);
		kthread_stop_put(other);
	}
	migrate_enable();

	KUNIT_EXPECT_FALSE(test, IS_ERR(other));
	KUNIT_EXPECT_LT(test, longest, 50 * NSEC_PER_MSEC);
	alf_queue_free(busy->q);
}

static struct kunit_case alf_queue_test_cases[] = {
	KUNIT_CASE(alf_queue_test_sizes),
	KUNIT_CASE_PARAM(alf_queue_test_all_or_nothing, ways_gen_params),
	KUNIT_CASE_PARAM(alf_queue_test_order, ways_gen_params),
	KUNIT_CASE(alf_queue_test_mixed),
	KUNIT_CASE_SLOW(alf_queue_test_preemption),
	{}
};

static struct kunit_suite alf_queue_test_suite = {
	.name = "alf_queue",
	.test_cases = alf_queue_test_cases,
};

kunit_test_suite(alf_queue_test_suite);

MODULE_DESCRIPTION("KUnit tests of the array-based lock-free queue");
MODULE_LICENSE("GPL");
