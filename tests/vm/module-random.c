/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random calls of the guest's driver: ioctl, mmap, munmap, mprotect, madvise, touch,
 * read, poll, fork, close, in some processes at once that are killed at random
 *
 * usage: module-random SECONDS SEED. Exit status 0: that long. What the kernel says of it
 * is for the caller to judge.
 */

#define _GNU_SOURCE
#include <poll.h>
#include <setjmp.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "module.h"

#define FILES 4
#define MAPS 16
#define PROCESSES 4

struct map {
	uint8_t *address;
	uint64_t size;
};

static uint64_t random_state;
static int files[FILES];
static struct map maps[MAPS];
static sigjmp_buf back;

static uint64_t draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static uint64_t below(uint64_t n)
{
	return draw() % n;
}

static void jump(int number)
{
	siglongjmp(back, number);
}

/* Numbers near those that mean something, or any. */
static uint64_t draw_number(void)
{
	static const uint64_t bases[] = { 0, PAGE, 64 << 10, 1 << 20, 2 << 20, 6 << 20,
		10 << 20, 34 << 20, 36 << 20, 42 << 20, 256 << 20, 1ull << 32, 1ull << 63,
		UINT64_MAX, UINT32_MAX };
	uint64_t number = bases[below(sizeof(bases) / sizeof(bases[0]))];

	switch (below(4)) {
	case 0:
		return number;
	case 1:
		return number + PAGE * below(3000);
	case 2:
		return number + below(16) - 8;
	default:
		return draw() >> below(64);
	}
}

static int draw_file(void)
{
	return files[below(FILES)];
}

static void open_one(void)
{
	int *file = &files[below(FILES)];

	if (*file >= 0)
		close(*file);
	*file = open(DEVICE, below(8) ? O_RDWR : O_RDONLY);
	if (*file >= 0 && below(2))
		fcntl(*file, F_SETFL, O_NONBLOCK);
}

static void offer(void)
{
	struct vgpu_ioc_state state = {};
	struct vgpu_ioc_extents extents;
	uint32_t number;
	int fd = draw_file();

	module_offer(fd, &number);
	for (int i = 0; i < 20 && state.state != VGPU_CHANNEL_OPEN; i++) {
		struct vgpu_ioc_wait wait = { .seen = VGPU_CHANNEL_OPENING,
			.timeout_us = 1000,
			.flags = VGPU_WAIT_F_STATE };

		module_call(fd, VGPU_IOC_WAIT, &wait);
		module_call(fd, VGPU_IOC_STATE, &state);
	}
	extents = (struct vgpu_ioc_extents){ state.first_extent, state.n_extents };
	module_call(fd, VGPU_IOC_ACCEPT, &extents);
}

/* A number of the driver with an argument of random words, or one of any kind. */
static void call_one(void)
{
	static const unsigned long known[] = { VGPU_IOC_INFO, VGPU_IOC_OFFER,
		VGPU_IOC_STATE, VGPU_IOC_ACCEPT, VGPU_IOC_WAIT, VGPU_IOC_RING };
	uint64_t argument[16];
	unsigned long request =
		below(8) ? known[below(6)]
			 : _IOC(below(4), VGPU_IOC_TYPE, below(16), below(128));

	for (size_t i = 0; i < 16; i++)
		argument[i] = draw_number();
	/* Waits that end. */
	if (request == VGPU_IOC_WAIT) {
		argument[1] = below(1000) << 32 | below(8);
		argument[2] = below(3);
	}
	module_call(draw_file(), request,
		below(8) ? (void *)argument : (void *)(uintptr_t)draw_number());
}

static void map_one(void)
{
	struct map *map = &maps[below(MAPS)];
	uint64_t size = PAGE * (1 + below(below(4) ? 4 : 2048));
	int protection = (int)below(8), flags = below(6) ? MAP_SHARED : MAP_PRIVATE;

	if (map->size)
		munmap(map->address, map->size);
	map->size = 0;
	map->address = mmap(NULL, size, protection, flags, draw_file(),
		(off_t)(draw_number() & ~(uint64_t)(PAGE - 1)));
	if (map->address != MAP_FAILED)
		map->size = size;
}

static void touch(const struct map *map)
{
	volatile uint8_t *place = map->address + below(map->size);

	if (sigsetjmp(back, 1))
		return;
	if (below(2))
		*place = (uint8_t)draw();
	else
		(void)*place;
}

static void splice_one(const struct map *map)
{
	struct iovec piece = { map->address, PAGE };
	char sink[PAGE];
	int ends[2];

	if (pipe(ends))
		return;
	if (vmsplice(ends[1], &piece, 1, SPLICE_F_NONBLOCK) > 0 && below(2))
		(void)!read(ends[0], sink, sizeof(sink));
	close(ends[0]);
	close(ends[1]);
}

static void change(struct map *map)
{
	static const int advice[] = { MADV_DONTNEED, MADV_DOFORK, MADV_DONTFORK,
		MADV_DODUMP, MADV_COLD, MADV_PAGEOUT, MADV_FREE, MADV_HUGEPAGE,
		MADV_MERGEABLE, MADV_WILLNEED };
	void *moved;

	switch (below(6)) {
	case 0:
		mprotect(map->address, map->size, (int)below(8));
		return;
	case 1:
		madvise(map->address, map->size, advice[below(10)]);
		return;
	case 2:
		/* A hole, or the end of it. */
		munmap(map->address + PAGE * below(map->size / PAGE), PAGE);
		return;
	case 3:
		moved = mremap(map->address, map->size, map->size * (1 + below(2)),
			MREMAP_MAYMOVE);
		if (moved != MAP_FAILED)
			map->address = moved;
		return;
	case 4:
		splice_one(map);
		return;
	default:
		mlock(map->address, map->size);
	}
}

static void step(void);

/* With all that it inherits. */
static void fork_one(void)
{
	pid_t pid = fork();

	if (!pid) {
		random_state ^= (uint64_t)getpid() << 32 | 1;
		for (uint64_t n = below(200); n; n--)
			step();
		_exit(0);
	}
	if (pid > 0 && below(2))
		kill(pid, SIGKILL);
}

static void step(void)
{
	struct pollfd poll_fd = { .fd = draw_file(), .events = POLLIN };
	struct map *map = &maps[below(MAPS)];
	uint64_t n;

	switch (below(16)) {
	case 0:
		open_one();
		return;
	case 1:
	case 2:
		offer();
		return;
	case 3:
	case 4:
	case 5:
	case 6:
		map_one();
		return;
	case 7:
	case 8:
	case 9:
	case 10:
		if (map->size)
			touch(map);
		return;
	case 11:
		if (map->size)
			change(map);
		return;
	case 12:
		poll(&poll_fd, 1, 0);
		if (fcntl(poll_fd.fd, F_GETFL) & O_NONBLOCK)
			(void)!read(poll_fd.fd, &n, 1 + below(16));
		return;
	default:
		call_one();
	}
}

static void run(uint64_t seed)
{
	signal(SIGBUS, jump);
	signal(SIGSEGV, jump);
	random_state = seed * 0x9e3779b97f4a7c15ull | 1;
	for (int i = 0; i < FILES; i++)
		files[i] = -1;
	for (;;) {
		step();
		if (!below(100))
			fork_one();
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

static pid_t start(uint64_t seed)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (!pid) {
		setpgid(0, 0);
		run(seed);
	}
	setpgid(pid, pid);
	return pid;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	pid_t pids[PROCESSES];
	unsigned int n = 0;

	random_state = seed | 1;
	for (int i = 0; i < PROCESSES; i++)
		pids[i] = start(seed + n++);
	while (time(NULL) < end) {
		pid_t *pid = &pids[below(PROCESSES)];

		usleep((useconds_t)below(200000));
		kill(-*pid, SIGKILL);
		waitpid(*pid, NULL, 0);
		*pid = start(seed + n++);
	}
	for (int i = 0; i < PROCESSES; i++) {
		kill(-pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	printf("random: %u processes\n", n);
	return 0;
}
