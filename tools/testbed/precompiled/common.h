/* SPDX-License-Identifier: GPL-2.0 */
/* Headers that most files of the testbed's kernels include: cc has them parsed once. */
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/mm.h>
#include <linux/swap.h>
#include <linux/pagemap.h>
#include <linux/highmem.h>
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/interrupt.h>
#include <linux/syscalls.h>
#include <linux/seq_file.h>
#include <linux/proc_fs.h>
#include <linux/debugfs.h>
#include <linux/nsproxy.h>
#include <linux/platform_device.h>
#include <linux/pci.h>
#include <linux/netdevice.h>
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>
#include <linux/inetdevice.h>
#include <net/sock.h>
#include <net/ip.h>
#include <net/genetlink.h>
