/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's driver, called as a program calls it, and as one should not
 *
 * usage: module COMMAND [NUMBER | FILE]. Exit status 0: as it has to be; 1: a line on
 * standard output says what is not.
 */

#define _GNU_SOURCE
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "module.h"

static struct module_channel channel;
static sigjmp_buf back;

static void say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

static void ignore(int number)
{
	(void)number;
}

static void jump(int number)
{
	siglongjmp(back, number);
}

/* Returns: the signal that reading the byte raises, or 0. */
static int signal_at(const volatile uint8_t *place)
{
	int number;

	signal(SIGBUS, jump);
	signal(SIGSEGV, jump);
	number = sigsetjmp(back, 1);
	if (!number)
		(void)*place;
	return number;
}

/* The exit status of a child that runs the function; 128 + signal. */
static int in_child(int (*run)(void))
{
	pid_t pid = fork();
	int status;

	must(pid >= 0);
	if (!pid)
		_exit(run());
	must(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void open_it(void)
{
	int r = module_open(&channel);

	if (!r)
		return;
	say("open: %s", strerror(-r));
	exit(1);
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND_US + (uint64_t)now.tv_nsec / 1000;
}

/*
 * What works
 */

static int read_area_in_child(void)
{
	return signal_at(channel.area);
}

static void run_works(void)
{
	const uint64_t size = (uint64_t)channel.state.n_extents * VGPU_EXTENT_SIZE;
	uint8_t *header = module_map(channel.fd, 0, PAGE, PROT_READ), *more;
	struct vgpu_ioc_extents next = {
		channel.state.first_extent + channel.state.n_extents, 1
	};
	struct iovec to = { header, 1 }, from = { channel.extents, 1 };
	struct pollfd poll_fd = { .fd = channel.fd, .events = POLLIN };
	uint64_t n = 0;
	char byte = 0;

	must(header != MAP_FAILED);
	must(!memcmp(header, "VGPUSHM1", 8));
	memset(channel.area, 0x11, VGPU_AREA_SIZE);
	memset(channel.extents, 0x22, size);
	must(channel.area[VGPU_AREA_SIZE - 1] == 0x11);
	must(channel.extents[size - 1] == 0x22);
	/* Struct pages: the kernel can reach them for others. */
	to.iov_base = &byte;
	must(process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 && byte == 0x22);
	must(in_child(read_area_in_child) == SIGSEGV);
	/* The host interrupts after each ring, and grants one extent. */
	must(poll(&poll_fd, 1, 0) == 0);
	must(module_call(channel.fd, VGPU_IOC_RING, NULL) == 0);
	must(poll(&poll_fd, 1, 10000) == 1 && poll_fd.revents == POLLIN);
	must(read(channel.fd, &n, sizeof(n)) == sizeof(n) && n == 1);
	must(poll(&poll_fd, 1, 0) == 0);
	must(module_call(channel.fd, VGPU_IOC_ACCEPT, &next) == 0);
	more = module_map(channel.fd,
		channel.info.extents_off + (uint64_t)next.first * VGPU_EXTENT_SIZE,
		VGPU_EXTENT_SIZE, PROT_READ | PROT_WRITE);
	must(more != MAP_FAILED);
	memset(more, 0x33, VGPU_EXTENT_SIZE);
}

/* A wait ends by a word that has changed, a signal, its time, or an interrupt. */
static void run_wait(void)
{
	struct vgpu_ioc_wait wait = {
		.offset = channel.state.area_off + VGPU_SLOTS_OFF,
		.seen = 7,
		.timeout_us = 100 * SECOND_US,
	};
	volatile uint32_t *word = (volatile uint32_t *)(channel.area + VGPU_SLOTS_OFF);
	struct sigaction action = { .sa_handler = ignore };

	*word = 6;
	must(module_call(channel.fd, VGPU_IOC_WAIT, &wait) == 0);
	*word = 7;
	wait.timeout_us = 1000;
	must(module_call(channel.fd, VGPU_IOC_WAIT, &wait) == -ETIMEDOUT);
	wait.timeout_us = 0;
	must(module_call(channel.fd, VGPU_IOC_WAIT, &wait) == -ETIMEDOUT);
	wait.timeout_us = 100 * SECOND_US;
	sigaction(SIGALRM, &action, NULL);
	alarm(1);
	must(module_call(channel.fd, VGPU_IOC_WAIT, &wait) == -EINTR);
	must(*word == 7);
	/* The host changes the first slot's word before it interrupts. */
	must(module_call(channel.fd, VGPU_IOC_RING, NULL) == 0);
	must(module_call(channel.fd, VGPU_IOC_WAIT, &wait) == 0);
	must(*word == 8);
}

/*
 * What does not
 */

static const unsigned long requests[] = { VGPU_IOC_INFO, VGPU_IOC_OFFER, VGPU_IOC_STATE,
	VGPU_IOC_ACCEPT, VGPU_IOC_WAIT, VGPU_IOC_RING };

#define N_REQUESTS (sizeof(requests) / sizeof(requests[0]))

/* The same number with another direction or size. */
static void call_with_wrong_forms(int fd, unsigned long request)
{
	uint8_t room[1 << 14] = { 0 };

	for (unsigned int direction = 0; direction < 4; direction++)
		for (unsigned int size = 0; size < 1u << _IOC_SIZEBITS;
			size += size < 64 ? 1 : 61) {
			unsigned long other =
				_IOC(direction, VGPU_IOC_TYPE, _IOC_NR(request), size);

			if (other != request)
				must(module_call(fd, other, room) == -ENOTTY);
		}
}

static void call_with_wrong_addresses(int fd)
{
	void *none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *const places[] = { NULL, (void *)1, none, (char *)none + PAGE - 1,
		(void *)0x7ffffffffff8, (void *)(1ull << 63), (void *)-1, (void *)-8 };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		for (size_t j = 0; j < N_REQUESTS; j++)
			if (requests[j] != VGPU_IOC_RING)
				must(module_call(fd, requests[j], places[i]) == -EFAULT);
}

static void run_bad_calls(void)
{
	const uint64_t area = channel.state.area_off;
	const uint32_t first = channel.state.first_extent, n = channel.state.n_extents;
	struct vgpu_ioc_wait wait = { .offset = area, .seen = 1, .timeout_us = 0 };
	struct vgpu_ioc_offer offer = { .channel = 1 };
	const uint64_t offsets[] = { 0, 1, area - 4, area + 1, area + 2,
		area + VGPU_AREA_SIZE, area + VGPU_AREA_SIZE - 2,
		channel.info.extents_off, channel.info.shm_size, 1ull << 63, UINT64_MAX,
		UINT64_MAX - 3 };
	const struct vgpu_ioc_extents none[] = { { first, 0 }, { UINT32_MAX, 1 },
		{ first, UINT32_MAX }, { channel.info.n_extents, 1 },
		{ channel.info.n_extents - 1, 2 }, { UINT32_MAX, UINT32_MAX } };
	const struct vgpu_ioc_extents others[] = { { first + n, 1 }, { first, n + 1 } };

	for (size_t i = 0; i < N_REQUESTS; i++)
		call_with_wrong_forms(channel.fd, requests[i]);
	for (unsigned int number = 6; number < 256; number++)
		must(module_call(channel.fd, _IO(VGPU_IOC_TYPE, number), NULL) ==
			-ENOTTY);
	call_with_wrong_addresses(channel.fd);
	must(module_call(channel.fd, VGPU_IOC_OFFER, &offer) == -EINVAL);
	offer = (struct vgpu_ioc_offer){ .channel = 1 };
	must(module_call(channel.fd, VGPU_IOC_OFFER, &offer) == -EINVAL);
	offer = (struct vgpu_ioc_offer){};
	must(module_call(channel.fd, VGPU_IOC_OFFER, &offer) == -EBUSY);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		wait.offset = offsets[i];
		must(module_call(channel.fd, VGPU_IOC_WAIT, &wait) == -EINVAL);
	}
	wait = (struct vgpu_ioc_wait){ .offset = area, .flags = VGPU_WAIT_F_STATE };
	must(module_call(channel.fd, VGPU_IOC_WAIT, &wait) == -EINVAL);
	for (unsigned int bit = 1; bit < 32; bit++) {
		wait = (struct vgpu_ioc_wait){ .offset = area, .flags = 1u << bit };
		must(module_call(channel.fd, VGPU_IOC_WAIT, &wait) == -EINVAL);
		wait = (struct vgpu_ioc_wait){ .offset = area, .reserved = 1u << bit };
		must(module_call(channel.fd, VGPU_IOC_WAIT, &wait) == -EINVAL);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		must(module_call(channel.fd, VGPU_IOC_ACCEPT, (void *)&none[i]) ==
			-EINVAL);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		must(module_call(channel.fd, VGPU_IOC_ACCEPT, (void *)&others[i]) ==
			-EACCES);
	must(read(channel.fd, &wait, 7) < 0 && errno == EINVAL);
	must(pread(channel.fd, &wait, 8, 0) < 0 && errno == ESPIPE);
	must(write(channel.fd, &wait, 8) < 0 && errno == EINVAL);
}

static void expect_no_map(uint64_t off, uint64_t size, int protection, int flags)
{
	void *map = mmap(NULL, size, protection, flags, channel.fd, (off_t)off);

	if (map != MAP_FAILED)
		say("mapped %#llx + %#llx, %d, %d", (unsigned long long)off,
			(unsigned long long)size, protection, flags);
	must(map == MAP_FAILED);
}

static void run_bad_maps(void)
{
	const uint64_t area = channel.state.area_off, end = channel.info.shm_size;
	const uint64_t extents = channel.info.extents_off +
				 (uint64_t)channel.state.first_extent * VGPU_EXTENT_SIZE;
	const uint64_t size = (uint64_t)channel.state.n_extents * VGPU_EXTENT_SIZE;
	const int both = PROT_READ | PROT_WRITE;

	/* Shared, not executable, and the common parts not writable, now or later. */
	expect_no_map(area, PAGE, both, MAP_PRIVATE);
	expect_no_map(extents, PAGE, PROT_READ, MAP_PRIVATE);
	expect_no_map(area, PAGE, both | PROT_EXEC, MAP_SHARED);
	expect_no_map(0, PAGE, both, MAP_SHARED);
	expect_no_map(channel.info.status_off, PAGE, both, MAP_SHARED);
	must(mprotect(module_map(channel.fd, 0, PAGE, PROT_READ), PAGE, both) < 0);
	must(mprotect(channel.area, PAGE, both | PROT_EXEC) < 0);
	must(mremap(channel.area, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
	/* All that is between, before and behind what it has. */
	expect_no_map(0, 2 * PAGE, PROT_READ, MAP_SHARED);
	expect_no_map(VGPU_SHM_TABLE_OFF, PAGE, PROT_READ, MAP_SHARED);
	expect_no_map(VGPU_OWNERS_OFF, PAGE, PROT_READ, MAP_SHARED);
	expect_no_map(
		channel.info.status_off, VGPU_STATUS_SIZE + PAGE, PROT_READ, MAP_SHARED);
	expect_no_map(channel.info.status_off - PAGE, 2 * PAGE, PROT_READ, MAP_SHARED);
	for (uint64_t off = 0; off < end; off += PAGE) {
		const bool is_own = (off >= area && off < area + VGPU_AREA_SIZE) ||
				    (off >= extents && off < extents + size);

		if (off && !is_own &&
			(off < channel.info.status_off ||
				off >= channel.info.status_off + VGPU_STATUS_SIZE))
			expect_no_map(off, PAGE, PROT_READ, MAP_SHARED);
	}
	expect_no_map(area - PAGE, 2 * PAGE, both, MAP_SHARED);
	expect_no_map(area, VGPU_AREA_SIZE + PAGE, both, MAP_SHARED);
	expect_no_map(extents - PAGE, 2 * PAGE, both, MAP_SHARED);
	expect_no_map(extents, size + PAGE, both, MAP_SHARED);
	expect_no_map(end, PAGE, PROT_READ, MAP_SHARED);
	expect_no_map(end - PAGE, 2 * PAGE, PROT_READ, MAP_SHARED);
	expect_no_map(1ull << 40, PAGE, PROT_READ, MAP_SHARED);
	expect_no_map(INT64_MAX & ~(uint64_t)(PAGE - 1), PAGE, PROT_READ, MAP_SHARED);
	expect_no_map(area, 1ull << 46, both, MAP_SHARED);
}

/* Before the channel is open nothing but header and status can be had. */
static void run_early(void)
{
	struct vgpu_ioc_extents extents = { 0, 1 };
	struct vgpu_ioc_state state;
	struct vgpu_ioc_wait wait = {};
	uint64_t n;
	int fd = open(DEVICE, O_RDWR), read_only = open(DEVICE, O_RDONLY);

	must(fd >= 0 && read_only >= 0);
	must(module_call(fd, VGPU_IOC_STATE, &state) == -ENOTCONN);
	must(module_call(fd, VGPU_IOC_ACCEPT, &extents) == -ENOTCONN);
	must(module_call(fd, VGPU_IOC_WAIT, &wait) == -ENOTCONN);
	must(module_call(fd, VGPU_IOC_RING, NULL) == -ENOTCONN);
	must(read(fd, &n, sizeof(n)) < 0 && errno == ENOTCONN);
	for (uint64_t off = VGPU_EXTENT_SIZE; off < 64 << 20; off += VGPU_EXTENT_SIZE)
		must(module_map(fd, off, PAGE, PROT_READ) == MAP_FAILED);
	must(module_map(fd, 0, PAGE, PROT_READ) != MAP_FAILED);
	must(module_map(read_only, 0, PAGE, PROT_READ) != MAP_FAILED);
	for (size_t i = 1; i < N_REQUESTS; i++)
		must(module_call(read_only, requests[i], &wait) == -EBADF);
}

/* Another process, or another file of this one, gets nothing of the channel. */
static void run_isolation(void)
{
	const uint64_t extents = channel.info.extents_off +
				 (uint64_t)channel.state.first_extent * VGPU_EXTENT_SIZE;
	struct vgpu_ioc_extents grant = { channel.state.first_extent, 1 };
	struct vgpu_ioc_wait wait = { .offset = channel.state.area_off, .seen = 1 };
	struct module_channel other;
	pid_t pid;
	int status;

	must(module_open(&other) == 0);
	must(other.number != channel.number);
	must(other.state.area_off != channel.state.area_off);
	must(module_map(other.fd, channel.state.area_off, PAGE, PROT_READ) == MAP_FAILED);
	must(module_map(other.fd, extents, PAGE, PROT_READ) == MAP_FAILED);
	must(module_call(other.fd, VGPU_IOC_ACCEPT, &grant) == -EACCES);
	must(module_call(other.fd, VGPU_IOC_WAIT, &wait) == -EINVAL);
	/* A child that inherits the descriptor has no memory of the channel either. */
	pid = fork();
	if (!pid) {
		must(module_map(channel.fd, extents, PAGE, PROT_READ) == MAP_FAILED);
		must(errno == EACCES);
		must(module_call(channel.fd, VGPU_IOC_ACCEPT, &grant) == -EACCES);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid && !status);
}

/*
 * Ends
 */

/* A page in a pipe keeps its extent from the next process. */
static void run_pipe(void)
{
	struct iovec piece = { channel.extents, PAGE };
	const uint32_t first = channel.state.first_extent;
	struct module_channel next;
	char byte = 0;
	int ends[2];

	must(pipe(ends) == 0);
	memset(channel.extents, 0x44, PAGE);
	must(vmsplice(ends[1], &piece, 1, 0) == PAGE);
	module_close(&channel);
	must(module_open(&next) == 0);
	must(next.state.first_extent != first);
	memset(next.extents, 0x55, (uint64_t)next.state.n_extents * VGPU_EXTENT_SIZE);
	must(read(ends[0], &byte, 1) == 1 && byte == 0x44);
	module_close(&next);
}

static void hold_in_child(int ends[2])
{
	struct module_channel own;

	must(module_open(&own) == 0);
	memset(own.extents, 0x66, (uint64_t)own.state.n_extents * VGPU_EXTENT_SIZE);
	must(write(ends[1], "", 1) == 1);
	for (;;)
		pause();
}

/* The host's log shows our ring, and then how soon the end of the child comes. */
static void kill_one(void)
{
	int ends[2];
	pid_t pid;
	char byte;

	must(pipe(ends) == 0);
	pid = fork();
	must(pid >= 0);
	if (!pid) {
		hold_in_child(ends);
		_exit(1);
	}
	close(ends[1]);
	must(read(ends[0], &byte, 1) == 1);
	must(module_call(channel.fd, VGPU_IOC_RING, NULL) == 0);
	must(kill(pid, SIGKILL) == 0);
	must(waitpid(pid, NULL, 0) == pid);
	close(ends[0]);
}

static void run_kills(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		kill_one();
}

/* A child that lives on, with the descriptor, does not keep its parent's channel. */
static void run_orphan(void)
{
	int ends[2];
	char byte;
	pid_t pid;

	must(pipe(ends) == 0);
	pid = fork();
	if (!pid) {
		struct module_channel own;

		must(module_open(&own) == 0);
		if (!fork()) {
			struct vgpu_ioc_state state = {};

			while (getppid() != 1)
				usleep(1000);
			must(module_call(own.fd, VGPU_IOC_STATE, &state) == 0);
			must(state.state == VGPU_CHANNEL_DEAD);
			must(module_call(own.fd, VGPU_IOC_RING, NULL) < 0);
			must(write(ends[1], "", 1) == 1);
			pause();
		}
		kill(getpid(), SIGKILL);
	}
	must(waitpid(pid, NULL, 0) == pid);
	must(read(ends[0], &byte, 1) == 1);
}

/* Until the device goes: then no call works, and no memory is there. */
static void run_hold(void)
{
	struct vgpu_ioc_wait wait = {
		.offset = channel.state.area_off,
		.seen = 0,
		.timeout_us = 120 * SECOND_US,
	};
	struct pollfd poll_fd = { .fd = channel.fd, .events = POLLIN };
	struct vgpu_ioc_info info;

	*(volatile uint32_t *)channel.area = 0;
	say("holding");
	must(module_call(channel.fd, VGPU_IOC_WAIT, &wait) == -ENODEV);
	must(poll(&poll_fd, 1, 0) == 1 && poll_fd.revents == (POLLERR | POLLHUP));
	must(module_call(channel.fd, VGPU_IOC_INFO, &info) == -ENODEV);
	must(signal_at(channel.area) == SIGBUS);
	must(signal_at(channel.extents) == SIGBUS);
	must(module_map(channel.fd, 0, PAGE, PROT_READ) == MAP_FAILED && errno == ENODEV);
	say("gone");
}

/* The host starts afresh: all channels end, and new ones work. */
static void run_afresh(void)
{
	struct vgpu_ioc_state state = {};
	struct module_channel next;
	uint64_t end = now_us() + 20 * SECOND_US;

	must(module_call(channel.fd, VGPU_IOC_RING, NULL) == 0);
	while (!module_call(channel.fd, VGPU_IOC_STATE, &state) &&
		state.state == VGPU_CHANNEL_OPEN && now_us() < end)
		usleep(1000);
	must(state.state == VGPU_CHANNEL_DEAD);
	must(signal_at(channel.area) == SIGBUS);
	must(signal_at(channel.extents) == SIGBUS);
	must(module_open(&next) == 0);
	memset(next.extents, 0x77, VGPU_EXTENT_SIZE);
}

/*
 * Sleep of the machine, reset of the device
 */

static int await_reply(void)
{
	struct vgpu_ioc_wait wait = {
		.offset = channel.state.area_off + VGPU_SLOTS_OFF,
		.seen = 7,
		.timeout_us = 1000 * SECOND_US,
	};
	int r;

	do
		r = module_call(channel.fd, VGPU_IOC_WAIT, &wait);
	while (r == -EINTR);
	return r;
}

/* No store may be lost. */
static void store_until(const char *path)
{
	volatile uint64_t *places[] = { (volatile uint64_t *)channel.area,
		(volatile uint64_t *)channel.extents };
	uint64_t n = 0;

	while (access(path, F_OK))
		for (uint64_t end = n + 1000; n < end; n++)
			for (size_t i = 0; i < 2; i++) {
				*places[i] = n;
				must(*places[i] == n);
			}
}

/* The reply to the ring may come at any time until the file is there, or after. */
static void run_outlast(const char *path)
{
	const uint64_t size = (uint64_t)channel.state.n_extents * VGPU_EXTENT_SIZE;
	struct pollfd poll_fd = { .fd = channel.fd, .events = POLLIN };
	pid_t pid;
	int status;

	memset(channel.extents, 0x22, size);
	*(volatile uint32_t *)(channel.area + VGPU_SLOTS_OFF) = 7;
	pid = fork();
	must(pid >= 0);
	if (!pid)
		_exit(await_reply() ? 1 : 0);
	must(module_call(channel.fd, VGPU_IOC_RING, NULL) == 0);
	say("outlasting");
	store_until(path);
	must(waitpid(pid, &status, 0) == pid && !status);
	must(poll(&poll_fd, 1, 10000) == 1 && poll_fd.revents == POLLIN);
	for (uint64_t off = 8; off < size; off++)
		must(channel.extents[off] == 0x22);
}

/*
 * The type of a mapping
 */

/* The kernel's line of the page tables that has the address. */
static void find_entry(const void *address, char *line, size_t size)
{
	FILE *file = fopen("/sys/kernel/debug/page_tables/current_kernel", "r");
	const uintptr_t at = (uintptr_t)address;
	unsigned long first, end;

	must(file);
	while (fgets(line, (int)size, file))
		if (sscanf(line, "0x%lx-0x%lx", &first, &end) == 2 && at >= first &&
			at < end) {
			fclose(file);
			return;
		}
	must(!"in the page tables");
}

static bool is_write_back(const char *line)
{
	return !strstr(line, "PCD") && !strstr(line, "PWT") && !strstr(line, "PAT");
}

static void run_mapping(void)
{
	const uint8_t *const places[] = { channel.area, channel.extents,
		channel.extents + VGPU_EXTENT_SIZE };
	char line[256];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		*(volatile uint8_t *)(uintptr_t)places[i] = 1;
		find_entry(places[i], line, sizeof(line));
		printf("driver: %s", line);
		must(is_write_back(line));
	}
}

/* The same of a file of sysfs: without the driver the mapping is uncached. */
static void run_file_mapping(const char *path)
{
	int fd = open(path, O_RDWR);
	void *map = module_map(fd, 0, PAGE, PROT_READ | PROT_WRITE);
	char line[256];

	must(map != MAP_FAILED);
	(void)*(volatile uint8_t *)map;
	find_entry(map, line, sizeof(line));
	printf("sysfs: %s", line);
	must(!is_write_back(line));
}

/* Of a device that the driver has. */
static void run_file_refused(const char *path)
{
	int fd = open(path, O_RDWR);

	must(fd >= 0);
	must(module_map(fd, 0, PAGE, PROT_READ | PROT_WRITE) == MAP_FAILED);
	must(errno == EINVAL);
}

static bool needs_channel(const char *command)
{
	return strcmp(command, "early") != 0 && strncmp(command, "file-", 5) != 0;
}

int main(int argc, char **argv)
{
	const char *argument = argc > 2 ? argv[2] : "";
	const char *command = argc > 1 ? argv[1] : "";

	if (needs_channel(command))
		open_it();
	if (!strcmp(command, "early"))
		run_early();
	else if (!strcmp(command, "works"))
		run_works();
	else if (!strcmp(command, "wait"))
		run_wait();
	else if (!strcmp(command, "bad-calls"))
		run_bad_calls();
	else if (!strcmp(command, "bad-maps"))
		run_bad_maps();
	else if (!strcmp(command, "isolation"))
		run_isolation();
	else if (!strcmp(command, "pipe"))
		run_pipe();
	else if (!strcmp(command, "kills"))
		run_kills((unsigned int)atoi(argument));
	else if (!strcmp(command, "orphan"))
		run_orphan();
	else if (!strcmp(command, "hold"))
		run_hold();
	else if (!strcmp(command, "afresh"))
		run_afresh();
	else if (!strcmp(command, "outlast"))
		run_outlast(argument);
	else if (!strcmp(command, "mapping"))
		run_mapping();
	else if (!strcmp(command, "file-mapping"))
		run_file_mapping(argument);
	else if (!strcmp(command, "file-refused"))
		run_file_refused(argument);
	else if (strcmp(command, "open") != 0)
		must(!"a known command");
	say("%s: right", command);
	return 0;
}
