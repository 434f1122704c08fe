/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timing of loops, and how a result is reported: the C counterpart of
 * rust_bulk_bench/timing.rs, which see.
 */
#ifndef _BULK_BENCH_H
#define _BULK_BENCH_H

#include <linux/ktime.h>
#include <linux/printk.h>
#include <linux/sort.h>

#define BENCH_REPEATS 5

/* Reports what one operation of a case took. The case is a format. */
#define bench_time(bench, ps, fmt, ...)				\
	pr_info("bulk_bench: " bench "|" fmt "|reference|%llu|ps\n", \
		##__VA_ARGS__, (unsigned long long)(ps))

/* Reports a figure that is not a time. */
#define bench_figure(bench, value, unit, fmt, ...)			\
	pr_info("bulk_bench: " bench "|" fmt "|reference|%llu|" unit "\n", \
		##__VA_ARGS__, (unsigned long long)(value))

#define bench_median(times)	bench_median_of(times, BENCH_REPEATS)

/* Nanoseconds that @body takes when it is run @calls times. */
#define bench_ns(calls, body)					\
({								\
	u64 _left = (calls);					\
	u64 _start = ktime_get_ns();				\
	while (_left--) {					\
		body;						\
	}							\
	ktime_get_ns() - _start;				\
})

/*
 * Picoseconds that one operation takes, where @body does @operations of them
 * and is run @calls times in a row. What an empty loop takes is subtracted.
 */
#define bench_ps(operations, calls, body)			\
({								\
	u64 _times[BENCH_REPEATS];				\
	u64 _calls = (calls);					\
	for (int _i = 0; _i < BENCH_REPEATS; _i++) {		\
		u64 _full = bench_ns(_calls, body);		\
		u64 _empty = bench_ns(_calls, barrier());	\
		_times[_i] = _full > _empty ? _full - _empty : 0; \
	}							\
	bench_median(_times) * 1000 / (_calls * (operations)); \
})

u64 bench_median_of(u64 *times, size_t n);
int bench_pair(void (*one)(void *), void (*two)(void *), void *data);

int bench_slab(void);
int bench_alf_queue(void);
int bench_qmempool(void);
int bench_skb(void);

#endif
