/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Array-based lock-free queue of pointers.
 *
 * A bounded FIFO with bulk operations: each costs one update of a position, or
 * one locked instruction if an end has several users. It is implemented in
 * Rust, see rust/kernel/sync/alf_queue.rs, and all functions are exported for
 * GPL modules.
 *
 * Each end of a queue has one of two kinds of users:
 *
 * - A single producer (consumer) at a time: alf_sp_enqueue()
 *   (alf_sc_dequeue()). The caller makes sure that there is no concurrent user
 *   of that end, and that the next user is ordered after this one, for example
 *   by a lock.
 * - Several concurrent ones: alf_mp_enqueue() (alf_mc_dequeue()). A call may
 *   have to wait for earlier calls on other CPUs, and disables preemption so
 *   that others do not wait for long. Users of an end must not interrupt each
 *   other on one CPU, or they deadlock: call with bottom halves disabled if
 *   softirqs use that end, and with interrupts disabled if hard interrupt
 *   handlers do. Not from an NMI.
 *
 * The two kinds must not be mixed on one end at the same time. A consumer of a
 * pointer sees all writes that its producer made before enqueueing it.
 */
#ifndef _LINUX_ALF_QUEUE_H
#define _LINUX_ALF_QUEUE_H

#include <linux/types.h>

struct alf_queue;

/**
 * alf_queue_alloc() - allocate a queue
 * @size: number of pointers that fit, a power of two, at most 2^20
 * @gfp: allocation flags
 *
 * Return: the queue, or an error pointer: -EINVAL if @size is not a power of
 * two or too large, -ENOMEM if there is no memory.
 */
struct alf_queue *alf_queue_alloc(u32 size, gfp_t gfp);

/**
 * alf_queue_free() - free a queue
 * @q: the queue, or NULL; it must not be in use
 *
 * This does not free the targets of pointers that are still in the queue.
 *
 * Context: As for kvfree(), which may sleep in process context.
 */
void alf_queue_free(struct alf_queue *q);

/**
 * alf_sp_enqueue() - add all of some pointers, or none; single producer
 * @q: the queue
 * @ptr: array of the pointers
 * @n: number of pointers
 *
 * Return: @n, or 0 if there is no room for all of them.
 */
int alf_sp_enqueue(struct alf_queue *q, void **ptr, u32 n);

/**
 * alf_mp_enqueue() - add all of some pointers, or none; several producers
 * @q: the queue
 * @ptr: array of the pointers
 * @n: number of pointers
 *
 * The pointers are contiguous in the queue.
 *
 * Return: @n, or 0 if there is no room for all of them.
 */
int alf_mp_enqueue(struct alf_queue *q, void **ptr, u32 n);

/**
 * alf_sc_dequeue() - take out pointers; single consumer
 * @q: the queue
 * @ptr: where to store them
 * @n: maximum number of pointers
 *
 * Return: the number of pointers taken out.
 */
int alf_sc_dequeue(struct alf_queue *q, void **ptr, u32 n);

/**
 * alf_mc_dequeue() - take out pointers; several consumers
 * @q: the queue
 * @ptr: where to store them
 * @n: maximum number of pointers
 *
 * Return: the number of pointers taken out.
 */
int alf_mc_dequeue(struct alf_queue *q, void **ptr, u32 n);

/**
 * alf_queue_empty() - check whether a queue is empty
 * @q: the queue
 *
 * The result may be outdated if other CPUs use the queue.
 *
 * Return: true if it was empty.
 */
bool alf_queue_empty(struct alf_queue *q);

/**
 * alf_queue_count() - get the number of pointers in a queue
 * @q: the queue
 *
 * The result may be outdated if other CPUs use the queue.
 *
 * Return: the number of pointers, between 0 and the size.
 */
int alf_queue_count(struct alf_queue *q);

/**
 * alf_queue_avail_space() - get the number of pointers that still fit
 * @q: the queue
 *
 * The result may be outdated if other CPUs use the queue.
 *
 * Return: the number of pointers, between 0 and the size.
 */
int alf_queue_avail_space(struct alf_queue *q);

#endif /* _LINUX_ALF_QUEUE_H */
