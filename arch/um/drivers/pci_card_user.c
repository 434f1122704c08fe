// SPDX-License-Identifier: GPL-2.0
/*
 * The host's side of a PCI card that is a library: loads it, and makes a
 * process for each input.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>
#include <os.h>

#include "pci_card.h"

/* AFL++'s descriptors, and the version of its protocol that has options. */
#define AFL_CONTROL	198
#define AFL_STATUS	199
#define AFL_VERSION	0x41464c01U
#define AFL_MAP_SIZE	1U
/* Seconds of the processor's time for an input, and until the signal cannot be missed. */
#define LIMIT		20
#define GRACE		5

/* Nothing may be. */
#pragma weak __start___sancov_cntrs
#pragma weak __stop___sancov_cntrs

/* Where a fuzzer wants them. */
static unsigned char *edges;

void __sanitizer_cov_8bit_counters_init(void *start, void *stop)
{
}

void __sanitizer_cov_pcs_init(void *start, void *stop)
{
}

static unsigned long counters(void)
{
	return __stop___sancov_cntrs - __start___sancov_cntrs;
}

const struct card_ops *card_load(const char *path)
{
	const struct card_ops *(*ops)(void);
	void *library = dlopen(path, RTLD_NOW);

	if (!library) {
		os_warn("pci_card: %s\n", dlerror());
		return NULL;
	}
	ops = dlsym(library, "card_ops");
	return ops ? ops() : NULL;
}

static void say(unsigned int word)
{
	if (write(AFL_STATUS, &word, sizeof(word)) != sizeof(word))
		_exit(0);
}

static unsigned int listen_to(void)
{
	unsigned int word;

	if (read(AFL_CONTROL, &word, sizeof(word)) != sizeof(word))
		_exit(0);
	return word;
}

/* Whether there is a fuzzer, which then has been told of the map's size. */
static bool afl_begin(void)
{
	const char *id = getenv("__AFL_SHM_ID");

	if (!id)
		return false;
	edges = shmat(atoi(id), NULL, 0);
	if (edges == (void *)-1)
		_exit(1);
	say(AFL_VERSION);
	if (listen_to() != ~AFL_VERSION)
		_exit(1);
	say(AFL_MAP_SIZE);
	say(counters());
	say(AFL_VERSION);
	return true;
}

/*
 * Moves the kernel's code to huge pages of its own. It is there in each process
 * then; of a file, each would have to ask for it page by page.
 */
static void move_code(void)
{
	const unsigned long huge = 2UL << 20;
	char *start = (char *)((unsigned long)_text & -huge);
	unsigned long length = _etext - start;
	char *copy = mmap(NULL, length + huge, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* Slower, but as good. */
	if (copy == MAP_FAILED)
		return;
	copy = (char *)(((unsigned long)copy + huge - 1) & -huge);
	madvise(copy, length, MADV_HUGEPAGE);
	memcpy(copy, start, length);
	if (mprotect(copy, length, PROT_READ | PROT_EXEC) < 0 ||
	    mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, start) == MAP_FAILED)
		munmap(copy, length);
}

static pid_t begin(void)
{
	struct rlimit limit = { .rlim_cur = LIMIT, .rlim_max = LIMIT + GRACE };
	pid_t pid = fork();

	if (pid < 0)
		_exit(1);
	if (!pid) {
		setrlimit(RLIMIT_CPU, &limit);
		memset(__start___sancov_cntrs, 0, counters());
	}
	return pid;
}

static long load(const char *path, void *input, unsigned long room)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	long length = file < 0 ? -1 : read(file, input, room);

	if (length < 0)
		_exit(1);
	close(file);
	return length;
}

static long afl_fork(const char *path, void *input, unsigned long room)
{
	int status;
	pid_t pid;

	while (1) {
		listen_to();
		pid = begin();
		if (!pid) {
			close(AFL_CONTROL);
			close(AFL_STATUS);
			return load(path, input, room);
		}
		say(pid);
		if (waitpid(pid, &status, 0) != pid)
			_exit(1);
		say(status);
	}
}

static void judge(const char *name, int status)
{
	if (WIFSIGNALED(status))
		os_info("pci_card: %s: signal %d\n", name, WTERMSIG(status));
	else
		os_info("pci_card: %s: %s\n", name, WEXITSTATUS(status) ? "failed" : "passed");
}

/* Returns in the process of the input only. */
static bool try(const char *name)
{
	pid_t pid = begin();
	int status;

	if (!pid)
		return true;
	if (waitpid(pid, &status, 0) != pid)
		_exit(1);
	judge(name, status);
	return false;
}

long card_fork(const char *path, int memory_fd, void *memory, void *input,
	       unsigned long room)
{
	struct dirent **names;
	char file[4096];
	int count, i;

	if (os_make_memory_private(memory_fd, memory) < 0)
		_exit(1);
	if (afl_begin()) {
		move_code();
		return afl_fork(path, input, room);
	}
	count = scandir(path, &names, NULL, alphasort);
	if (count < 0 && try(strrchr(path, '/') ? strrchr(path, '/') + 1 : path))
		return load(path, input, room);
	for (i = 0; i < count; i++) {
		if (names[i]->d_name[0] == '.')
			continue;
		if (try(names[i]->d_name)) {
			snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
			return load(file, input, room);
		}
	}
	_exit(0);
}

void card_end(bool good)
{
	if (edges)
		memcpy(edges, __start___sancov_cntrs, counters());
	if (good)
		_exit(0);
	signal(SIGABRT, SIG_DFL);
	kill(getpid(), SIGABRT);
	_exit(1);
}
