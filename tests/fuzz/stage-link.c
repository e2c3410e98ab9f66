/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage link: the keeper's end of its link with the broker
 */

#include <stdlib.h>
#include <unistd.h>

#include "stage.h"

static void hear_vm_done(struct stage *stage, uint64_t id)
{
	for (unsigned int i = 0; i < STAGE_VMS; i++) {
		struct stage_vm *vm = &stage->vms[i];

		if (vm->id != id)
			continue;
		if (stage->honest) {
			/* The broker itself drops a file that was truncated. */
			stage_check(vm->gone || i == STAGE_PLAIN);
			for (uint32_t k = 0; k < vm->layout.n_extents; k++)
				stage_check(!vm->owners[k]);
		}
		vm->id = 0;
		return;
	}
}

static void hear(struct stage *stage, const struct link_message *message, const int *fds)
{
	struct stage_worker *worker = stage_find_worker(stage, message->id);

	switch (message->type) {
	case LINK_SPAWN:
		if (stage->n_spawns < STAGE_MAX_WORKERS)
			stage->spawns[stage->n_spawns] = (uint32_t)message->id;
		stage->n_spawns++;
		if (stage->honest)
			stage_check(stage->n_spawns <= STAGE_MAX_WORKERS);
		return;
	case LINK_KILL:
		if (stage->honest)
			stage_check(message->id && worker);
		return;
	case LINK_WORKER_DONE:
		if (stage->honest)
			stage_check(message->id && worker && worker->exited);
		if (message->id && worker) {
			stage_share_forget(stage, worker->id);
			stage_worker_free(worker);
		}
		return;
	case LINK_VM_DONE:
		if (message->id)
			hear_vm_done(stage, message->id);
		return;
	case LINK_IMAGE:
		stage_image_kept(stage, message, fds[0]);
		return;
	case LINK_IMAGE_DONE:
		stage_image_done(stage, message);
		return;
	case LINK_SHARE:
	case LINK_SHARE_HELD:
	case LINK_SHARE_LEFT:
		stage_share_hear(stage, message, fds[0]);
		return;
	case LINK_PONG:
		if (stage->honest)
			stage_check(message->id == ++stage->ponged);
		return;
	}
	stage_check(message->type == LINK_READY);
}

bool stage_link_hear(struct stage *stage)
{
	struct link_message message;
	int fds[LINK_FDS_MAX], r;
	bool found = false;
	size_t n_fds;

	while (!(r = link_receive(stage->link, &message, fds, &n_fds))) {
		found = true;
		hear(stage, &message, fds);
	}
	stage_check(r == LINK_E_AGAIN || r == LINK_E_EOF);
	return found;
}

/*
 * Messages of the keeper
 */

/* An id that is in use, or was, or none. */
static uint64_t any_id(struct stage *stage)
{
	uint8_t choice = reader_u8(&stage->reader);

	if (choice < 64)
		return stage->vms[choice % STAGE_VMS].id;
	if (choice < 192)
		return stage->workers[choice % STAGE_WORKERS].id;
	return choice % 16;
}

static void pass(int *fd, int instead)
{
	close(*fd);
	*fd = dup(instead);
}

/* Memory that is mapped has to be there, and is one VM's: those that are free. */
static void say_vm(
	struct stage *stage, struct link_message *message, int *fds, size_t n_fds)
{
	for (unsigned int i = 0; i < STAGE_VMS; i++) {
		struct stage_vm *vm = &stage->vms[i];

		if (vm->id || n_fds < 2)
			continue;
		pass(&fds[0], vm->shm);
		pass(&fds[1], vm->ledger);
		vm->id = message->id = ++stage->last_id;
		vm->gone = false;
		return;
	}
	message->vm.size = 0;
}

static void fill_vm(struct stage *stage, struct link_vm *vm, uint8_t shape)
{
	*vm = (struct link_vm){
		.config_index = reader_below(&stage->reader, STAGE_VMS + 1),
		.n_doorbells = reader_below(&stage->reader, 4),
		.n_interrupts = reader_below(&stage->reader, 4),
		.n_channels_max = reader_below(&stage->reader, 34),
		.size = 1ull << reader_below(&stage->reader, 64),
	};
	vm->size += shape >= 224;
}

/* All of each kind, unless the input chooses otherwise. */
static size_t count_fds(const struct link_message *message, uint8_t shape)
{
	if (!(shape & 0x80))
		return shape % 8;
	switch (message->type) {
	case LINK_VM:
		return 2 + message->vm.n_doorbells + message->vm.n_interrupts;
	case LINK_WORKER:
		return 3;
	case LINK_IMAGE:
	case LINK_SHARE:
	case LINK_QUOTA:
	case LINK_SENSORS:
	case LINK_CTL:
	case LINK_CONFIGURED:
		return 1;
	}
	return 0;
}

void stage_link_say(struct stage *stage)
{
	struct link_message message = { 0 };
	uint64_t image_size = 0;
	size_t n_fds, n_bytes;
	uint8_t shape;
	int fds[8];

	message.type = reader_u8(&stage->reader) % (_LINK_N + 1);
	shape = reader_u8(&stage->reader);
	message.id = any_id(stage);
	if (message.type == LINK_VM) {
		fill_vm(stage, &message.vm, shape);
	} else {
		n_bytes = reader_below(&stage->reader, sizeof(message.image) + 1);
		reader_bytes(&stage->reader, &message.image, n_bytes);
	}
	n_fds = count_fds(&message, shape);
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = stage_make_fd(stage, &image_size);
	if (message.type == LINK_VM)
		say_vm(stage, &message, fds, n_fds);
	/* It is mapped, too. */
	if (message.type == LINK_QUOTA && n_fds)
		pass(&fds[0], stage->vms[0].quota);
	if (message.type == LINK_WORKER)
		message.worker.pid = STAGE_NO_PID;
	link_send(stage->link, &message, fds, n_fds);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
}
