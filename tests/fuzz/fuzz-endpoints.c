/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the keeper's endpoints
 *
 * The input is a sequence of steps: processes connect, read a part of their greeting,
 * write arbitrary data and disconnect; files of transport plain are created, changed and
 * removed; brokers are replaced, and so is the configuration. Messages to the broker have
 * to be consistent, a greeting is either complete or absent, and in the end nothing is
 * left open.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/packet.h"
#include "descriptors.h"
#include "keeper/endpoints.h"
#include "keeper/greeting.h"
#include "reader.h"
#include "stage-loop.h"
#include "vgpu/cleanup.h"
#include "vgpu/hello.h"
#include "vgpu/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CLIENTS 12u
#define VMS 64u
#define SECTIONS 3u
#define MEMORIES 512u
#define STEPS_MAX 120
#define NOT_NOW 0x80u
#define DESCRIPTORS 1000u
/* More than the wiper empties at once. */
#define FILL_SIZE (6 << 20)

#define need(_condition)                                                                 \
	do {                                                                             \
		if (!(_condition)) {                                                     \
			fprintf(stderr, "%d: not so: %s\n", __LINE__, #_condition);      \
			abort();                                                         \
		}                                                                        \
	} while (0)

/* The VMs that the current broker knows. */
struct vm {
	uint64_t id;
	uint32_t section;
	bool gone;
};

struct client {
	int fd; /* -1: free */
	bool is_qemu;
	unsigned int n_read; /* numbers of its greeting */
	uint64_t peer;
};

static struct {
	char folder[64];
	struct reader reader;
	struct config *config;
	struct endpoints endpoints;
	int link; /* the broker's end */
	uint64_t last_id;
	struct vm vms[VMS];
	unsigned int n_vms;
	uint64_t inodes[MEMORIES]; /* of all memories that were announced to a broker */
	unsigned int n_inodes;
	struct client clients[CLIENTS];
} world;

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", world.folder, name);
	return path;
}

static void remove_folder(void)
{
	unlink(path_of("plain"));
	rmdir(world.folder);
}

static void begin(void)
{
	const char *tmp = getenv("TMPDIR");
	struct rlimit limit;

	snprintf(world.folder, sizeof(world.folder), "%.32s/vgpu-endpoints.XXXXXX",
		tmp ? tmp : "/tmp");
	need(mkdtemp(world.folder));
	atexit(remove_folder);
	/* Sections have shares of it. */
	need(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = DESCRIPTORS;
	need(!setrlimit(RLIMIT_NOFILE, &limit));
	vgpu_log_init("fuzz", VGPU_LOG_DEBUG);
	vgpu_log_use(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

/* Variants of one configuration: the endpoints that stay, go, move and change names. */
static struct config *make_config(unsigned int variant)
{
	static const char *const formats[] = {
		"[vm q]\nsocket = %s/q\nsize = 64M\nmax-processes = 1\n"
		"[vm s]\ntransport = socket\nsocket = %s/s\nsize = 64M\n"
		"max-processes = 1\n"
		"[vm p]\ntransport = plain\nmemory = %s/plain\n",
		"[vm s]\ntransport = socket\nsocket = %s/s\nsize = 128M\n"
		"[vm q]\nsocket = %s/q\nsize = 64M\nmax-processes = 1\n"
		"[vm p]\ntransport = plain\nmemory = %s/plain\n",
		"[vm s]\ntransport = socket\nsocket = %s/q\nsize = 64M\n"
		"[vm q]\nsocket = %s/s\nsize = 64M\nmax-processes = 1\n"
		"[vm p]\ntransport = plain\nmemory = %s/elsewhere\n",
		"[vm x]\nsocket = %s/q\nsize = 64M\nlog-lines = 1\n"
		"max-processes = 1\n"
		"[vm s]\ntransport = socket\nsocket = %s/s\nsize = 64M\n"
		"[vm y]\ntransport = plain\nmemory = %s/plain\n",
		"[vm q]\nsocket = %s/q\nsize = 64M\nmax-processes = 1\n"
		"[vm s]\ntransport = socket\nsocket = %s/none/s\nsize = 64M\n"
		"[vm p]\ntransport = plain\nmemory = %s/plain\n",
	};
	struct config *config;
	char text[1024], *error;

	snprintf(text, sizeof(text), formats[variant % 5], world.folder, world.folder,
		world.folder);
	need(!config_new_from_text(&config, "file", text, &error));
	return config;
}

/*
 * The broker
 */

static struct vm *find_vm(uint64_t id)
{
	for (unsigned int i = 0; i < world.n_vms; i++)
		if (world.vms[i].id == id)
			return &world.vms[i];
	return NULL;
}

static void hear_vm(const struct link_message *message, const int *fds)
{
	const struct config_vm *config =
		config_vm_at(world.config, message->vm.config_index);
	struct stat st;

	need(config && message->id && !find_vm(message->id));
	/* Only a file of transport plain may have been cut short meanwhile. */
	need(!fstat(fds[0], &st) && ((uint64_t)st.st_size == message->vm.size ||
					    config->transport == CONFIG_PLAIN));
	need(config->transport != CONFIG_IVSHMEM ||
		message->vm.n_doorbells == VGPU_IVSHMEM_VECTORS);
	need(config->transport == CONFIG_IVSHMEM || !message->vm.n_interrupts);
	for (unsigned int i = 0; i < world.n_vms; i++)
		need(world.vms[i].gone || world.vms[i].section != config->index ||
			config->transport == CONFIG_SOCKET);
	need(world.n_vms < VMS);
	world.vms[world.n_vms++] = (struct vm){ message->id, config->index, false };
	if (world.n_inodes < MEMORIES)
		world.inodes[world.n_inodes++] = st.st_ino;
}

static void hear(const struct link_message *message, const int *fds)
{
	struct vm *vm;

	switch (message->type) {
	case LINK_VM:
		hear_vm(message, fds);
		return;
	case LINK_VM_GONE:
		vm = find_vm(message->id);
		need(vm && !vm->gone);
		vm->gone = true;
		return;
	}
	if (message->type == LINK_QUOTA) {
		need(message->section.config_index < world.config->n_vms);
		return;
	}
	need(message->type == LINK_IMAGE);
	need(message->image.config_index < world.config->n_vms);
}

static void hear_all(void)
{
	struct link_message message;
	int fds[LINK_FDS_MAX];
	size_t n_fds;

	while (!link_receive(world.link, &message, fds, &n_fds)) {
		hear(&message, fds);
		for (size_t i = 0; i < n_fds; i++)
			close(fds[i]);
	}
}

static void start_broker(void)
{
	int pair[2];

	vgpu_close(world.endpoints.link);
	vgpu_close(world.link);
	need(!socketpair(
		AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
	world.endpoints.link = pair[0];
	world.link = pair[1];
	world.n_vms = 0;
	endpoints_announce_all(&world.endpoints);
	hear_all();
}

/* The broker forgets a VM that is gone, or one that still exists if its file was
 * truncated. */
static void forget_vm(void)
{
	struct vm *vm;

	if (!world.n_vms)
		return;
	vm = &world.vms[reader_below(&world.reader, world.n_vms)];
	if (!vm->gone &&
		config_vm_at(world.config, vm->section)->transport != CONFIG_PLAIN)
		return;
	endpoints_forget_vm(&world.endpoints, vm->id);
	*vm = world.vms[--world.n_vms];
}

static void move_image(bool keep)
{
	struct link_message message = {
		.type = keep ? LINK_IMAGE : LINK_IMAGE_DONE,
		.image.config_index = reader_below(&world.reader, SECTIONS + 1),
		.image.size = 1,
	};
	unsigned int which = reader_below(&world.reader, VMS);

	message.id = which < world.n_vms ? world.vms[which].id : which % 2;
	message.image.digest[0] = reader_below(&world.reader, 4);
	if (keep)
		endpoints_keep_image(&world.endpoints, &message,
			open("/dev/null", O_RDONLY | O_CLOEXEC));
	else
		endpoints_drop_image(&world.endpoints, &message);
}

static void reload(void)
{
	struct config *next = make_config(reader_u8(&world.reader)), *old = world.config;

	if (endpoints_reload(&world.endpoints, next)) {
		config_free(next);
		return;
	}
	world.config = next;
	config_free(old);
	start_broker();
}

/*
 * Clients
 */

static void connect_client(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const bool to_s = reader_u8(&world.reader) % 2;
	struct client *client = world.clients;

	while (client < world.clients + CLIENTS && client->fd >= 0)
		client++;
	if (client == world.clients + CLIENTS)
		return;
	strcpy(address.sun_path, path_of(to_s ? "s" : "q"));
	client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	need(client->fd >= 0);
	client->n_read = 0;
	client->is_qemu = false;
	if (connect(client->fd, (struct sockaddr *)&address, sizeof(address)))
		client->fd = vgpu_close(client->fd);
}

static bool is_told(int shm)
{
	struct stat st;

	need(!fstat(shm, &st));
	for (unsigned int i = 0; i < world.n_inodes; i++)
		if (world.inodes[i] == st.st_ino)
			return true;
	return world.n_inodes == MEMORIES;
}

static void check_number(struct client *client, uint64_t number, const int *fd)
{
	const unsigned int n = client->n_read++;

	if (!n) {
		need(number == 0 || number == VGPU_SHM_MAGIC);
		client->is_qemu = number == 0;
		return;
	}
	if (!client->is_qemu) {
		need(n == 1 && (uint32_t)number == VGPU_PROTOCOL_VERSION);
		return;
	}
	need(n < GREETING_IVSHMEM_N);
	need((n >= 2) == (fd != NULL));
	if (n == 1) {
		client->peer = number;
		need(number >= 1 && number <= GREETING_PEER_MAX);
		return;
	}
	if (n == 2)
		need(number == UINT64_MAX && is_told(*fd));
	else
		need(number == (n < 3 + VGPU_IVSHMEM_VECTORS ? GREETING_HOST_PEER
							     : client->peer));
}

/* A full memory is emptied in pieces once it was closed. */
static void take_memory(int shm)
{
	need(is_told(shm));
	if (reader_u8(&world.reader) % 4 == 0)
		need(!fallocate(shm, 0, 0, FILL_SIZE));
}

static void read_greeting(struct client *client)
{
	int fds[VGPU_SOCKET_FDS], r;
	uint64_t number;
	size_t size, n_fds;
	bool cut;

	for (unsigned int n = reader_below(&world.reader, 80); n; n--) {
		r = packet_receive(client->fd, &number, sizeof(number), &size, fds,
			VGPU_SOCKET_FDS, &n_fds, &cut);
		if (r)
			return;
		need(size == sizeof(number) && !cut);
		need(n_fds <= 1 || (!client->n_read && n_fds == VGPU_SOCKET_FDS));
		if (n_fds == VGPU_SOCKET_FDS)
			take_memory(fds[0]);
		check_number(client, number, n_fds == 1 ? fds : NULL);
		for (size_t i = 0; i < n_fds; i++)
			close(fds[i]);
	}
}

static void client_step(uint8_t step)
{
	struct client *client = &world.clients[reader_below(&world.reader, CLIENTS)];
	uint8_t bytes[16];

	if (client->fd < 0)
		return;
	switch (step) {
	case 0:
		read_greeting(client);
		return;
	case 1:
		client->fd = vgpu_close(client->fd);
		return;
	case 2:
		shutdown(client->fd, reader_below(&world.reader, 3));
		return;
	}
	reader_bytes(&world.reader, bytes, sizeof(bytes));
	(void)!send(client->fd, bytes, 1 + bytes[0] % 15, MSG_NOSIGNAL);
}

static void change_file(void)
{
	const uint8_t how = reader_u8(&world.reader);
	int fd;

	if (how % 4 == 3) {
		unlink(path_of("plain"));
		return;
	}
	if (how % 4 == 2)
		unlink(path_of("plain"));
	fd = open(path_of("plain"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	need(fd >= 0);
	need(!ftruncate(fd, how % 4 ? VGPU_SHM_SIZE_MIN : (off_t)how << 20));
	close(fd);
}

/*
 * The keeper
 */

static void dispatch(void)
{
	struct pollfd polls[1 + SECTIONS + VMS + 2];
	unsigned int n = endpoints_count_polls(&world.endpoints);

	need(n <= sizeof(polls) / sizeof(*polls));
	need(endpoints_timeout(&world.endpoints) >= -1);
	endpoints_fill_polls(&world.endpoints, polls);
	need(stage_poll(polls, n) >= 0);
	endpoints_dispatch(&world.endpoints, polls);
	endpoints_scan_plain(&world.endpoints);
	world.endpoints.link_result = 0;
	hear_all();
}

/* In a longer time more comes to its end: a memory that is emptied, too. */
static void wait_ms(uint16_t ms)
{
	stage_clock_advance(ms);
	for (unsigned int i = 0; i < ms / 50u && world.n_vms < VMS / 2; i++)
		dispatch();
}

static void take_step(uint8_t step)
{
	static const uint16_t times[] = { 1, 20, 100, 1000 };

	switch (step) {
	case 0:
		connect_client();
		return;
	case 1:
	case 2:
	case 3:
	case 4:
		client_step(step - 1);
		return;
	case 5:
		change_file();
		return;
	case 6:
		forget_vm();
		return;
	case 7:
	case 8:
		move_image(step == 7);
		return;
	case 9:
		start_broker();
		return;
	case 10:
		reload();
		return;
	}
	wait_ms(times[reader_below(&world.reader, 4)]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int n_fds;
	uint8_t step;

	if (!*world.folder)
		begin();
	n_fds = descriptors_count();
	stage_clock_set(1000);
	unlink(path_of("plain"));
	for (unsigned int i = 0; i < CLIENTS; i++)
		world.clients[i].fd = -1;
	world.reader = (struct reader){ data, size };
	world.config = make_config(0);
	world.link = -1;
	world.n_inodes = 0;
	need(!endpoints_init(&world.endpoints, world.config));
	start_broker();
	for (int i = 0; i < STEPS_MAX && world.reader.size; i++) {
		step = reader_u8(&world.reader);
		take_step(step % NOT_NOW % 12);
		if (!(step & NOT_NOW) && world.n_vms < VMS / 2)
			dispatch();
	}
	for (unsigned int i = 0; i < CLIENTS; i++)
		vgpu_close(world.clients[i].fd);
	vgpu_close(world.endpoints.link);
	vgpu_close(world.link);
	endpoints_deinit(&world.endpoints);
	config_free(world.config);
	need(descriptors_count() == n_fds);
	need(access(path_of("q"), F_OK) && access(path_of("q.lock"), F_OK));
	need(access(path_of("s"), F_OK) && access(path_of("s.lock"), F_OK));
	return 0;
}
