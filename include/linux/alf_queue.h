/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Array-based lock-free queue of pointers.
 *
 * A bounded FIFO whose operations on many pointers cost one update of a
 * position, and with several users of an end one locked instruction. It is
 * implemented in Rust, see rust/kernel/sync/alf_queue.rs, and all functions are
 * exported for GPL modules.
 *
 * Each end of a queue has one of two kinds of users:
 *
 * - A single producer (consumer) at a time: alf_sp_enqueue() (alf_sc_dequeue()).
 *   Whoever calls these makes sure that nobody else uses that end meanwhile, and
 *   that the next one is ordered behind it, as by a lock.
 * - Several at the same time: alf_mp_enqueue() (alf_mc_dequeue()). A call may have
 *   to wait for calls that began before on other CPUs. Users of one end must not
 *   interrupt each other on one CPU, or the one that interrupts waits for ever:
 *   call with bottom halves disabled if softirqs use that end, with interrupts
 *   disabled if hard interrupt handlers do, and with preemption disabled in any
 *   case. Not from an NMI.
 *
 * The two kinds must not be mixed on one end at the same time. What is written
 * before a pointer is put in, whoever takes it out sees.
 */
#ifndef _LINUX_ALF_QUEUE_H
#define _LINUX_ALF_QUEUE_H

#include <linux/types.h>

struct alf_queue;

/**
 * alf_queue_alloc() - make a queue
 * @size: number of pointers that fit in, a power of two, at most 2^30
 * @gfp: how to allocate the memory
 *
 * Return: the queue, or an error pointer: -EINVAL for a size that is no power of
 * two or too large, -ENOMEM if there is no memory.
 */
struct alf_queue *alf_queue_alloc(u32 size, gfp_t gfp);

/**
 * alf_queue_free() - free a queue that nobody uses any more
 * @q: the queue, or NULL
 *
 * What the pointers in the queue point to is the caller's business.
 */
void alf_queue_free(struct alf_queue *q);

/**
 * alf_sp_enqueue() - put all of some pointers in, or none; a single producer
 * @q: the queue
 * @ptr: array of the pointers
 * @n: how many
 *
 * Return: @n, or 0 if there is no room for all of them.
 */
int alf_sp_enqueue(struct alf_queue *q, void **ptr, u32 n);

/**
 * alf_mp_enqueue() - put all of some pointers in, or none; several producers
 * @q: the queue
 * @ptr: array of the pointers
 * @n: how many
 *
 * The pointers are next to each other in the queue.
 *
 * Return: @n, or 0 if there is no room for all of them.
 */
int alf_mp_enqueue(struct alf_queue *q, void **ptr, u32 n);

/**
 * alf_sc_dequeue() - take out as many pointers as there are; a single consumer
 * @q: the queue
 * @ptr: where to put them
 * @n: how many at most
 *
 * Return: how many were taken out.
 */
int alf_sc_dequeue(struct alf_queue *q, void **ptr, u32 n);

/**
 * alf_mc_dequeue() - take out as many pointers as there are; several consumers
 * @q: the queue
 * @ptr: where to put them
 * @n: how many at most
 *
 * Return: how many were taken out.
 */
int alf_mc_dequeue(struct alf_queue *q, void **ptr, u32 n);

/**
 * alf_queue_empty() - is there nothing in a queue?
 * @q: the queue
 *
 * Others may have changed it when this returns.
 *
 * Return: true if it was empty.
 */
bool alf_queue_empty(struct alf_queue *q);

/**
 * alf_queue_count() - how many pointers are in a queue?
 * @q: the queue
 *
 * Others may have changed it when this returns.
 *
 * Return: the number of pointers, between 0 and the size.
 */
int alf_queue_count(struct alf_queue *q);

/**
 * alf_queue_avail_space() - how many pointers fit into a queue yet?
 * @q: the queue
 *
 * Others may have changed it when this returns.
 *
 * Return: the number of pointers, between 0 and the size.
 */
int alf_queue_avail_space(struct alf_queue *q);

#endif /* _LINUX_ALF_QUEUE_H */
