/* SPDX-License-Identifier: GPL-2.0 */
/* Runs two functions at the same time, each on a CPU of its own. */

#ifndef _BULK_BENCH_PAIR_H
#define _BULK_BENCH_PAIR_H

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched/task.h>

struct side {
	void (*run)(void *data);
	void *data;
	struct completion done;
};

static int run_side(void *data)
{
	struct side *side = data;

	side->run(side->data);
	complete(&side->done);
	return 0;
}

static struct task_struct *new_side(struct side *side, unsigned int cpu)
{
	init_completion(&side->done);
	return kthread_create_on_cpu(run_side, side, cpu, "bulk_bench/%u");
}

static void join_side(struct side *side, struct task_struct *task)
{
	wait_for_completion(&side->done);
	kthread_stop_put(task);
}

/*
 * Runs @one and @two with @data, and waits for both. Returns -ENODEV, without
 * running either, if only one CPU is online.
 */
static int bench_pair(void (*one)(void *), void (*two)(void *), void *data)
{
	unsigned int cpu = cpumask_first(cpu_online_mask);
	unsigned int other = cpumask_next(cpu, cpu_online_mask);
	struct side sides[] = { { one, data }, { two, data } };
	struct task_struct *tasks[2];

	if (other >= nr_cpu_ids)
		return -ENODEV;

	tasks[0] = new_side(&sides[0], cpu);
	if (IS_ERR(tasks[0]))
		return PTR_ERR(tasks[0]);
	tasks[1] = new_side(&sides[1], other);
	if (IS_ERR(tasks[1])) {
		kthread_stop(tasks[0]);
		return PTR_ERR(tasks[1]);
	}

	get_task_struct(tasks[0]);
	get_task_struct(tasks[1]);
	wake_up_process(tasks[0]);
	wake_up_process(tasks[1]);
	join_side(&sides[0], tasks[0]);
	join_side(&sides[1], tasks[1]);
	return 0;
}

#endif
