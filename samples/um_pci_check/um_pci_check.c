// SPDX-License-Identifier: GPL-2.0
/*
 * Checks PCI over virtio of User-Mode Linux against a model of an 82599 network
 * card: every way to access a BAR, from several contexts at once, and the cost
 * of an access.
 *
 * Everything happens while the module is loaded, which fails if a check does.
 * The card must not have a driver.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sort.h>

static bool costs;
module_param(costs, bool, 0444);
MODULE_PARM_DESC(costs, "measure the cost of accesses instead of checking them");

#define CTRL		0x00000
#define CTRL_RST	BIT(26)
#define STATUS		0x00008
#define EICR		0x00800
#define EICS		0x00808
#define EIAC		0x00810
#define EIMS		0x00880
#define EIMC		0x00888
#define IVAR0		0x00900
#define IVAR_VALID	0x80
/* Base address of an unused receive ring, in a page of ring registers. */
#define RING_BASE_HIGH	0x01f04
/* Four consecutive filter tables: plain memory while filters are off. */
#define SCRATCH		0x0e000
#define SCRATCH_SIZE	2048

#define PART_SIZE	256
#define PART_WORDS	(PART_SIZE / 4)
/* A user's steps, of which a busy host may not do all in time. */
#define ROUNDS		20000
#define SECONDS		10
/* An interrupt that has not come by then never will. */
#define LOST_AFTER_MS	10000

struct um_pci_check {
	struct pci_dev *pdev;
	void __iomem *bar;
	int irq;
	atomic_t interrupts;
	struct completion interrupted;
};

/* One context that accesses a part of the scratch memory of its own. */
struct um_pci_user {
	void __iomem *part;
	u32 expected[PART_WORDS];
	u32 state;
	unsigned int wrong;
	struct hrtimer timer;
	struct completion done;
};

static struct um_pci_user users[2];
static int failures;

static void verdict(const char *name, unsigned int wrong)
{
	if (wrong) {
		failures++;
		pr_info("not ok %s: %u wrong\n", name, wrong);
	} else {
		pr_info("ok %s\n", name);
	}
}

static u32 next_value(struct um_pci_user *user)
{
	user->state = user->state * 1664525 + 1013904223;
	return user->state;
}

static void user_init(struct um_pci_user *user, struct um_pci_check *check,
		      unsigned int number)
{
	unsigned int i;

	user->part = check->bar + SCRATCH + number * PART_SIZE;
	user->state = number;
	user->wrong = 0;
	init_completion(&user->done);
	for (i = 0; i < PART_WORDS; i++) {
		user->expected[i] = next_value(user);
		writel(user->expected[i], user->part + 4 * i);
	}
}

/* Some posted writes, then a read. */
static void user_step(struct um_pci_user *user)
{
	unsigned int i, word;

	for (i = 0; i < 3; i++) {
		word = next_value(user) / 7 % PART_WORDS;
		user->expected[word] = next_value(user);
		writel(user->expected[word], user->part + 4 * word);
	}

	word = next_value(user) / 7 % PART_WORDS;
	if (readl(user->part + 4 * word) != user->expected[word])
		user->wrong++;
}

static int user_thread(void *data)
{
	struct um_pci_user *user = data;
	unsigned long end = jiffies + SECONDS * HZ;
	unsigned int i;

	for (i = 0; i < ROUNDS && time_before(jiffies, end); i++) {
		user_step(user);
		if (i % 64 == 0)
			cond_resched();
	}
	complete(&user->done);
	return 0;
}

static void check_threads(struct um_pci_check *check)
{
	struct task_struct *task;
	unsigned int cpu = 0;
	int started;

	user_init(&users[0], check, 0);
	user_init(&users[1], check, 1);
	for (started = 0; started < 2; started++) {
		task = kthread_run_on_cpu(user_thread, &users[started], cpu,
					  "um_pci_check/%u");
		if (IS_ERR(task)) {
			users[started].wrong++;
			complete(&users[started].done);
		}
		cpu = cpumask_next_wrap(cpu, cpu_online_mask);
	}

	wait_for_completion(&users[0].done);
	wait_for_completion(&users[1].done);
	verdict("two threads", users[0].wrong + users[1].wrong);
}

static enum hrtimer_restart user_timer(struct hrtimer *timer)
{
	struct um_pci_user *user = container_of(timer, struct um_pci_user, timer);

	user_step(user);
	hrtimer_forward_now(timer, us_to_ktime(50));
	return HRTIMER_RESTART;
}

static void check_interrupt(struct um_pci_check *check)
{
	user_init(&users[0], check, 0);
	user_init(&users[1], check, 1);
	hrtimer_setup(&users[1].timer, user_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_HARD);
	hrtimer_start(&users[1].timer, us_to_ktime(50), HRTIMER_MODE_REL_HARD);
	user_thread(&users[0]);
	hrtimer_cancel(&users[1].timer);
	verdict("thread and interrupt", users[0].wrong + users[1].wrong);
}

static unsigned int differences(const u8 *a, const u8 *b, size_t size)
{
	unsigned int wrong = 0;

	while (size--)
		wrong += *a++ != *b++;
	return wrong;
}

/*
 * Long copies, with posted writes before and after them. Static data of a
 * module is in the vmalloc area.
 */
static void check_copies(struct um_pci_check *check)
{
	void __iomem *part = check->bar + SCRATCH;
	static u8 data[PART_SIZE] __aligned(8), got[PART_SIZE];
	u8 stack[64];
	unsigned int i, round, wrong_to = 0, wrong_from = 0;

	for (round = 0; round < 100; round++) {
		for (i = 0; i < PART_SIZE; i++)
			data[i] = i * 31 + round;

		for (i = 0; i < 15; i++)
			writel(i + round, part + PART_SIZE + 4 * i);
		memcpy_toio(part, data, PART_SIZE);
		for (i = 15; i < 30; i++)
			writel(i + round, part + PART_SIZE + 4 * i);

		for (i = 0; i < PART_SIZE; i += 4)
			wrong_to += readl(part + i) != *(u32 *)(data + i);
		for (i = 0; i < 30; i++)
			wrong_to += readl(part + PART_SIZE + 4 * i) != i + round;

		memset(got, 0, PART_SIZE);
		memcpy_fromio(got, part, PART_SIZE);
		wrong_from += differences(got, data, PART_SIZE);
		memset(stack, 0, sizeof(stack));
		memcpy_fromio(stack, part, sizeof(stack));
		wrong_from += differences(stack, data, sizeof(stack));
	}

	verdict("memcpy_toio", wrong_to);
	verdict("memcpy_fromio", wrong_from);
}

static void check_set(struct um_pci_check *check)
{
	void __iomem *part = check->bar + SCRATCH;
	unsigned int i, wrong = 0;

	for (i = 0; i < PART_SIZE; i += 4)
		writel(0, part + i);
	memset_io(part + 16, 0xa5, 64);
	for (i = 0; i < PART_SIZE; i += 4)
		wrong += readl(part + i) != (i >= 16 && i < 80 ? 0xa5a5a5a5 : 0);
	verdict("memset_io", wrong);
}

/* The same registers through shared pages, where available, and by message. */
static void check_ring_registers(struct um_pci_check *check)
{
	void __iomem *reg = check->bar + RING_BASE_HIGH;
	unsigned int i, wrong = 0;
	u32 value, got;

	for (i = 0; i < 1000; i++) {
		value = i * 0x01010101 + 1;
		writel(value, reg);
		wrong += readl(reg) != value;
		memcpy_fromio(&got, reg, sizeof(got));
		wrong += got != value;
		value = ~value;
		memcpy_toio(reg, &value, sizeof(value));
		wrong += readl(reg) != value;
	}
	verdict("ring registers", wrong);

	wrong = 0;
	for (i = 0; i < 20; i++) {
		writel(i + 1, reg);
		writel(CTRL_RST, check->bar + CTRL);
		wrong += readl(reg) != 0;
	}
	verdict("ring registers after reset", wrong);
}

static irqreturn_t handler(int irq, void *data)
{
	struct um_pci_check *check = data;

	atomic_inc(&check->interrupts);
	complete(&check->interrupted);
	return IRQ_HANDLED;
}

/* An interrupt for every write to EICS. */
static void interrupts_on(struct um_pci_check *check)
{
	writel(IVAR_VALID, check->bar + IVAR0);
	writel(BIT(0), check->bar + EIAC);
	writel(BIT(0), check->bar + EIMS);
	readl(check->bar + STATUS);
	atomic_set(&check->interrupts, 0);
}

/* Spins until they come, or are lost: a busy host may not run the device at once. */
static int interrupts_come(struct um_pci_check *check, int wanted)
{
	ktime_t end = ktime_add_ms(ktime_get(), LOST_AFTER_MS);

	while (atomic_read(&check->interrupts) < wanted &&
	       ktime_before(ktime_get(), end))
		cpu_relax();
	return atomic_read(&check->interrupts);
}

static void check_interrupts(struct um_pci_check *check)
{
	unsigned int i, wrong = 0;
	int came;

	interrupts_on(check);
	for (i = 0; i < 100; i++) {
		atomic_set(&check->interrupts, 0);
		writel(BIT(0), check->bar + EICS);
		came = interrupts_come(check, 1);
		if (came != 1) {
			pr_info("message %u: %d interrupts\n", i, came);
			wrong++;
		}
	}
	verdict("interrupt for every message", wrong);

	wrong = 0;
	for (i = 0; i < 10; i++) {
		atomic_set(&check->interrupts, 0);
		disable_irq(check->irq);
		writel(BIT(0), check->bar + EICS);
		msleep(20);
		wrong += atomic_read(&check->interrupts) != 0;
		enable_irq(check->irq);
		wrong += interrupts_come(check, 1) != 1;
	}
	verdict("interrupt while disabled", wrong);
}

/* A CPU that is about to go idle must not miss an interrupt. */
static void check_idle(struct um_pci_check *check)
{
	unsigned int i, wrong = 0;

	interrupts_on(check);
	for (i = 0; i < 3000 && wrong < 3; i++) {
		reinit_completion(&check->interrupted);
		writel(BIT(0), check->bar + EICS);
		wrong += !wait_for_completion_timeout(&check->interrupted,
						      msecs_to_jiffies(LOST_AFTER_MS));
	}
	verdict("interrupt before sleep", wrong);
}

static int compare_u64(const void *a, const void *b)
{
	return *(const u64 *)a < *(const u64 *)b ? -1 : 1;
}

static void access_none(struct um_pci_check *check)
{
}

static void access_read(struct um_pci_check *check)
{
	readl(check->bar + STATUS);
}

static void access_write(struct um_pci_check *check)
{
	writel(0, check->bar + SCRATCH);
}

static void access_ring(struct um_pci_check *check)
{
	writel(0, check->bar + RING_BASE_HIGH);
}

static void access_irqs(struct um_pci_check *check)
{
	unsigned long flags;

	local_irq_save(flags);
	local_irq_restore(flags);
}

static void access_interrupt(struct um_pci_check *check)
{
	atomic_set(&check->interrupts, 0);
	writel(BIT(0), check->bar + EICS);
	interrupts_come(check, 1);
}

/* The median time of one of @count accesses in a row, in tenths of a ns. */
static void cost(struct um_pci_check *check, const char *name,
		 void (*access)(struct um_pci_check *), unsigned int count)
{
	static u64 times[201];
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(times); i++) {
		/* Let the card finish pending work. */
		readl(check->bar + STATUS);
		usleep_range(20, 40);
		times[i] = ktime_get_ns();
		for (n = 0; n < count; n++)
			access(check);
		times[i] = div_u64(10 * (ktime_get_ns() - times[i]), count);
	}
	sort(times, ARRAY_SIZE(times), sizeof(*times), compare_u64, NULL);
	i = ARRAY_SIZE(times) / 2;
	pr_info("%s costs %llu.%llu ns\n", name, times[i] / 10, times[i] % 10);
	cond_resched();
}

static void measure(struct um_pci_check *check)
{
	cost(check, "clock", access_none, 1);
	cost(check, "call", access_none, 1000);
	cost(check, "interrupts off and on", access_irqs, 1000);
	cost(check, "read", access_read, 50);
	cost(check, "write, one", access_write, 1);
	cost(check, "write, 15 in a row", access_write, 15);
	cost(check, "write, 1000 in a row", access_write, 1000);
	cost(check, "ring register write", access_ring, 1000);
	interrupts_on(check);
	cost(check, "interrupt", access_interrupt, 1);
}

static int run(struct um_pci_check *check)
{
	if (costs) {
		measure(check);
		return 0;
	}

	check_set(check);
	check_copies(check);
	check_threads(check);
	check_interrupt(check);
	check_interrupts(check);
	check_idle(check);
	check_ring_registers(check);
	return failures ? -EIO : 0;
}

static int with_device(struct um_pci_check *check)
{
	struct pci_dev *pdev = check->pdev;
	int err;

	err = pci_enable_device(pdev);
	if (err)
		return err;
	pci_set_master(pdev);

	check->bar = pci_iomap(pdev, 0, 0);
	if (!check->bar) {
		err = -ENOMEM;
		goto disable;
	}

	err = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSIX);
	if (err < 0)
		goto unmap;
	check->irq = pci_irq_vector(pdev, 0);
	init_completion(&check->interrupted);

	err = request_irq(check->irq, handler, 0, KBUILD_MODNAME, check);
	if (err)
		goto vectors;

	writel(CTRL_RST, check->bar + CTRL);
	err = run(check);
	writel(~0, check->bar + EIMC);
	writel(CTRL_RST, check->bar + CTRL);
	readl(check->bar + STATUS);

	free_irq(check->irq, check);
vectors:
	pci_free_irq_vectors(pdev);
unmap:
	pci_iounmap(pdev, check->bar);
disable:
	pci_clear_master(pdev);
	pci_disable_device(pdev);
	return err;
}

static bool checked;
static int result = -ENODEV;

/*
 * Checks the first card, and leaves none bound: resources that a device got
 * without a driver, such as interrupt data, would keep drivers from binding.
 */
static int um_pci_check_probe(struct pci_dev *pdev,
			      const struct pci_device_id *id)
{
	struct um_pci_check check = { .pdev = pdev };

	if (!checked) {
		checked = true;
		result = with_device(&check);
	}
	return -ENODEV;
}

static const struct pci_device_id um_pci_check_ids[] = {
	{ PCI_DEVICE_CLASS(PCI_CLASS_NETWORK_ETHERNET << 8, ~0) },
	{ }
};

static struct pci_driver um_pci_check_driver = {
	.name = KBUILD_MODNAME,
	.id_table = um_pci_check_ids,
	.probe = um_pci_check_probe,
	.driver.probe_type = PROBE_FORCE_SYNCHRONOUS,
};

static int __init um_pci_check_init(void)
{
	int err;

	err = pci_register_driver(&um_pci_check_driver);
	if (err)
		return err;
	pci_unregister_driver(&um_pci_check_driver);

	if (!checked)
		pr_err("no network card without a driver\n");
	return result;
}
module_init(um_pci_check_init);

static void __exit um_pci_check_exit(void)
{
}
module_exit(um_pci_check_exit);

MODULE_AUTHOR("The skbulk authors");
MODULE_DESCRIPTION("Check PCI over virtio of User-Mode Linux");
MODULE_LICENSE("GPL");
