/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User objects: what a program ties to graphs, to be told when no graph needs it any more
 *
 * The program holds references, and so do graphs: a copy of a graph has as many as its
 * original, and an executable graph keeps its own until launches in flight are done. With
 * the last reference the handle is invalid, and the host thread calls the destructor.
 */

#include <limits.h>
#include <stdlib.h>

#include "api/graph.h"

struct CUuserObject_st {
	struct object object; /* a reference is held until the destructor has returned */
	CUhostFn destroy;
	void *data;
	uint64_t n_refs;  /* graph_lock, as all below */
	uint64_t n_owned; /* the program's among them */
	struct sched_errand errand;
};

static void user_destroy(struct sched_errand *errand)
{
	CUuserObject user =
		(CUuserObject)((char *)errand - offsetof(struct CUuserObject_st, errand));

	user->destroy(user->data);
	object_unref(&user->object);
}

static void user_unref(CUuserObject user, uint64_t n)
{
	struct sched *sched = &softgpu_device.sched;

	user->n_refs -= n;
	if (user->n_refs)
		return;
	object_leave(&user->object);
	sched_lock(sched);
	sched_errand_add(sched, &user->errand);
	sched_unlock(sched);
}

/*
 * References of graphs
 */

static struct user_ref *users_find(struct user_refs *users, CUuserObject object)
{
	struct user_ref *ref;

	STAILQ_FOREACH(ref, users, link)
		if (ref->object == object)
			return ref;
	return NULL;
}

/* The references themselves are counted by the caller. */
static CUresult users_add(struct user_refs *users, CUuserObject object, uint64_t n)
{
	struct user_ref *ref = users_find(users, object);

	if (!ref) {
		ref = calloc(1, sizeof(*ref));
		if (!ref)
			return CUDA_ERROR_OUT_OF_MEMORY;
		object_ref(&object->object);
		ref->object = object;
		STAILQ_INSERT_TAIL(users, ref, link);
	}
	ref->count += n;
	return CUDA_SUCCESS;
}

CUresult users_copy(struct user_refs *to, const struct user_refs *from)
{
	const struct user_ref *ref;
	CUresult result;

	STAILQ_FOREACH(ref, from, link) {
		result = users_add(to, ref->object, ref->count);
		if (result)
			return result;
		ref->object->n_refs += ref->count;
	}
	return CUDA_SUCCESS;
}

static void users_remove(struct user_refs *users, struct user_ref *ref)
{
	STAILQ_REMOVE(users, ref, user_ref, link);
	object_unref(&ref->object->object);
	free(ref);
}

void users_free(struct user_refs *users)
{
	struct user_ref *ref;

	while ((ref = STAILQ_FIRST(users))) {
		user_unref(ref->object, ref->count);
		users_remove(users, ref);
	}
}

/*
 * References of launches
 */

struct users_keep {
	struct sched_keep keep;
	struct user_refs users;
};

static void keep_end(struct sched_errand *errand)
{
	struct users_keep *keep =
		(struct users_keep *)((char *)errand -
				      offsetof(struct users_keep, keep.errand));

	pthread_mutex_lock(&graph_lock);
	users_free(&keep->users);
	pthread_mutex_unlock(&graph_lock);
	free(keep);
}

static bool graph_has_users(CUgraph graph)
{
	CUgraphNode node;

	if (!STAILQ_EMPTY(&graph->users))
		return true;
	TAILQ_FOREACH(node, &graph->nodes, link)
		if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH &&
			graph_has_users(node->work.child))
			return true;
	return false;
}

static CUresult keep_graph(struct users_keep *keep, CUgraph graph)
{
	CUresult result = users_copy(&keep->users, &graph->users);
	CUgraphNode node;

	TAILQ_FOREACH(node, &graph->nodes, link)
		if (!result && node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
			result = keep_graph(keep, node->work.child);
	return result;
}

CUresult users_keep(struct sched_keep **keepp, CUgraph graph)
{
	struct users_keep *keep;
	CUresult result;

	if (!graph_has_users(graph))
		return CUDA_SUCCESS;
	keep = calloc(1, sizeof(*keep));
	if (!keep)
		return CUDA_ERROR_OUT_OF_MEMORY;
	keep->keep.n_refs = 1;
	keep->keep.errand.run = keep_end;
	STAILQ_INIT(&keep->users);
	result = keep_graph(keep, graph);
	if (result) {
		users_free(&keep->users);
		free(keep);
		return result;
	}
	*keepp = &keep->keep;
	return CUDA_SUCCESS;
}

/*
 * Calls
 */

static CUresult user_staff(void)
{
	struct sched *sched = &softgpu_device.sched;
	int r;

	sched_lock(sched);
	r = sched_staff(sched, SCHED_HOST);
	sched_unlock(sched);
	return r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* The CUDA manual limits every count alike. */
static bool count_is_valid(unsigned int count)
{
	return count && count <= INT_MAX;
}

CUresult cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
	unsigned int initialRefcount, unsigned int flags)
{
	API_CALL;
	CUuserObject user;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_out || !destroy || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC ||
		!count_is_valid(initialRefcount))
		return CUDA_ERROR_INVALID_VALUE;
	result = user_staff();
	if (result)
		return result;
	user = object_new(OBJECT_USER, sizeof(*user), NULL);
	if (!user)
		return CUDA_ERROR_OUT_OF_MEMORY;
	user->destroy = destroy;
	user->data = ptr;
	user->n_refs = user->n_owned = initialRefcount;
	user->errand.run = user_destroy;
	if (object_enter(&user->object)) {
		object_unref(&user->object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*object_out = user;
	return CUDA_SUCCESS;
}

/* With the lock, if it succeeds. */
static CUresult user_enter(CUuserObject object, unsigned int count)
{
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	if (object_is(object, OBJECT_USER) && count_is_valid(count))
		return CUDA_SUCCESS;
	return graph_leave(CUDA_ERROR_INVALID_VALUE);
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	API_CALL;
	CUresult result;

	result = user_enter(object, count);
	if (result)
		return result;
	object->n_refs += count;
	object->n_owned += count;
	return graph_leave(CUDA_SUCCESS);
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	API_CALL;
	CUresult result;

	result = user_enter(object, count);
	if (result)
		return result;
	if (count > object->n_owned)
		return graph_leave(CUDA_ERROR_INVALID_VALUE);
	object->n_owned -= count;
	user_unref(object, count);
	return graph_leave(CUDA_SUCCESS);
}

CUresult cuGraphRetainUserObject(
	CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)
{
	API_CALL;
	bool moves = flags & CU_GRAPH_USER_OBJECT_MOVE;
	CUresult result;

	result = user_enter(object, count);
	if (result)
		return result;
	result = graph_get(graph);
	if (flags & ~(unsigned int)CU_GRAPH_USER_OBJECT_MOVE ||
		(moves && count > object->n_owned))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = users_add(&graph->users, object, count);
	if (result)
		return graph_leave(result);
	if (moves)
		object->n_owned -= count;
	else
		object->n_refs += count;
	return graph_leave(CUDA_SUCCESS);
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	API_CALL;
	struct user_ref *ref;
	CUresult result;

	result = user_enter(object, count);
	if (result)
		return result;
	result = graph_get(graph);
	if (result)
		return graph_leave(result);
	ref = users_find(&graph->users, object);
	if (!ref || ref->count < count)
		return graph_leave(CUDA_ERROR_INVALID_VALUE);
	ref->count -= count;
	if (!ref->count)
		users_remove(&graph->users, ref);
	user_unref(object, count);
	return graph_leave(CUDA_SUCCESS);
}
