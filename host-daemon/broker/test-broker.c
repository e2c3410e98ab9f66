/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker between a keeper and workers that the test plays
 *
 * The broker is a child process; the test has the keeper's end of the link.
 */

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/vm.h"
#include "test.h"
#include "vgpu/log.h"
#include "vgpud/layout.h"
#include "vgpud/link.h"

#define SHM_SIZE (256u << 20)
/* Above all that the kernel gives. */
#define NO_PID (1 << 23)
#define ANSWER_MS 30000

static struct keeper {
	pid_t broker;
	int link; /* our end */
	unsigned int n_spawns;
} keeper;

/* A VM as the last broker left it. */
struct memory {
	struct layout layout;
	int shm, ledger_fd;
	uint8_t *map; /* of what is before the arena */
	struct ledger *ledger;
};

static void start_broker(void)
{
	static const char text[] = "[vgpud]\ndriver = null\nwarm-workers = 0\n"
				   "[vm s]\ntransport = socket\nsocket = /s\n"
				   "size = 256M\nmax-processes = 1\n"
				   "device-memory = 64M\n";
	struct config *config;
	int pair[2], status;
	char *error;

	check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	keeper = (struct keeper){ .broker = fork(), .link = pair[0] };
	check(keeper.broker >= 0);
	if (keeper.broker) {
		close(pair[1]);
		return;
	}
	close(pair[0]);
	vgpu_log_init("broker", VGPU_LOG_DEBUG);
	if (config_new_from_text(&config, "text", text, &error))
		_exit(99);
	status = broker_run(config, NULL, -1, pair[1]);
	config_free(config);
	_exit(status);
}

/* Returns: its exit status; a signal is a failure. */
static int wait_for_end(void)
{
	int status;

	check_eq(waitpid(keeper.broker, &status, 0), keeper.broker);
	close(keeper.link);
	check(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void stop_broker(void)
{
	shutdown(keeper.link, SHUT_WR);
	check_eq(wait_for_end(), EXIT_FAILURE);
}

static void tell(enum link_type type, uint64_t id)
{
	check_eq(link_send_id(keeper.link, type, id), 0);
}

/* Return: the page, which its workers would have. */
static struct quota_page *tell_quota(void)
{
	const struct link_message message = { .type = LINK_QUOTA };
	static struct quota_page *page;
	int fd;

	check_eq(quota_make(&fd), 0);
	page = quota_unmap(page);
	check_eq(quota_map(&page, fd), 0);
	check_eq(link_send(keeper.link, &message, &fd, 1), 0);
	close(fd);
	return page;
}

static int make_file(uint64_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	check(fd >= 0 && !ftruncate(fd, size));
	return fd;
}

static void make_memory(struct memory *memory)
{
	struct layout *layout = &memory->layout;

	layout_init(layout, SHM_SIZE, 4);
	memory->shm = make_file(SHM_SIZE);
	memory->ledger_fd = make_file(ledger_size(layout));
	check_eq(layout_format(layout, memory->shm, 1), 0);
	memory->map = mmap(NULL, layout->extents_off, PROT_READ | PROT_WRITE, MAP_SHARED,
		memory->shm, 0);
	memory->ledger = mmap(NULL, ledger_size(layout), PROT_READ | PROT_WRITE,
		MAP_SHARED, memory->ledger_fd, 0);
	check(memory->map != MAP_FAILED && memory->ledger != MAP_FAILED);
}

static void free_memory(struct memory *memory)
{
	munmap(memory->map, memory->layout.extents_off);
	munmap(memory->ledger, ledger_size(&memory->layout));
	close(memory->shm);
	close(memory->ledger_fd);
}

static struct vgpu_channel_entry *entry_of(const struct memory *memory, uint32_t channel)
{
	return (struct vgpu_channel_entry *)(memory->map + layout_channel_off(channel));
}

static void tell_memory(const struct memory *memory, uint64_t id)
{
	const struct link_message message = {
		.type = LINK_VM,
		.id = id,
		.vm = {
			.n_channels_max = memory->layout.n_channels,
			.size = SHM_SIZE,
			.pid = 1,
		},
	};
	const int fds[] = { memory->shm, memory->ledger_fd };

	check_eq(link_send(keeper.link, &message, fds, 2), 0);
}

/* The same with a doorbell and an interrupt, both of the broker. */
static void tell_device(const struct memory *memory, int doorbell, int interrupt)
{
	const struct link_message message = {
		.type = LINK_VM,
		.id = 1,
		.vm = {
			.n_channels_max = memory->layout.n_channels,
			.size = SHM_SIZE,
			.n_doorbells = 1,
			.n_interrupts = 1,
			.pid = 1,
		},
	};
	const int fds[] = { memory->shm, memory->ledger_fd, doorbell, interrupt };

	check_eq(link_send(keeper.link, &message, fds, 4), 0);
}

/* Return: the worker's end of its control socket. */
static int tell_worker(uint64_t id)
{
	const struct link_message message = {
		.type = LINK_WORKER,
		.id = id,
		.worker.pid = NO_PID,
	};
	int pair[2], pipes[2], fds[3];

	check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	check_eq(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
	check_eq(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
	fds[0] = pair[0];
	fds[1] = make_file(WORKER_STATS_SIZE);
	fds[2] = pipes[0];
	check_eq(link_send(keeper.link, &message, fds, 3), 0);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	close(pipes[1]);
	return pair[1];
}

/* Reads the broker's messages until it has handled all earlier requests. */
static void meet(void)
{
	struct link_message message;
	int fds[LINK_FDS_MAX];
	size_t n_fds;

	tell(LINK_PING, 77);
	do {
		check_eq(link_receive(keeper.link, &message, fds, &n_fds), 0);
		check_eq(n_fds, 0);
		keeper.n_spawns += message.type == LINK_SPAWN;
	} while (message.type != LINK_PONG);
	check_eq(message.id, 77);
}

static bool is_readable(int fd, int ms)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	return poll(&poller, 1, ms) == 1;
}

static void say_hello(const struct memory *memory, uint32_t channel)
{
	struct vgpu_channel_entry *entry = entry_of(memory, channel);

	entry->protocol_version = VGPU_PROTOCOL_VERSION;
	entry->window_base = 0x100000000000ull;
	entry->window_size = 0x400000000000ull;
	entry->boot_id[0] = 1;
	entry->state = VGPU_CHANNEL_OPENING;
}

TEST(a_second_sync_of_the_keeper_is_a_protocol_error)
{
	start_broker();
	tell_quota();
	tell(LINK_SYNC, 0);
	meet();
	tell(LINK_SYNC, 0);
	check_eq(wait_for_end(), EXIT_FAILURE);
}

TEST(a_drain_before_sync_is_a_protocol_error)
{
	struct memory memory;

	make_memory(&memory);
	/* In the last broker's queue, but not in this one's. */
	memory.ledger->channels[0].phase = CHANNEL_WAITING;
	start_broker();
	tell_quota();
	tell_memory(&memory, 1);
	tell(LINK_DRAIN, 0);
	check_eq(wait_for_end(), EXIT_FAILURE);
	free_memory(&memory);
}

TEST(a_keeper_that_forgot_a_page_of_quotas_is_not_believed)
{
	start_broker();
	tell(LINK_SYNC, 0);
	check_eq(wait_for_end(), EXIT_FAILURE);
}

TEST(a_broker_that_drains_without_a_worker_ends)
{
	start_broker();
	tell_quota();
	tell(LINK_SYNC, 0);
	tell(LINK_DRAIN, 0);
	check_eq(wait_for_end(), EXIT_SUCCESS);
}

/* The section may have one process: what the last broker knew of another, which has
 * closed meanwhile, must not be in the way. */
TEST(all_channels_are_restored_before_a_guest_is_heard)
{
	struct memory first, second;

	make_memory(&first);
	make_memory(&second);
	say_hello(&first, 0);
	second.ledger->channels[0].phase = CHANNEL_WAITING;
	entry_of(&second, 0)->state = VGPU_CHANNEL_CLOSING;
	start_broker();
	tell_quota();
	tell_memory(&first, 1);
	tell_memory(&second, 2);
	tell(LINK_SYNC, 0);
	meet();
	check_eq(entry_of(&first, 0)->state, VGPU_CHANNEL_OPENING);
	check_eq(first.ledger->channels[0].phase, CHANNEL_WAITING);
	check_eq(keeper.n_spawns, 1);
	stop_broker();
	free_memory(&first);
	free_memory(&second);
}

/* Its request can be met only by what another channel had, whose worker is gone. */
TEST(all_channels_are_restored_before_a_worker_is_heard)
{
	struct control_message message = {
		.type = CONTROL_WANT,
		.want = { .n_extents = 8, .cookie = 5 },
	};
	int control, fds[CONTROL_FDS_MAX];
	struct memory memory;

	make_memory(&memory);
	for (uint32_t i = 0; i < 2; i++) {
		memory.ledger->channels[i].phase = CHANNEL_OPEN;
		memory.ledger->channels[i].worker = 10 + i;
		entry_of(&memory, i)->state = VGPU_CHANNEL_OPEN;
	}
	memset(memory.ledger->owners, 1 + 0, memory.layout.n_extents);
	memset(memory.ledger->owners, 1 + 1, memory.layout.n_extents / 2);
	/* The one that is gone has closed. */
	entry_of(&memory, 1)->state = VGPU_CHANNEL_CLOSING;
	start_broker();
	tell_quota();
	tell_memory(&memory, 1);
	control = tell_worker(10);
	check_eq(control_send(control, &message, NULL), 0);
	/* In the second round of its loop, whatever was there in the first. */
	meet();
	meet();
	check(!is_readable(control, 0));
	tell(LINK_SYNC, 0);
	check(is_readable(control, ANSWER_MS));
	check_eq(control_receive(control, &message, fds), 0);
	check_eq(message.type, CONTROL_GRANT);
	check_eq(message.grant.cookie, 5);
	check_eq(message.grant.error, 0);
	check_eq(message.grant.n_extents, 8);
	check_eq(message.grant.first_extent, 0);
	stop_broker();
	close(control);
	free_memory(&memory);
}

TEST(entries_of_a_worker_in_the_quota_page_are_erased_after_its_end)
{
	const struct link_message exited = { .type = LINK_EXITED, .id = 10 };
	struct quota_page *page;
	int control;

	start_broker();
	page = tell_quota();
	/* Of a VM that has gone: it is no channel's. */
	control = tell_worker(10);
	tell(LINK_SYNC, 0);
	meet();
	check_eq(quota_limit(page), 64u << 20);
	quota_set_limit(page, 1ull << 40);
	quota_set(page, 3, 5);
	check_eq(link_send(keeper.link, &exited, NULL, 0), 0);
	meet();
	check_eq(quota_limit(page), 64u << 20);
	check_eq(page->used[2], 0);
	stop_broker();
	close(control);
}

/* Waits until the broker has seen the request, as the driver does before it lets the
 * device go. */
static void request(const struct memory *memory, int doorbell)
{
	struct vgpu_shm_header *header = (struct vgpu_shm_header *)memory->map;
	uint32_t n = __atomic_add_fetch(&header->n_requests, 1, __ATOMIC_RELEASE);

	check_eq(eventfd_write(doorbell, 1), 0);
	while (__atomic_load_n(&header->n_served, __ATOMIC_ACQUIRE) != n)
		meet();
}

static void ask_and_close(const struct memory *memory, int doorbell)
{
	say_hello(memory, 0);
	request(memory, doorbell);
	__atomic_store_n(
		&entry_of(memory, 0)->state, VGPU_CHANNEL_CLOSING, __ATOMIC_RELEASE);
	request(memory, doorbell);
	while (__atomic_load_n(&entry_of(memory, 0)->state, __ATOMIC_ACQUIRE) !=
		VGPU_CHANNEL_FREE)
		meet();
	/* The interrupt comes after the state, and one more after an earlier one. */
	meet();
	meet();
}

TEST(guest_that_lets_its_device_go_is_not_interrupted)
{
	const int doorbell = eventfd(0, EFD_NONBLOCK),
		  interrupt = eventfd(0, EFD_NONBLOCK);
	struct memory memory;
	eventfd_t n;

	check(doorbell >= 0 && interrupt >= 0);
	make_memory(&memory);
	start_broker();
	tell_quota();
	tell_device(&memory, doorbell, interrupt);
	tell(LINK_SYNC, 0);
	ask_and_close(&memory, doorbell);
	check(is_readable(interrupt, ANSWER_MS));
	check_eq(eventfd_read(interrupt, &n), 0);
	((struct vgpu_shm_header *)memory.map)->is_leaving = 1;
	ask_and_close(&memory, doorbell);
	check(!is_readable(interrupt, 0));
	stop_broker();
	free_memory(&memory);
	close(doorbell);
	close(interrupt);
}
