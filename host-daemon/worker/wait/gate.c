/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate: work waits here until the session may have more of the device's time
 */

#include <limits.h>
#include <time.h>

#include "vgpu/wake.h"
#include "worker/wait/gate.h"

/* One that waits looks at the beat at least this often. */
#define HOLD_MAX_MS 50u

uint64_t gate_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

enum gate_state gate_look(const struct gate *gate, uint64_t now)
{
	const struct softgpu_allowance *allowance = gate->allowance;
	/* Acquire: the limit belongs to it. Partner: who shares the device. */
	const uint32_t kind = __atomic_load_n(&allowance->is_limited, __ATOMIC_ACQUIRE);
	uint64_t beat, limit, used;

	if (kind == SOFTGPU_ALLOWANCE_UNLIMITED)
		return GATE_OPEN;
	if (kind == SOFTGPU_ALLOWANCE_PAUSED)
		return GATE_SHUT;
	beat = __atomic_load_n(&allowance->beat_ns, __ATOMIC_RELAXED);
	/* Whoever set the limit is gone. */
	if (now > beat && now - beat > SOFTGPU_ALLOWANCE_BEAT_NS)
		return GATE_OPEN;
	limit = __atomic_load_n(&allowance->limit_ns, __ATOMIC_RELAXED);
	used = __atomic_load_n(&allowance->used_ns, __ATOMIC_RELAXED);
	if (used >= limit)
		return GATE_SHUT;
	return __atomic_load_n(&gate->ahead_ns, __ATOMIC_RELAXED) >= limit - used
		       ? GATE_AHEAD
		       : GATE_OPEN;
}

/* Whether it has waited long enough for what is submitted, none of which completes. */
static bool is_impatient(const struct gate *gate, enum gate_state state,
	uint32_t *n_completep, uint64_t *sincep, uint64_t now)
{
	const uint32_t n = __atomic_load_n(&gate->n_complete, __ATOMIC_RELAXED);

	if (state != GATE_AHEAD || n != *n_completep) {
		*n_completep = n;
		*sincep = now;
	}
	return now - *sincep >= GATE_PATIENCE_NS;
}

void gate_wait(struct gate *gate)
{
	struct softgpu_allowance *allowance = gate->allowance;
	struct vgpu_nap nap = {};
	const uint64_t began = gate_now();
	uint64_t now = began, since = began;
	uint32_t n_complete = __atomic_load_n(&gate->n_complete, __ATOMIC_RELAXED);
	enum gate_state state;
	uint32_t n_changes;

	if (gate_look(gate, now) == GATE_OPEN)
		return;
	/* Partner: who shares the device looks at it after a change. */
	__atomic_fetch_add(&allowance->n_held, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		/* Partner: who shares the device increments it after the change. */
		n_changes = __atomic_load_n(&allowance->n_changes, __ATOMIC_SEQ_CST);
		now = gate_now();
		state = gate_look(gate, now);
		if (state == GATE_OPEN ||
			is_impatient(gate, state, &n_complete, &since, now))
			break;
		if (state == GATE_AHEAD)
			nap = (struct vgpu_nap){};
		vgpu_nap_shared_word(&allowance->n_changes, n_changes,
			vgpu_nap_next(&nap, VGPU_NAP_MIN_MS, HOLD_MAX_MS));
	}
	__atomic_fetch_sub(&allowance->n_held, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&allowance->held_ns, now - began, __ATOMIC_RELAXED);
}

void gate_wake(struct gate *gate)
{
	__atomic_fetch_add(&gate->n_complete, 1, __ATOMIC_RELAXED);
	if (!__atomic_load_n(&gate->allowance->n_held, __ATOMIC_SEQ_CST))
		return;
	/* Partner: gate_wait() reads it before it looks. */
	__atomic_fetch_add(&gate->allowance->n_changes, 1, __ATOMIC_SEQ_CST);
	vgpu_wake_shared_word(&gate->allowance->n_changes, INT_MAX);
}
