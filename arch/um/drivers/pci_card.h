/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A PCI card that is a library of the process, for fuzzing drivers: shared by
 * the files of the kernel's side and of the host's side.
 */
#ifndef __UM_PCI_CARD_H
#define __UM_PCI_CARD_H

#ifdef __UM_HOST__
#include <stdbool.h>
#else
#include <linux/types.h>
#endif

/* The functions of the library, by its function card_ops(). */
struct card_ops {
	/* DMA address @address is the first byte of @memory. */
	bool (*open)(void *memory, unsigned long long address, unsigned long long size);
	/* Lies from now on, as the input says. */
	void (*input)(const void *data, unsigned long long length);
	/* Says the truth from now on, as after power on. */
	void (*mend)(void);
	unsigned long long (*config_read)(unsigned int at, unsigned int size);
	void (*config_write)(unsigned int at, unsigned int size, unsigned long long value);
	unsigned long long (*bar_read)(unsigned int bar, unsigned int at, unsigned int size);
	/* True if a turn is due at once. */
	bool (*bar_write)(unsigned int bar, unsigned int at, unsigned int size,
			  unsigned long long value);
	/* Moves frames; returns when the next turn is due, or all ones. */
	unsigned long long (*turn)(unsigned long long now);
	/* Takes the data of a message that is due, or 0. */
	unsigned int (*interrupt)(void);
	/* Lets frames arrive from the wire. */
	void (*arrive)(unsigned int frames);
	/* Takes the number of whole frames that have left. */
	unsigned int (*sent)(void);
	bool (*is_bus_master)(void);
	/* Whether the lies may keep from the driver that DMA has stopped. */
	bool (*hides_stop)(void);
	/* The driver maps memory for DMA, or unmaps it. */
	void (*map)(unsigned long long address, unsigned long long size,
		    bool writable, bool mapped);
	/* Whether the card got at memory that was not mapped, by no lie of its own. */
	bool (*strayed)(void);
};

/* The host's side. */

const struct card_ops *card_load(const char *path);
/*
 * Makes a process for each input, and returns there, with the input's length:
 * @path is a folder of inputs, or one, or where a fuzzer writes them. The
 * kernel's memory, a file, becomes a copy for each of the processes.
 */
long card_fork(const char *path, int memory_fd, void *memory, void *input,
	       unsigned long room);
/* Ends the process of an input, in which something was found unless it is good. */
void card_end(bool good);

/* The compiler's counters, one for each edge of what is instrumented. */
extern unsigned char __start___sancov_cntrs[];
extern unsigned char __stop___sancov_cntrs[];

/* The constructors that it makes want them. */
void __sanitizer_cov_8bit_counters_init(void *start, void *stop);
void __sanitizer_cov_pcs_init(void *start, void *stop);

/* The kernel's side: pci_card_kern.c for pci_card_life.c. */

#ifndef __UM_HOST__
#include <linux/pci.h>

extern const struct card_ops *card;

/* Lets frames arrive from the wire. */
void card_arrive(unsigned int frames);
/* The card's network device, if there is one. With RTNL. */
struct net_device *card_netdev(struct pci_dev *pdev);
/* Whether the statistics have no more packets than were sent. */
bool card_counts_right(struct pci_dev *pdev);
/* Requests of users, those of the bits in @which. */
void card_users(struct pci_dev *pdev, u16 which);
#define CARD_SETTINGS	BIT(4)
/* Binds the driver, and opens the device; false if it is not bound. */
bool card_begin(struct pci_dev *pdev, struct device_driver *drv);
/* Opens the device, or closes it. */
void card_open(struct pci_dev *pdev, bool up);
/* Closes the device, and opens it again. */
void card_reopen(struct pci_dev *pdev);
/* Frames both ways; whether all get through. */
bool card_traffic(struct pci_dev *pdev);
/* Closes the device, and unbinds the driver. */
void card_remove(struct pci_dev *pdev);
#endif

/* The kernel's code: <asm/sections.h> is not for the part that calls the host. */
extern char _text[], _etext[];

#endif /* __UM_PCI_CARD_H */
