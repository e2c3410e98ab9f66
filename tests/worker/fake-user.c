/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake driver: user objects
 */

#include <string.h>

#include "driver/driver.h"
#include "fake-objects.h"

#define N_USERS 256u
#define N_KEPT 512u

/* A user object, and the references that graphs have. */
struct fake_user {
	uint64_t n; /* references, 0: free */
	CUhostFn destroy;
	void *data;
};

struct fake_kept {
	CUgraph graph; /* NULL: free */
	struct fake_user *user;
	uint64_t n;
};

static struct {
	struct fake_user users[N_USERS];
	struct fake_kept kept[N_KEPT];
} state;

static struct fake_user *use_user(CUuserObject handle)
{
	struct fake_user *user = (struct fake_user *)handle;
	uintptr_t at = (uintptr_t)handle;

	if (at < (uintptr_t)state.users || at >= (uintptr_t)(state.users + N_USERS) ||
		!user->n)
		fake_broken("a user object that is not mine");
	return user;
}

static CUresult release_user(struct fake_user *user, uint64_t n)
{
	struct fake_user ended = *user;

	if (n > user->n)
		fake_broken("more references than there are");
	user->n -= n;
	if (!user->n)
		ended.destroy(ended.data);
	return CUDA_SUCCESS;
}

static CUresult fake_user_create(CUuserObject *object, void *data, CUhostFn destroy,
	unsigned int n, unsigned int flags)
{
	if (!n || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < N_USERS; i++)
		if (!state.users[i].n) {
			state.users[i] = (struct fake_user){ n, destroy, data };
			*object = (CUuserObject)&state.users[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_user_retain(CUuserObject object, unsigned int n)
{
	use_user(object)->n += n;
	return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult fake_user_release(CUuserObject object, unsigned int n)
{
	return n ? release_user(use_user(object), n) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult keep_user(CUgraph graph, struct fake_user *user, uint64_t n)
{
	for (uint32_t i = 0; i < N_KEPT; i++)
		if (!state.kept[i].graph) {
			state.kept[i] = (struct fake_kept){ graph, user, n };
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_graph_retain(
	CUgraph graph, CUuserObject object, unsigned int n, unsigned int flags)
{
	struct fake_user *user = use_user(object);
	CUresult result;

	if (!n || flags > CU_GRAPH_USER_OBJECT_MOVE)
		return CUDA_ERROR_INVALID_VALUE;
	fake_use_graph(graph);
	result = keep_user(graph, user, n);
	if (result == CUDA_SUCCESS && !flags)
		user->n += n;
	return result;
}

static CUresult fake_graph_release(CUgraph graph, CUuserObject object, unsigned int n)
{
	struct fake_user *user = use_user(object);

	for (uint32_t i = 0; i < N_KEPT && n; i++) {
		struct fake_kept *kept = &state.kept[i];

		if (kept->graph != graph || kept->user != user || kept->n < n)
			continue;
		kept->n -= n;
		if (!kept->n)
			kept->graph = NULL;
		return release_user(user, n);
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_users_copy(CUgraph graph, CUgraph clone)
{
	CUresult result = CUDA_SUCCESS;

	for (uint32_t i = 0; i < N_KEPT && result == CUDA_SUCCESS; i++) {
		const struct fake_kept *kept = &state.kept[i];

		if (kept->graph != graph)
			continue;
		result = keep_user(clone, kept->user, kept->n);
		if (result == CUDA_SUCCESS)
			kept->user->n += kept->n;
	}
	return result;
}

void fake_users_forget_graph(CUgraph graph)
{
	for (uint32_t i = 0; i < N_KEPT; i++)
		if (state.kept[i].graph == graph) {
			state.kept[i].graph = NULL;
			release_user(state.kept[i].user, state.kept[i].n);
		}
}

void fake_users_init(struct vgpu_driver *table)
{
	memset(&state, 0, sizeof(state));
	table->cuUserObjectCreate = fake_user_create;
	table->cuUserObjectRetain = fake_user_retain;
	table->cuUserObjectRelease = fake_user_release;
	table->cuGraphRetainUserObject = fake_graph_retain;
	table->cuGraphReleaseUserObject = fake_graph_release;
}
