/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timing of loops, and the format of results: the C counterpart of
 * ../timing.rs. Each bench_*.c is a module that runs its benchmark when it is
 * loaded.
 */
#ifndef _BULK_BENCH_H
#define _BULK_BENCH_H

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/sort.h>

#define BENCH_REPEATS 5

static inline int bench_compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static inline u64 bench_median_of(u64 *times, size_t n)
{
	sort(times, n, sizeof(*times), bench_compare, NULL);
	return times[n / 2];
}

/* Reports the time of one operation of a case. The case is a format. */
#define bench_time(bench, ps, fmt, ...)				\
	pr_info("bulk_bench: " bench "|" fmt "|reference|%llu|ps\n", \
		##__VA_ARGS__, (unsigned long long)(ps))

#define bench_median(times)	bench_median_of(times, BENCH_REPEATS)

/* Returns the time that @calls runs of @body take, in nanoseconds. */
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
 * Returns the time of one operation, in picoseconds, where @body does
 * @operations of them and runs @calls times in a row. The time of an empty loop
 * is subtracted.
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

#endif
