// SPDX-License-Identifier: GPL-2.0
/* The reference for the benchmarks of array-based queues: ptr_ring. */

#include <linux/bottom_half.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/ptr_ring.h>

#include "bench.h"

#define CAPACITY 256
#define BULK 16
#define ELEMENTS 400000

static const int bulks[] = { 1, 2, 4, 8, 16, 32 };
static const char * const forms[] = { "spsc", "mpmc", "mpsc", "spmc" };

static u64 calls(int bulk)
{
	return max(400000 / bulk, 100000);
}

static noinline u64 in_bulk(struct ptr_ring *ring, int bulk)
{
	void *elements[32];

	for (int i = 0; i < bulk; i++)
		elements[i] = (void *)(unsigned long)(i + 1);

	return bench_ps(bulk, calls(bulk), ({
		for (int i = 0; i < bulk; i++)
			ptr_ring_produce(ring, elements[i]);
		ptr_ring_consume_batched(ring, elements, bulk);
	}));
}

/* The same without locks, which one producer and one consumer do not need. */
static noinline u64 in_bulk_unlocked(struct ptr_ring *ring, int bulk)
{
	void *elements[32];

	for (int i = 0; i < bulk; i++)
		elements[i] = (void *)(unsigned long)(i + 1);

	return bench_ps(bulk, calls(bulk), ({
		for (int i = 0; i < bulk; i++)
			__ptr_ring_produce(ring, elements[i]);
		__ptr_ring_consume_batched(ring, elements, bulk);
	}));
}

static noinline u64 one_by_one(struct ptr_ring *ring)
{
	void *element = (void *)1UL;

	return bench_ps(1, calls(1), ({
		ptr_ring_produce(ring, element);
		element = ptr_ring_consume(ring);
	}));
}

static int one_cpu(void)
{
	struct ptr_ring ring;
	int err;

	for (int form = 0; form < ARRAY_SIZE(forms); form++) {
		err = ptr_ring_init(&ring, CAPACITY, GFP_KERNEL);
		if (err)
			return err;

		local_bh_disable();
		for (int i = 0; i < ARRAY_SIZE(bulks); i++) {
			int bulk = bulks[i];
			u64 ps = bulk == 1 ? one_by_one(&ring) : in_bulk(&ring, bulk);

			bench_time("alf_queue", ps, "%s %d", forms[form], bulk);
		}
		/* Shows the share of the locks. */
		for (int i = 1; !form && i < ARRAY_SIZE(bulks); i++)
			bench_time("alf_queue-unlocked", in_bulk_unlocked(&ring, bulks[i]),
				   "spsc %d", bulks[i]);
		local_bh_enable();
		ptr_ring_cleanup(&ring, NULL);
	}
	return 0;
}

struct race {
	struct ptr_ring ring;
	struct completion go;
	/* A thread could not be started. Written before @go is completed. */
	bool failed;
	atomic_t ready;
	u64 ns[2];
};

struct racer {
	struct race *race;
	void (*run)(struct ptr_ring *ring);
	int number;
};

static void produce(struct ptr_ring *ring)
{
	for (int left = ELEMENTS; left > 0; left--)
		while (ptr_ring_produce(ring, (void *)1UL))
			cpu_relax();
}

static void consume(struct ptr_ring *ring)
{
	void *elements[BULK];

	for (int left = ELEMENTS; left > 0;) {
		int got = ptr_ring_consume_batched(ring, elements, BULK);

		if (!got)
			cpu_relax();
		left -= got;
	}
}

static void exchange(struct ptr_ring *ring)
{
	void *elements[BULK];

	for (int left = ELEMENTS; left > 0; left -= BULK) {
		for (int i = 0; i < BULK; i++)
			while (ptr_ring_produce(ring, (void *)1UL))
				cpu_relax();
		for (int got = 0; got < BULK;) {
			int some = ptr_ring_consume_batched(ring, elements, BULK - got);

			if (!some)
				cpu_relax();
			got += some;
		}
	}
}

static int racer(void *data)
{
	struct racer *racer = data;
	struct race *race = racer->race;
	u64 start;

	wait_for_completion(&race->go);
	if (race->failed)
		goto stop;
	local_bh_disable();
	atomic_inc(&race->ready);
	while (atomic_read_acquire(&race->ready) != 2)
		cpu_relax();
	start = ktime_get_ns();
	racer->run(&race->ring);
	race->ns[racer->number] = ktime_get_ns() - start;
	local_bh_enable();

stop:
	/* Wait for kthread_stop(). */
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static int run_race(const char *name, u64 elements, void (*a)(struct ptr_ring *ring),
		    void (*b)(struct ptr_ring *ring))
{
	struct race race = { .ready = ATOMIC_INIT(0) };
	struct racer racers[] = {
		{ .race = &race, .run = a, .number = 0 },
		{ .race = &race, .run = b, .number = 1 },
	};
	int first = cpumask_first(cpu_online_mask);
	int second = cpumask_next(first, cpu_online_mask);
	struct task_struct *tasks[2];
	int err;

	if (second >= nr_cpu_ids)
		return 0;
	err = ptr_ring_init(&race.ring, CAPACITY, GFP_KERNEL);
	if (err)
		return err;
	init_completion(&race.go);

	tasks[0] = kthread_run_on_cpu(racer, &racers[0], first, "bulk_bench/%u");
	tasks[1] = kthread_run_on_cpu(racer, &racers[1], second, "bulk_bench/%u");
	for (int i = 0; i < 2; i++) {
		if (IS_ERR(tasks[i])) {
			err = PTR_ERR(tasks[i]);
			/* Alone, the other thread would spin without end. */
			race.failed = true;
		}
	}
	complete_all(&race.go);
	/* kthread_stop() skips a thread that has not started: wait. */
	while (!err && (!READ_ONCE(race.ns[0]) || !READ_ONCE(race.ns[1])))
		schedule_timeout_interruptible(1);
	for (int i = 0; i < 2; i++)
		if (!IS_ERR(tasks[i]))
			kthread_stop(tasks[i]);
	ptr_ring_cleanup(&race.ring, NULL);
	if (!err)
		bench_time("alf_queue-2cpu", max(race.ns[0], race.ns[1]) * 1000 / elements,
			   "%s %d", name, BULK);
	return err;
}

static int __init bench_alf_queue(void)
{
	int err = one_cpu();

	if (!err)
		err = run_race("spsc 1x1", ELEMENTS, produce, consume);
	if (!err)
		err = run_race("mpmc 1x1", ELEMENTS, produce, consume);
	if (!err)
		err = run_race("mpmc 2x2", 2 * ELEMENTS, exchange, exchange);
	return err;
}

static void __exit bench_alf_queue_exit(void)
{
}

module_init(bench_alf_queue);
module_exit(bench_alf_queue_exit);

MODULE_AUTHOR("The skbulk authors");
MODULE_DESCRIPTION("Reference for benchmarks in Rust: ptr_ring");
MODULE_LICENSE("GPL");
