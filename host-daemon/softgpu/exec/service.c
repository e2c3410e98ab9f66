/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: services of the device runtime
 *
 * Here the arguments are read from the caller's frame, and what a service returns by
 * address is written, both through the checked windows; the service itself is a hook.
 * Each thread has its last error.
 */

#include "exec/memory.h"
#include "exec/service.h"
#include "exec/watch.h"

static const uint32_t in_sizes[_SERVICE_N] = {
#define X(_number, _name, _sizes, _in_size) [SERVICE_##_number] = _in_size,
	SOFTGPU_SERVICES(X)
#undef X
};

static uint64_t block_number(const struct block *block)
{
	const uint32_t *grid = block->launch->grid, *at = block->ctaid;

	return ((uint64_t)at[2] * grid[1] + at[1]) * grid[0] + at[0];
}

/* The compiler of the code has checked places and sizes. */
static void read_arguments(const struct warp *w, const struct code_call *call,
	uint32_t lane, uint64_t *words)
{
	const struct block *block = w->block;
	const uint8_t *frame = block->local +
			       (size_t)(w->first_thread + lane) * block->local_size +
			       w->frame[lane];
	const struct code_move *m = &block->kernel->moves[call->first_move];

	for (uint32_t i = 0; i < call->n_arguments; i++) {
		memcpy(words, frame + m[i].from, m[i].size);
		words += (m[i].size + 7) / 8;
	}
}

static void write_result(
	const struct warp *w, const struct code_call *call, uint32_t lane, uint64_t value)
{
	const struct block *block = w->block;
	uint8_t *frame = block->local +
			 (size_t)(w->first_thread + lane) * block->local_size +
			 w->frame[lane];
	const struct code_move *m =
		&block->kernel->moves[call->first_move + call->n_arguments];

	memcpy(frame + m->to, &value, m->size);
}

static uint32_t error_of(struct warp *w, uint32_t lane, enum softgpu_service service)
{
	uint32_t error = w->last_error[lane];

	if (service == SERVICE_GET_LAST_ERROR)
		w->last_error[lane] = SERVICE_OK;
	return error;
}

/* Return: 0, or the fault by which the kernel ends: an address that is not one. */
static int serve(struct warp *w, uint32_t lane, const struct code_call *call,
	struct softgpu_request *request, uint32_t *errorp)
{
	const struct softgpu_launch *launch = w->block->launch;
	uint64_t at = request->words[0];
	uint32_t in_size = in_sizes[request->service];
	const void *from;
	void *to;
	int code;

	if (in_size) {
		from = warp_resolve(w, lane, at, in_size, 7, SOFTGPU_READ, &code);
		if (!from)
			return code;
		memcpy(request->in, from, in_size);
	}
	*errorp = (uint32_t)launch->hooks->serve(launch, request);
	if (*errorp || !request->out_size)
		return 0;
	to = warp_resolve(w, lane, at, request->out_size, 3, SOFTGPU_WRITE, &code);
	if (!to)
		return code;
	memcpy(to, request->out, request->out_size);
	if (w->block->watch)
		softgpu_watch_wrote(w->block, at, request->out_size);
	return 0;
}

static bool returns_address(enum softgpu_service service)
{
	return service == SERVICE_GET_BUFFER || service == SERVICE_GET_BUFFER_V2;
}

HANDLER(SERVE)
{
	const struct code_call *call = &w->block->kernel->calls[ip->off];
	const struct softgpu_hooks *hooks = w->block->launch->hooks;
	const enum softgpu_service service = call->subroutine & ~SERVICE_PER_THREAD;
	uint32_t error;
	int r;

	EACH_SET_LANE(i, mask)
	{
		struct softgpu_request request = {
			.service = service,
			.is_per_thread = call->subroutine & SERVICE_PER_THREAD,
			.block = block_number(w->block),
			.thread = w->first_thread + i,
		};

		if (service <= SERVICE_PEEK_AT_LAST_ERROR) {
			write_result(w, call, i, error_of(w, i, service));
			continue;
		}
		error = SERVICE_NOT_SUPPORTED;
		read_arguments(w, call, i, request.words);
		if (hooks && hooks->serve) {
			r = serve(w, i, call, &request, &error);
			if (r)
				return warp_fault(
					w, ip, r, i, request.words[0], fault_sentence(r));
		}
		if (error)
			w->last_error[i] = error;
		if (returns_address(service))
			write_result(w, call, i, request.address);
		else
			write_result(w, call, i, error);
	}
	return ip + 1;
}
