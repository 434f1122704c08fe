// SPDX-License-Identifier: GPL-2.0

#include <linux/ptp_clock_kernel.h>
#include <linux/timecounter.h>

/* The callers are built in, so a core that is a module is out of reach. */
__rust_helper struct ptp_clock *
rust_helper_ptp_clock_register_builtin(struct ptp_clock_info *info,
				       struct device *parent)
{
#if IS_BUILTIN(CONFIG_PTP_1588_CLOCK)
	return ptp_clock_register(info, parent);
#else
	return NULL;
#endif
}

__rust_helper void
rust_helper_ptp_clock_unregister_builtin(struct ptp_clock *ptp)
{
#if IS_BUILTIN(CONFIG_PTP_1588_CLOCK)
	ptp_clock_unregister(ptp);
#endif
}

__rust_helper int rust_helper_ptp_clock_index_builtin(struct ptp_clock *ptp)
{
#if IS_BUILTIN(CONFIG_PTP_1588_CLOCK)
	return ptp_clock_index(ptp);
#else
	return -1;
#endif
}

__rust_helper void
rust_helper_ptp_schedule_worker_builtin(struct ptp_clock *ptp,
					unsigned long delay)
{
#if IS_BUILTIN(CONFIG_PTP_1588_CLOCK)
	ptp_schedule_worker(ptp, delay);
#endif
}

__rust_helper void
rust_helper_ptp_read_system_prets(struct ptp_system_timestamp *sts)
{
	ptp_read_system_prets(sts);
}

__rust_helper void
rust_helper_ptp_read_system_postts(struct ptp_system_timestamp *sts)
{
	ptp_read_system_postts(sts);
}

__rust_helper u64 rust_helper_adjust_by_scaled_ppm(u64 base, long scaled_ppm)
{
	return adjust_by_scaled_ppm(base, scaled_ppm);
}

__rust_helper void rust_helper_timecounter_adjtime(struct timecounter *tc,
						   s64 delta)
{
	timecounter_adjtime(tc, delta);
}

__rust_helper u64 rust_helper_timecounter_cyc2time(const struct timecounter *tc,
						   u64 cycle_tstamp)
{
	return timecounter_cyc2time(tc, cycle_tstamp);
}

__rust_helper struct timespec64 rust_helper_ns_to_timespec64(s64 nsec)
{
	return ns_to_timespec64(nsec);
}

__rust_helper s64 rust_helper_timespec64_to_ns(const struct timespec64 *ts)
{
	return timespec64_to_ns(ts);
}
