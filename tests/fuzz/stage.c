/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage: a real broker, with all its peers played by an input
 *
 * The input is a sequence of steps: a byte that chooses one, and its parameters. After
 * each the broker does all pending work, unless the byte says that the next step comes
 * first. A broker may be stopped between any two calls of its loop; the next one gets the
 * state from a keeper. In the end all sessions end, and nothing may be left.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/quota.h"
#include "descriptors.h"
#include "stage-loop.h"
#include "stage.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"

#define SHM_SIZE (256u << 20)
#define LEDGER_SIZE (1u << 20)
#define STEPS_MAX 200
#define ROUNDS_MAX 2000
#define END_MS 6000
#define RESTARTS_MAX 8u
#define NOT_NOW 0x80u

static const char config_text[] =
	"[vgpud]\nmax-workers = 6\nwarm-workers = 1\ndriver = null\n"
	"[vm a]\nsocket = /a\nsize = 256M\nimage-store = 64K\nmax-processes = 3\n"
	"[vm b]\nsocket = /b\nsize = 256M\nmax-processes = 4\nprocess-rate = 1\n"
	"devices = 1,0\nlog-lines = 1\nimage-store = 64K\nhost-memory = 96K\n"
	"[vm s]\ntransport = socket\nsocket = /s\nsize = 256M\n"
	"[vm p]\ntransport = plain\nmemory = /p\nimage-store = 8K\n";

static struct stage_vm all_vms[STAGE_VMS];
static const struct quota_page no_quota;
static struct config *config;

void stage_fail(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
	abort();
}

static bool is_plain(const struct stage_vm *vm)
{
	return vm == &all_vms[STAGE_PLAIN];
}

static int make_file(const char *name, uint64_t size, int seals)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, size) || fcntl(fd, F_ADD_SEALS, seals))
		abort();
	return fd;
}

/* Once: memories are emptied for each input, not made. */
static void begin(void)
{
	const int sealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	char *error;
	struct stat st;

	if (config_new_from_text(&config, "config", config_text, &error))
		abort();
	vgpu_log_init("fuzz", VGPU_LOG_DEBUG);
	vgpu_log_use(open("/dev/null", O_WRONLY | O_CLOEXEC));
	for (unsigned int i = 0; i < STAGE_VMS; i++) {
		struct stage_vm *vm = &all_vms[i];

		vm->n_channels_max = i == 2 ? 1 : 4;
		vm->n_doorbells = i == 2 ? 2 : i == 3 ? 0 : STAGE_DOORBELLS;
		vm->n_interrupts = i < 2 ? STAGE_DOORBELLS : 0;
		layout_init(&vm->layout, SHM_SIZE, vm->n_channels_max);
		vm->shm = make_file("shm", SHM_SIZE, is_plain(vm) ? 0 : sealed);
		vm->ledger = make_file("ledger", LEDGER_SIZE, sealed);
		for (unsigned int k = 0; k < vm->n_doorbells + vm->n_interrupts; k++)
			vm->eventfds[k] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		vm->owners = calloc(vm->layout.n_extents, sizeof(*vm->owners));
		if (quota_make(&vm->quota) || fstat(vm->shm, &st) || !vm->owners)
			abort();
		vm->inode = st.st_ino;
		if (fstat(vm->quota, &st))
			abort();
		vm->quota_inode = st.st_ino;
	}
}

int stage_make_fd(struct stage *stage, uint64_t *sizep)
{
	uint8_t kind = reader_u8(&stage->reader);
	int pair[2], fd = -1;

	switch (kind % 8) {
	case 0:
	case 1:
	case 2:
		*sizep = 1 + (kind / 8) * 1024;
		return make_file("image", *sizep, STAGE_SEALS);
	case 3:
		*sizep = 1 + (kind / 8) * 1024;
		return make_file("image", *sizep, STAGE_SEALS & ~(1 << kind / 16 % 4));
	case 4:
		return eventfd(kind, EFD_CLOEXEC | EFD_NONBLOCK);
	case 5:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 6:
		if (pipe2(pair, O_CLOEXEC | O_NONBLOCK))
			abort();
		close(pair[1]);
		return pair[0];
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		abort();
	close(pair[1]);
	fd = pair[0];
	return fd;
}

/*
 * The keeper
 */

static void tell_quotas(const struct stage *stage)
{
	struct link_message message = { .type = LINK_QUOTA };

	for (unsigned int i = 0; i < STAGE_VMS; i++) {
		message.section.config_index = i;
		link_send(stage->link, &message, &all_vms[i].quota, 1);
	}
}

static void tell_vm(struct stage *stage, const struct stage_vm *vm)
{
	struct link_message message = {
		.type = LINK_VM,
		.id = vm->id,
		.vm = {
			.config_index = vm - all_vms,
			.n_doorbells = vm->n_doorbells,
			.n_interrupts = vm->n_interrupts,
			.n_channels_max = vm->n_channels_max,
			.size = SHM_SIZE,
			.pid = 1,
		},
	};
	int fds[2 + 2 * STAGE_DOORBELLS] = { vm->shm, vm->ledger };
	const uint32_t n = vm->n_doorbells + vm->n_interrupts;

	memcpy(fds + 2, vm->eventfds, n * sizeof(int));
	link_send(stage->link, &message, fds, 2 + n);
	if (vm->gone)
		link_send_id(stage->link, LINK_VM_GONE, vm->id);
}

static void empty_vm(struct stage_vm *vm)
{
	const int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	uint64_t count;

	if ((is_plain(vm) && (ftruncate(vm->shm, 0) || ftruncate(vm->shm, SHM_SIZE))) ||
		fallocate(vm->shm, how, 0, SHM_SIZE) ||
		fallocate(vm->ledger, how, 0, LEDGER_SIZE) ||
		layout_format(&vm->layout, vm->shm, 1))
		abort();
	for (unsigned int i = 0; i < vm->n_doorbells + vm->n_interrupts; i++)
		while (read(vm->eventfds[i], &count, 8) == 8)
			;
	memset(vm->owners, 0, vm->layout.n_extents * sizeof(*vm->owners));
}

static void gain_vm(struct stage *stage, struct stage_vm *vm)
{
	if (vm->id)
		return;
	empty_vm(vm);
	vm->id = ++stage->last_id;
	vm->gone = false;
	tell_vm(stage, vm);
}

static void lose_vm(struct stage *stage, struct stage_vm *vm)
{
	if (!vm->id || vm->gone)
		return;
	vm->gone = true;
	stage_image_lose(stage, vm->id);
	link_send_id(stage->link, LINK_VM_GONE, vm->id);
}

static void start_broker(struct stage *stage)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		abort();
	stage->link = pair[0];
	stage->running = true;
	stage->n_spawns = 0;
	stage->pinged = stage->ponged = 0;
	if (broker_init(&stage->broker, config, pair[1]))
		abort();
	tell_quotas(stage);
	for (unsigned int i = 0; i < STAGE_VMS; i++)
		if (all_vms[i].id)
			tell_vm(stage, &all_vms[i]);
	stage_image_tell_all(stage);
	stage_share_tell_all(stage);
	for (unsigned int i = 0; i < STAGE_WORKERS; i++)
		if (stage->workers[i].id)
			stage_worker_tell(stage, &stage->workers[i], 0);
	link_send_id(stage->link, LINK_SYNC, 0);
	/* A keeper that drains starts no broker; only the stage has more to come. */
	if (stage->draining)
		link_send_id(stage->link, LINK_DRAIN, 0);
}

/* As if it was killed: only the ledgers and its last messages remain. */
static void stop_broker(struct stage *stage)
{
	const int link = stage->broker.link;

	broker_deinit(&stage->broker);
	close(link);
	stage_link_hear(stage);
	stage_worker_hear(stage);
	stage->link = vgpu_close(stage->link);
	stage->running = false;
}

static void restart_broker(struct stage *stage)
{
	if (stage->n_restarts == RESTARTS_MAX)
		return;
	stop_broker(stage);
	stage->n_restarts++;
	start_broker(stage);
}

/* No guest and no worker may end the broker. */
static void handle_end(struct stage *stage, int r)
{
	if (stage->honest)
		stage_check(!r && stage->draining);
	if (stage->n_restarts == RESTARTS_MAX) {
		stop_broker(stage);
		return;
	}
	restart_broker(stage);
}

void stage_settle(struct stage *stage)
{
	bool busy = true;
	int r;

	/* Pings are answered while all else waits. */
	if (stage->honest && stage->running)
		link_send_id(stage->link, LINK_PING, ++stage->pinged);
	for (int i = 0; i < ROUNDS_MAX && busy && stage->running; i++) {
		r = stage_loop_step(&stage->broker.loop);
		busy = r > 0;
		busy |= stage_link_hear(stage);
		busy |= stage_worker_hear(stage);
		if (r < 0 || stage->broker.loop.quit)
			handle_end(stage, r < 0 ? r : 0);
	}
	if (!stage->honest || !stage->running)
		return;
	stage_check(stage->ponged == stage->pinged);
	/* One that never comes to rest holds up others. */
	stage_check(!busy);
	stage_books_check(stage);
}

/*
 * The guest
 */

static void poke(const struct stage_vm *vm, uint64_t at, const void *bytes, size_t size)
{
	if (pwrite(vm->shm, bytes, size, at) != (ssize_t)size)
		abort();
}

static void ring(const struct stage_vm *vm)
{
	const uint64_t one = 1;

	if (vm->n_doorbells && write(vm->eventfds[0], &one, 8) != 8 && errno != EAGAIN)
		abort();
}

static void say_hello(struct stage *stage, const struct stage_vm *vm, uint32_t channel)
{
	struct vgpu_channel_entry entry = {
		.state = VGPU_CHANNEL_OPENING,
		.protocol_version = VGPU_PROTOCOL_VERSION,
		.api_version = 13000,
		.boot_id = { 'b', reader_below(&stage->reader, 3) },
		.window_base = 0x100000000000ull,
		.window_size = 0x400000000000ull,
		.comm = "guest",
	};

	poke(vm, layout_channel_off(channel), &entry, sizeof(entry));
	ring(vm);
}

static void scribble(struct stage *stage, const struct stage_vm *vm)
{
	uint16_t at = reader_u16(&stage->reader);
	uint8_t bytes[32], n = reader_below(&stage->reader, sizeof(bytes));

	reader_bytes(&stage->reader, bytes, n);
	if (n)
		poke(vm, at, bytes, n);
}

/* QEMU has closed the file, or the guest controls QEMU. */
static void cut_short(struct stage *stage, const struct stage_vm *vm)
{
	const uint64_t size = (uint64_t)reader_u8(&stage->reader) << 12;

	if (is_plain(vm) && ftruncate(vm->shm, size))
		abort();
}

static void guest_step(struct stage *stage, uint8_t step)
{
	const uint8_t where = reader_u8(&stage->reader);
	struct stage_vm *vm = &all_vms[where % STAGE_VMS];
	const uint32_t channel = where / STAGE_VMS % vm->layout.n_channels;
	uint32_t state;

	switch (step) {
	case 0:
		say_hello(stage, vm, channel);
		return;
	case 1:
		state = reader_below(&stage->reader, _VGPU_CHANNEL_STATE_N + 1);
		poke(vm, layout_channel_off(channel), &state, sizeof(state));
		ring(vm);
		return;
	case 2:
		scribble(stage, vm);
		return;
	case 3:
		cut_short(stage, vm);
		return;
	case 4:
		ring(vm);
		return;
	case 5:
		gain_vm(stage, vm);
		return;
	default:
		lose_vm(stage, vm);
	}
}

/* A process of a worker's VM, or a compromised worker, writes arbitrary bytes. */
static void scribble_quota(struct stage *stage)
{
	const struct stage_worker *worker = stage_any_worker(stage);
	const uint64_t at = reader_u16(&stage->reader) % (QUOTA_SLOTS + 1);
	const uint64_t number = reader_u64(&stage->reader);

	if (worker && worker->vm >= 0 &&
		pwrite(all_vms[worker->vm].quota, &number, 8, 8 * at) != 8)
		abort();
}

static void take_step(struct stage *stage, uint8_t step)
{
	static const uint16_t times[] = { 1, 5, 20, 100, 250, 500, 1000, 4000 };

	switch (step) {
	case 7:
		stage_worker_start(stage);
		return;
	case 8:
		stage_worker_answer(stage);
		return;
	case 9:
		stage_worker_say(stage);
		return;
	case 10:
		stage_worker_log(stage);
		return;
	case 11:
		stage_worker_count(stage);
		return;
	case 12:
		stage_worker_reap(stage);
		return;
	case 13:
		stage_worker_hang_up(stage);
		return;
	case 14:
		stage_clock_advance(times[reader_below(&stage->reader, 8)]);
		return;
	case 15:
		if (reader_u8(&stage->reader) < 32) {
			stage->draining = true;
			link_send_id(stage->link, LINK_DRAIN, 0);
		}
		return;
	case 16:
		restart_broker(stage);
		return;
	case 17:
		if (!stage->honest)
			stage_link_say(stage);
		return;
	case 18:
		scribble_quota(stage);
		return;
	case 19:
		stage_image_ask(stage);
		return;
	case 20:
		stage_image_keep(stage);
		return;
	case 21:
		stage_image_drop(stage);
		return;
	}
	guest_step(stage, step);
}

/*
 * Begin and end
 */

/* Guests exit, workers end, time passes; then nothing is held any more. */
static void end_sessions(struct stage *stage)
{
	for (unsigned int i = 0; i < STAGE_VMS; i++)
		lose_vm(stage, &all_vms[i]);
	stage_settle(stage);
	stage_clock_advance(END_MS);
	stage_settle(stage);
	stage_worker_reap_all(stage);
	stage_settle(stage);
	if (stage->running && stage->honest)
		stage_books_check_empty(stage);
}

static void end(struct stage *stage)
{
	if (stage->running)
		stop_broker(stage);
	for (unsigned int i = 0; i < STAGE_WORKERS; i++)
		if (stage->workers[i].id)
			stage_worker_free(&stage->workers[i]);
	stage_image_end(stage);
	stage_share_end(stage);
	for (unsigned int i = 0; i < STAGE_VMS; i++)
		all_vms[i].id = 0;
}

/* Bits of the first byte: VMs that are there, and whether the keeper is not honest. */
#define BAD_KEEPER 0x80u

void stage_play(const uint8_t *data, size_t size, enum stage_kind kind)
{
	struct stage stage = { .reader = { data, size } };
	unsigned int n_fds;
	uint8_t step, how;

	if (!config)
		begin();
	n_fds = descriptors_count();
	stage.vms = all_vms;
	stage_clock_set(1000);
	for (unsigned int i = 0; i < STAGE_VMS; i++) {
		empty_vm(&all_vms[i]);
		if (pwrite(all_vms[i].quota, &no_quota, sizeof(no_quota), 0) < 0)
			abort();
	}
	how = reader_u8(&stage.reader);
	stage.honest = kind == STAGE_HONEST || !(how & BAD_KEEPER);
	stage_share_begin(&stage);
	start_broker(&stage);
	for (unsigned int i = 0; i < STAGE_VMS; i++)
		if (how & 1u << i)
			gain_vm(&stage, &all_vms[i]);
	stage_settle(&stage);
	for (int i = 0; i < STEPS_MAX && stage.reader.size && stage.running; i++) {
		step = reader_u8(&stage.reader);
		take_step(&stage, step % NOT_NOW % 22);
		if (!(step & NOT_NOW))
			stage_settle(&stage);
	}
	stage_settle(&stage);
	if (stage.running)
		end_sessions(&stage);
	end(&stage);
	stage_check(descriptors_count() == n_fds);
}
