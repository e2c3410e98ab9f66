/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage worker: the worker's end of a control socket
 *
 * A worker sends what its guest likes. Messages to it come from the host and are checked:
 * no extent has two live owners, no memory or image leaves its VM.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/packet.h"
#include "stage.h"
#include "vgpu/cleanup.h"
#include "vgpu/hello.h"

struct stage_worker *stage_find_worker(struct stage *stage, uint64_t id)
{
	for (unsigned int i = 0; i < STAGE_WORKERS; i++)
		if (stage->workers[i].id == id)
			return &stage->workers[i];
	return NULL;
}

struct stage_worker *stage_any_worker(struct stage *stage)
{
	unsigned int first = reader_below(&stage->reader, STAGE_WORKERS);

	for (unsigned int i = 0; i < STAGE_WORKERS; i++) {
		struct stage_worker *worker =
			&stage->workers[(first + i) % STAGE_WORKERS];

		if (worker->id && worker->control >= 0)
			return worker;
	}
	return NULL;
}

void stage_worker_tell(
	struct stage *stage, const struct stage_worker *worker, uint32_t request)
{
	struct link_message message = {
		.type = LINK_WORKER,
		.id = worker->id,
		.worker = { .pid = STAGE_NO_PID + worker->id, .request = request },
	};

	link_send(stage->link, &message, worker->keeper, 3);
	if (!worker->exited)
		return;
	message = (struct link_message){
		.type = LINK_EXITED,
		.id = worker->id,
		.exited.status = worker->status,
	};
	link_send(stage->link, &message, NULL, 0);
}

static int make_stats(void)
{
	int fd = memfd_create("stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, WORKER_STATS_SIZE) ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		abort();
	return fd;
}

/* Return: the id of the LINK_SPAWN that is answered now. */
static uint32_t next_request(struct stage *stage)
{
	const uint32_t request = stage->n_spawns ? stage->spawns[0] : 0;

	memmove(stage->spawns, stage->spawns + 1,
		sizeof(stage->spawns) - sizeof(*stage->spawns));
	stage->n_spawns -= stage->n_spawns > 0;
	return request;
}

void stage_worker_start(struct stage *stage)
{
	struct link_message none = {
		.type = LINK_NO_WORKER,
		.no_worker.error = -EAGAIN,
	};
	struct stage_worker *worker = stage_find_worker(stage, 0);
	int pair[2], pipes[2];

	if (!stage->n_spawns && stage->honest)
		return;
	none.id = next_request(stage);
	if (!worker || reader_below(&stage->reader, 16) == 15) {
		link_send(stage->link, &none, NULL, 0);
		return;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) ||
		pipe2(pipes, O_CLOEXEC | O_NONBLOCK))
		abort();
	*worker = (struct stage_worker){
		.id = ++stage->last_id,
		.keeper = { pair[0], make_stats(), pipes[0] },
		.control = pair[1],
		.log = pipes[1],
		.vm = -1,
	};
	stage_worker_tell(stage, worker, (uint32_t)none.id);
}

void stage_worker_free(struct stage_worker *worker)
{
	for (int i = 0; i < 3; i++)
		vgpu_close(worker->keeper[i]);
	vgpu_close(worker->control);
	vgpu_close(worker->log);
	worker->id = 0;
}

static void forget_extents(struct stage *stage, const struct stage_worker *worker)
{
	for (unsigned int v = 0; v < STAGE_VMS; v++)
		for (uint32_t i = 0; i < stage->vms[v].layout.n_extents; i++)
			if (stage->vms[v].owners[i] == worker->id)
				stage->vms[v].owners[i] = 0;
}

/* The keeper, its parent, finds that it has ended, and reports it. */
static void reap(struct stage *stage, struct stage_worker *worker, int status)
{
	const struct link_message message = {
		.type = LINK_EXITED,
		.id = worker->id,
		.exited.status = status,
	};

	worker->control = vgpu_close(worker->control);
	worker->exited = true;
	worker->status = status;
	forget_extents(stage, worker);
	stage_image_forget(stage, worker->id);
	link_send(stage->link, &message, NULL, 0);
}

void stage_worker_reap(struct stage *stage)
{
	unsigned int first = reader_below(&stage->reader, STAGE_WORKERS);
	struct stage_worker *worker = NULL;

	for (unsigned int i = 0; i < STAGE_WORKERS && !worker; i++) {
		worker = &stage->workers[(first + i) % STAGE_WORKERS];
		if (!worker->id || worker->exited)
			worker = NULL;
	}
	if (!worker)
		return;
	/* A process that it had started may keep the other end of its log open. */
	if (reader_below(&stage->reader, 2))
		worker->log = vgpu_close(worker->log);
	reap(stage, worker, reader_u16(&stage->reader));
}

void stage_worker_reap_all(struct stage *stage)
{
	for (unsigned int i = 0; i < STAGE_WORKERS; i++)
		if (stage->workers[i].id && !stage->workers[i].exited)
			reap(stage, &stage->workers[i], 0);
}

void stage_worker_hang_up(struct stage *stage)
{
	struct stage_worker *worker = stage_any_worker(stage);

	if (worker)
		worker->control = vgpu_close(worker->control);
}

/*
 * Messages of a worker
 */

/* Any bytes of any length with any descriptors. */
void stage_worker_say(struct stage *stage)
{
	struct stage_worker *worker = stage_any_worker(stage);
	struct {
		struct control_message message;
		uint8_t more[8];
	} packet = { 0 };
	struct control_message *message = &packet.message;
	size_t size = sizeof(*message), n_bytes;
	int fds[CONTROL_FDS_MAX + 1], n_fds;
	uint64_t image_size = 0;
	uint8_t shape;

	if (!worker)
		return;
	shape = reader_u8(&stage->reader);
	message->type = reader_u8(&stage->reader);
	n_fds = shape % (CONTROL_FDS_MAX + 2);
	n_bytes = reader_below(&stage->reader, sizeof(message->bytes) + 1);
	reader_bytes(&stage->reader, message->bytes, n_bytes);
	message->n_fds = shape & 0x80 ? reader_u32(&stage->reader) : (uint32_t)n_fds;
	if (shape & 0x40)
		size = reader_u16(&stage->reader) % sizeof(packet);
	for (int i = 0; i < n_fds; i++)
		fds[i] = stage_make_fd(stage, &image_size);
	if (message->type == CONTROL_KEEP && !(shape & 0x20))
		message->image.size = image_size;
	/* Few sizes and cookies, so that some are known. */
	if (message->type == CONTROL_SHARE && !(shape & 0x20)) {
		message->share.size = 4096;
		message->share.device %= VGPU_DEVICES_MAX + 1;
	}
	if (message->type >= CONTROL_SHARE && message->type <= CONTROL_LEAVE)
		message->share.cookie %= 8;
	if (message->type == CONTROL_TAKE && !(shape & 0x20))
		stage_share_choose(stage, message->share.token);
	packet_send(worker->control, &packet, size ? size : 1, fds, n_fds);
	for (int i = 0; i < n_fds; i++)
		close(fds[i]);
}

/* The next message of an honest worker. */
void stage_worker_answer(struct stage *stage)
{
	static const uint8_t types[] = { CONTROL_READY, CONTROL_OPENED, CONTROL_WANT,
		CONTROL_ENDED, CONTROL_FIND };
	struct stage_worker *worker = stage_any_worker(stage);
	struct control_message message = { 0 };
	uint8_t number;

	if (!worker)
		return;
	message.type = types[reader_below(&stage->reader, sizeof(types))];
	number = reader_u8(&stage->reader);
	if (message.type == CONTROL_WANT)
		message.want = (struct control_want){ number, number };
	else if (message.type == CONTROL_FIND)
		message.image.digest[0] = number % 4;
	else
		message.ready.reason = number % 4 ? 0 : number / 4;
	if (message.type == CONTROL_READY)
		message.greeting.version = number == 254 ? 0 : CONTROL_VERSION;
	control_send(worker->control, &message, NULL);
	worker->is_deaf |= number == 255;
}

void stage_worker_log(struct stage *stage)
{
	static const char line[] = "1.5 vgpu-worker[7] warning: this is wrong\n";
	struct stage_worker *worker = stage_any_worker(stage);
	char bytes[64];
	uint8_t n = reader_u8(&stage->reader);

	if (!worker || worker->log < 0)
		return;
	reader_bytes(&stage->reader, bytes, n % sizeof(bytes));
	for (unsigned int i = 0; i < 1u + n / 64 * 40; i++)
		if (write(worker->log, line, sizeof(line) - 1) < 0 ||
			write(worker->log, bytes, n % sizeof(bytes)) < 0)
			return;
}

void stage_worker_count(struct stage *stage)
{
	struct stage_worker *worker = stage_any_worker(stage);
	uint64_t value = reader_u64(&stage->reader);

	if (worker && pwrite(worker->keeper[1], &value, sizeof(value),
			      8 * reader_below(&stage->reader, 32)) != sizeof(value))
		abort();
}

/*
 * Messages to a worker
 */

/* No live worker has them; but a replaced broker may repeat its last message. */
static void check_extents(struct stage *stage, const struct stage_worker *worker,
	uint32_t first, uint32_t n)
{
	struct stage_vm *vm = &stage->vms[worker->vm];

	stage_check(n <= vm->layout.n_extents && first <= vm->layout.n_extents - n);
	for (uint32_t i = first; i < first + n; i++) {
		stage_check(!vm->owners[i]);
		vm->owners[i] = worker->id;
	}
}

static void check_grant(struct stage *stage, struct stage_worker *worker,
	const struct control_grant *grant)
{
	stage_check(worker->vm >= 0);
	stage_check(!grant->error || !grant->n_extents);
	if (!memcmp(grant, &worker->grant, sizeof(*grant)))
		return;
	check_extents(stage, worker, grant->first_extent, grant->n_extents);
	if (!grant->error)
		worker->grant = *grant;
}

static void check_quota(struct stage *stage, struct stage_worker *worker,
	const struct control_assign *assign, int fd)
{
	struct stat st;

	stage_check(!fstat(fd, &st) && st.st_ino == stage->vms[worker->vm].quota_inode);
	stage_check(assign->quota_slot && assign->quota_slot <= QUOTA_SLOTS);
	for (unsigned int i = 0; i < STAGE_WORKERS; i++) {
		const struct stage_worker *other = &stage->workers[i];

		stage_check(!other->id || other->exited || other->vm != worker->vm ||
			    other->quota_slot != assign->quota_slot);
	}
	worker->quota_slot = assign->quota_slot;
}

static void check_assign(struct stage *stage, struct stage_worker *worker,
	const struct control_message *message, const int *fds)
{
	const struct control_assign *assign = &message->assign;
	struct stat st;

	stage_check(worker->vm < 0);
	stage_check(message->n_fds >= 2 && !fstat(fds[0], &st));
	stage_check(message->greeting.version == CONTROL_VERSION);
	for (unsigned int i = 0; i < STAGE_VMS; i++)
		if (stage->vms[i].inode == st.st_ino)
			worker->vm = i;
	stage_check(worker->vm >= 0);
	stage_check(!strcmp(
		assign->vm, config_vm_at(stage->broker.config, worker->vm)->name));
	stage_check(assign->channel < stage->vms[worker->vm].layout.n_channels);
	for (unsigned int i = 0; i < STAGE_WORKERS; i++) {
		const struct stage_worker *other = &stage->workers[i];

		stage_check(other == worker || !other->id || other->exited ||
			    other->vm != worker->vm || other->channel != assign->channel);
	}
	worker->channel = assign->channel;
	check_quota(stage, worker, assign, fds[1]);
	stage_check(vgpu_window_is_sane(
		assign->window_base, assign->window_size, assign->shm_size));
	stage_check(memchr(assign->guest_comm, '\0', sizeof(assign->guest_comm)));
	check_extents(stage, worker, assign->first_extent, assign->n_extents);
}

static void check_message(struct stage *stage, struct stage_worker *worker,
	const struct control_message *message, const int *fds)
{
	switch (message->type) {
	case CONTROL_ASSIGN:
		check_assign(stage, worker, message, fds);
		return;
	case CONTROL_GRANT:
		check_grant(stage, worker, &message->grant);
		return;
	case CONTROL_IMAGE:
		stage_check(worker->vm >= 0 && message->n_fds <= 1);
		return;
	case CONTROL_SHARED:
		stage_share_check(stage, worker, message);
		return;
	}
	stage_check(message->type == CONTROL_STOP || message->type == CONTROL_WINDOW);
}

bool stage_worker_hear(struct stage *stage)
{
	struct control_message message;
	int fds[CONTROL_FDS_MAX];
	bool found = false;

	for (unsigned int i = 0; i < STAGE_WORKERS; i++) {
		struct stage_worker *worker = &stage->workers[i];

		while (worker->id && worker->control >= 0 && !worker->is_deaf &&
			!control_receive(worker->control, &message, fds)) {
			found = true;
			if (stage->honest)
				check_message(stage, worker, &message, fds);
			if (message.type == CONTROL_IMAGE && fds[0] >= 0) {
				stage_image_take(stage, worker, &message.image, fds[0]);
				fds[0] = -1;
			}
			for (int k = 0; k < CONTROL_FDS_MAX; k++)
				vgpu_close(fds[k]);
		}
	}
	return found;
}
