// SPDX-License-Identifier: GPL-2.0
/*
 * A PCI card that is a library of the process: an access to it is a call.
 *
 * The library says what the card answers, so that it can say anything: this is
 * for fuzzing drivers. Time travels, so that nothing has to be waited for.
 */
#include <linux/debug_locks.h>
#include <linux/dma-direct.h>
#include <linux/dma-map-ops.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/panic_notifier.h>
#include <linux/pci.h>
#include <linux/reboot.h>
#include <linux/time-internal.h>
#include <linux/unaligned.h>
#include <as-layout.h>
#include <mem_user.h>

#include "pci_card.h"
#include "virt-pci.h"

/*
 * Nanoseconds that an access takes, so that loops which wait do come to an end,
 * and accesses after which the time moves on: to move it costs as much as they do.
 */
#define ACCESS_NS	500
#define AT_ONCE		16
/*
 * Reads that find the same, after each of which an access takes twice as long,
 * and how often that is so: a driver that waits for what never comes makes some
 * hundreds of accesses then, and not as many as fit into the time it waits.
 */
#define PATIENCE	32
#define MOST_DOUBLINGS	12
/* A driver that makes more of them for one input waits without an end. */
#define MOST_ACCESSES	5000000
/* Nanoseconds after which an input would never end. */
#define LIFE_NS		(3600 * NSEC_PER_SEC)
/* Nanoseconds after which the card notices an access. */
#define NOTICE_NS	1000

static char *library;
module_param(library, charp, 0);
MODULE_PARM_DESC(library, "path of the card");

static char *driver = "ixgbe_rust";
module_param(driver, charp, 0);
MODULE_PARM_DESC(driver, "name of the driver");

static unsigned int lives = 1;
module_param(lives, uint, 0);
MODULE_PARM_DESC(lives, "how often the driver is bound");

static ushort requests = U16_MAX;
module_param(requests, ushort, 0);
MODULE_PARM_DESC(requests, "a bit for each kind of users' requests that are made");

static char *inputs;
module_param(inputs, charp, 0);
MODULE_PARM_DESC(inputs, "a folder of inputs, or one");

static bool data;
module_param(data, bool, 0);
MODULE_PARM_DESC(data, "whether inputs begin when the device is open");

const struct card_ops *card;

/*
 * The requests of users, two bytes; with lies about data, what happens in
 * between; and, behind the header, what the card makes of the rest.
 */
static u8 input[4096];
#define HEADER		8
#define BETWEEN		2
#define CHANGES_SETTINGS	BIT(0)
/* The card still lies when the driver is unbound. */
#define LIES_TO_THE_END		BIT(1)

static unsigned long accesses;

/* The last read or write, and how often the same was read since something has changed. */
struct card_access {
	int bar;
	unsigned int offset;
	unsigned long value;
};

static struct card_access last_read, last_write;
static unsigned int repeats;
/* Nanoseconds of accesses after which the time has not moved on. */
static u64 taken;

static bool card_repeats(struct card_access *last, int bar, unsigned int offset,
			 unsigned long value)
{
	struct card_access now = { bar, offset, value };
	bool same = last->bar == bar && last->offset == offset && last->value == value;

	*last = now;
	return same;
}

static void card_turn(struct time_travel_event *event);
static struct time_travel_event turn = { .fn = card_turn };

/* The next turn is due soon, as something has changed. */
static bool soon;

static void card_wake(u64 delay)
{
	time_travel_del_event(&turn);
	time_travel_add_event_rel(&turn, delay);
}

static void card_changed(void)
{
	if (!soon) {
		soon = true;
		card_wake(NOTICE_NS);
	}
}

/* An interrupt: frames move, and messages come in. */
static void card_turn(struct time_travel_event *event)
{
	u64 now = ktime_get_ns();
	unsigned int irq;
	u64 next;

	soon = false;
	next = card->turn(now);
	while ((irq = card->interrupt()))
		generic_handle_irq(irq);
	if (next != U64_MAX && !soon)
		card_wake(max(next, now + NOTICE_NS) - now);
}

void card_arrive(unsigned int frames)
{
	card->arrive(frames);
	card_changed();
}

static unsigned long card_cfgspace_read(struct um_pci_device *dev,
					unsigned int offset, int size)
{
	return card->config_read(offset, size);
}

static void card_cfgspace_write(struct um_pci_device *dev, unsigned int offset,
				int size, unsigned long val)
{
	card->config_write(offset, size, val);
}

static unsigned long card_bar_read(struct um_pci_device *dev, int bar,
				   unsigned int offset, int size)
{
	unsigned long value;
	u64 delay;

	if (++accesses > MOST_ACCESSES)
		panic("pci_card: the driver waits without an end");
	taken += ACCESS_NS << min(repeats / PATIENCE, MOST_DOUBLINGS);
	if (taken >= AT_ONCE * ACCESS_NS) {
		delay = taken;
		taken = 0;
		time_travel_ndelay(delay);
	}
	value = card->bar_read(bar, offset, size);
	repeats = card_repeats(&last_read, bar, offset, value) ? repeats + 1 : 0;
	return value;
}

static void card_bar_write(struct um_pci_device *dev, int bar,
			   unsigned int offset, int size, unsigned long val)
{
	if (!card_repeats(&last_write, bar, offset, val))
		repeats = 0;
	if (card->bar_write(bar, offset, size, val))
		card_changed();
}

static void card_bar_copy_from(struct um_pci_device *dev, int bar, void *buffer,
			       unsigned int offset, int size)
{
	u8 *to = buffer;
	int i;

	for (i = 0; i < size; i++)
		to[i] = card_bar_read(dev, bar, offset + i, 1);
}

static void card_bar_copy_to(struct um_pci_device *dev, int bar,
			     unsigned int offset, const void *buffer, int size)
{
	const u8 *from = buffer;
	int i;

	for (i = 0; i < size; i++)
		card_bar_write(dev, bar, offset + i, 1, from[i]);
}

static void card_bar_set(struct um_pci_device *dev, int bar,
			 unsigned int offset, u8 value, int size)
{
	int i;

	for (i = 0; i < size; i++)
		card_bar_write(dev, bar, offset + i, 1, value);
}

static const struct um_pci_ops card_pci_ops = {
	.cfgspace_read = card_cfgspace_read,
	.cfgspace_write = card_cfgspace_write,
	.bar_read = card_bar_read,
	.bar_write = card_bar_write,
	.bar_copy_from = card_bar_copy_from,
	.bar_copy_to = card_bar_copy_to,
	.bar_set = card_bar_set,
};

static struct um_pci_device card_device = { .ops = &card_pci_ops };

/*
 * DMA addresses are those of memory; but the card gets only at what is mapped,
 * as behind an IOMMU, however it lies about addresses.
 */
static void card_map(dma_addr_t addr, size_t size, enum dma_data_direction dir, bool mapped)
{
	card->map(addr, size, dir != DMA_TO_DEVICE, mapped);
}

static void *card_dma_alloc(struct device *dev, size_t size, dma_addr_t *handle,
			    gfp_t gfp, unsigned long attrs)
{
	void *memory = dma_direct_alloc(dev, size, handle, gfp, attrs);

	if (memory)
		card_map(*handle, size, DMA_BIDIRECTIONAL, true);
	return memory;
}

static void card_dma_free(struct device *dev, size_t size, void *memory,
			  dma_addr_t handle, unsigned long attrs)
{
	card_map(handle, size, DMA_BIDIRECTIONAL, false);
	dma_direct_free(dev, size, memory, handle, attrs);
}

static dma_addr_t card_dma_map(struct device *dev, phys_addr_t phys, size_t size,
			       enum dma_data_direction dir, unsigned long attrs)
{
	dma_addr_t addr = phys_to_dma(dev, phys);

	if (attrs & DMA_ATTR_MMIO)
		return DMA_MAPPING_ERROR;
	card_map(addr, size, dir, true);
	return addr;
}

static void card_dma_unmap(struct device *dev, dma_addr_t addr, size_t size,
			   enum dma_data_direction dir, unsigned long attrs)
{
	card_map(addr, size, dir, false);
}

static const struct dma_map_ops card_dma_ops = {
	.alloc = card_dma_alloc,
	.free = card_dma_free,
	.map_phys = card_dma_map,
	.unmap_phys = card_dma_unmap,
};

/* Rings may have been left to the card, and DMA-API debugging warns about that. */
static bool lost;

static const char card_strayed[] __initconst = "the card was left with memory that is not mapped";

/* A flaw that frames do not show, after a life. */
static const char * __init card_flaw(void)
{
	if (card->is_bus_master())
		return "the card is a bus master without a driver";
	if (card->strayed())
		return card_strayed;
	if (!debug_locks)
		return "locks were misused";
	if (lost)
		return NULL;
	if (test_taint(TAINT_WARN))
		return "the kernel has warned";
	/* Where those of a device that is gone belong until their last page is back. */
	if (!hlist_empty(&init_net.loopback_dev->page_pools))
		return "pages of a pool are lost";
	return NULL;
}

/* A whole life with a card that says the truth; returns what went wrong. */
static const char * __init card_life(struct pci_dev *pdev, struct device_driver *drv, u16 wants)
{
	bool passes;

	accesses = 0;
	if (!card_begin(pdev, drv))
		return "the driver is not bound";
	passes = card_traffic(pdev) && card_counts_right(pdev);
	if (wants) {
		card_users(pdev, wants);
		/* Not every driver notices that its card was reset. */
		card_reopen(pdev);
		passes = passes && card_traffic(pdev);
	}
	card_remove(pdev);
	return passes ? card_flaw() : "frames are lost, or counted wrong";
}

static int card_panics(struct notifier_block *block, unsigned long action, void *text)
{
	card_end(false);
	return NOTIFY_DONE;
}

static struct notifier_block card_panic = {
	.notifier_call = card_panics,
	.priority = INT_MAX,
};

static void card_waits(struct time_travel_event *event)
{
	panic("pci_card: no end after an hour");
}

static struct time_travel_event card_deadline = { .fn = card_waits };

/* In a process of its own: the card lies as the input says, and then says the truth. */
static void __init card_try(struct pci_dev *pdev, struct device_driver *drv, long length)
{
	u16 which = requests & (length < HEADER ? ~0 : get_unaligned_le16(input));
	const char *failure = NULL;
	bool works = false;

	atomic_notifier_chain_register(&panic_notifier_list, &card_panic);
	time_travel_add_event_rel(&card_deadline, LIFE_NS);
	if (length > HEADER)
		card->input(input + HEADER, length - HEADER);
	if (data || card_begin(pdev, drv)) {
		card_traffic(pdev);
		if (data && (input[BETWEEN] & CHANGES_SETTINGS)) {
			card_users(pdev, CARD_SETTINGS);
			card_traffic(pdev);
		}
		if (!data) {
			card_users(pdev, which);
			card_traffic(pdev);
			card_reopen(pdev);
			card_traffic(pdev);
		}
		if (!card_counts_right(pdev))
			failure = "packets are counted that were never sent";
		if (test_taint(TAINT_WARN))
			failure = "the kernel has warned";
		lost = card->hides_stop();
		panic_on_warn = !lost;
		if (data && !(input[BETWEEN] & LIES_TO_THE_END)) {
			card_open(pdev, false);
			if (card->strayed())
				failure = card_strayed;
			card->mend();
			card_open(pdev, true);
			works = card_traffic(pdev);
			/* Lies about frames keep no driver from seeing that DMA has stopped. */
			if (!works && !lost)
				failure = "the device does not work when it is opened again";
		}
		card_remove(pdev);
		panic_on_warn = true;
	}
	if (!failure)
		failure = card_flaw();
	card->mend();
	/* Most of a life is the way to an open device, and there it has been. */
	if (!failure && !works)
		failure = card_life(pdev, drv, 0);
	if (failure)
		pr_err("pci_card: %s\n", failure);
	card_end(!failure);
}

static void __init card_run(struct pci_dev *pdev)
{
	struct device_driver *drv = driver_find(driver, &pci_bus_type);
	const char *failure = drv ? NULL : "there is no such driver";
	unsigned long long offset;
	unsigned int i;

	for (i = 0; i < lives && !failure; i++) {
		failure = card_life(pdev, drv, requests);
		if (!failure)
			pr_info("pci_card: life %u is over\n", i + 1);
	}
	if (!failure && inputs && data && !card_begin(pdev, drv))
		failure = "the driver is not bound again";
	if (failure)
		panic("pci_card: %s", failure);
	if (inputs)
		card_try(pdev, drv,
			 card_fork(inputs, phys_mapping(0, &offset), (void *)uml_physmem,
				   input, sizeof(input)));
}

/* No driver is bound before card_run(). */
static int card_notify(struct notifier_block *block, unsigned long action,
		       void *data)
{
	if (action == BUS_NOTIFY_ADD_DEVICE)
		device_set_driver_override(data, "pci_card");
	return NOTIFY_OK;
}

static struct notifier_block card_notifier = { .notifier_call = card_notify };

static int __init card_init(void)
{
	struct pci_dev *pdev;
	int err;

	if (!library)
		return 0;
	card = card_load(library);
	if (!card || !card->open((void *)uml_reserved, __pa(uml_reserved),
				 high_physmem - uml_reserved))
		panic("pci_card: there is no card in %s", library);
	err = bus_register_notifier(&pci_bus_type, &card_notifier);
	if (err)
		return err;
	err = um_pci_device_register(&card_device);
	if (err)
		return err;
	pdev = pci_get_device(PCI_ANY_ID, PCI_ANY_ID, NULL);
	if (!pdev)
		return -ENODEV;
	set_dma_ops(&pdev->dev, &card_dma_ops);
	device_set_driver_override(&pdev->dev, driver);
	card_run(pdev);
	/* There is no user space. */
	kernel_power_off();
	return 0;
}
late_initcall(card_init);
