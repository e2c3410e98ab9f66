/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Succession: another program, or the next process, continues the keeper's work
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keeper/child.h"
#include "keeper/handover.h"
#include "keeper/keeper-state.h"
#include "keeper/process.h"
#include "keeper/succession.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpud/container-of.h"
#include "vgpud/notify.h"

static struct handover parts_of(struct keeper *keeper, int previous)
{
	return (struct handover){
		.program = keeper->program,
		.sources = keeper->sources,
		.previous = previous,
		.last_worker = keeper->last_worker,
		.last_uid = keeper->last_uid,
		.endpoints = &keeper->endpoints,
		.ctl = &keeper->ctl,
		.workers = &keeper->workers,
		.store = &keeper->store,
	};
}

static int save_state(struct keeper *keeper, int previous, struct handover_state *state)
{
	const struct handover parts = parts_of(keeper, previous);

	return handover_save(state, &parts);
}

void succession_store(struct keeper *keeper)
{
	const struct handover parts = parts_of(keeper, -1);

	store_sync(&keeper->store, &parts);
}

void succession_store_vm(struct endpoints *endpoints, const struct held_vm *vm)
{
	struct keeper *keeper = container_of(endpoints, struct keeper, endpoints);

	store_vm(&keeper->store, vm);
}

bool succession_step_aside(struct keeper *keeper)
{
	const struct handover parts = parts_of(keeper, -1);

	if (store_flush(&keeper->store, &parts)) {
		vgpu_log_info("vgpud has left everything to the next one");
		/* Nothing is closed or removed that the next one needs. */
		_exit(EXIT_SUCCESS);
	}
	keeper->is_stepping_aside = false;
	vgpu_log_error("not everything is stored for the next vgpud: this one stays");
	return false;
}

/* Executes another program, or the previous one. Returns only if that fails. */
static int execute_successor(struct keeper *keeper, const char *program, int previous)
{
	struct handover_state state;
	int r = save_state(keeper, previous, &state);

	if (!r) {
		/* What these undo is done again by the successor. */
		held_sensors_reload(&keeper->sensors);
		child_restore_priority();
		notify_restore();
		r = handover_execute(&state, program,
			program ? previous : keeper->previous, keeper->path);
		notify_init();
		process_raise_priority();
	}
	handover_state_deinit(&state);
	return vgpu_error_trace(r);
}

void succession_return(struct keeper *keeper)
{
	if (keeper->previous < 0)
		return;
	vgpu_log_error("the broker of %s does not run: the previous one is used again",
		keeper->program);
	execute_successor(keeper, NULL, -1);
	vgpu_log_error("the previous program cannot be executed");
	keeper->previous = vgpu_close(keeper->previous);
}

void succession_leave(struct keeper *keeper)
{
	const int own = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	const int r = own < 0 ? -errno : execute_successor(keeper, keeper->program, own);

	keeper->is_leaving = false;
	vgpu_log_error("%s cannot be executed (%s): the previous one is used again",
		keeper->program, strerror(-r));
	vgpu_close(own);
}

void succession_try(struct keeper *keeper)
{
	struct handover_state state;
	int r;

	if (keeper->draining || !keeper->ready || keeper->trial.pid || keeper->is_leaving)
		return;
	vgpu_log_info("SIGUSR2: %s is tried", keeper->program);
	r = save_state(keeper, -1, &state);
	if (!r)
		r = trial_begin(
			&keeper->trial, keeper->program, state.file, keeper->sources);
	handover_state_deinit(&state);
	if (r)
		vgpu_log_error("%s cannot be tried (%s): the previous one is used again",
			keeper->program, strerror(-r));
}
