/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on user objects
 *
 * The references that the guest has are counted here, because a driver need not notice
 * that it gives up more than it has. Those of graphs are the driver's affair.
 */

#include "driver/driver.h"
#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/stream/functions.h"

CUresult handle_cuUserObjectCreate(struct call *call,
	const Vgpu__CuUserObjectCreateRequest *request,
	Vgpu__CuUserObjectCreateReply *reply)
{
	struct user_object kept = { .n_owned = request->initial_refcount };
	CUuserObject object;
	CUresult result;
	void *token;

	if (!call->driver->cuUserObjectCreate || !call->driver->cuUserObjectRelease)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = function_add(call->session, request->cookie, &token);
	if (result != CUDA_SUCCESS)
		return result;
	result = call->driver->cuUserObjectCreate(&object, token, function_destroy,
		request->initial_refcount, request->flags);
	if (result != CUDA_SUCCESS) {
		function_withdraw(call->session, token);
		return result;
	}
	result = object_add_like(call, VGPU_HANDLE_USER_OBJECT, object, NULL,
		&kept.object, &reply->object_out);
	if (result == CUDA_SUCCESS)
		function_set_handle(call->session, token, reply->object_out);
	else
		/* The guest's destructor is not called for what was not created. */
		function_withdraw(call->session, token);
	if (result != CUDA_SUCCESS)
		call->driver->cuUserObjectRelease(object, request->initial_refcount);
	return result;
}

CUresult handle_cuUserObjectRetain(struct call *call,
	const Vgpu__CuUserObjectRetainRequest *request,
	Vgpu__CuUserObjectRetainReply *reply)
{
	struct object *object;
	CUresult result;

	if (!call->driver->cuUserObjectRetain)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&call->session->destroy_lock);
	result = object_find(call, VGPU_HANDLE_USER_OBJECT, request->object, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuUserObjectRetain(object->driver, request->count);
	if (result == CUDA_SUCCESS)
		((struct user_object *)object)->n_owned += request->count;
	pthread_mutex_unlock(&call->session->destroy_lock);
	return result;
}

/* With destroy_lock. Return: CUDA_ERROR_INVALID_VALUE if the guest has fewer. */
static CUresult give_up(const struct object *object, uint32_t count)
{
	struct user_object *user = (struct user_object *)object;

	if (count > user->n_owned)
		return CUDA_ERROR_INVALID_VALUE;
	user->n_owned -= count;
	return CUDA_SUCCESS;
}

CUresult handle_cuUserObjectRelease(struct call *call,
	const Vgpu__CuUserObjectReleaseRequest *request,
	Vgpu__CuUserObjectReleaseReply *reply)
{
	struct object *object;
	CUresult result;

	if (!call->driver->cuUserObjectRelease)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&call->session->destroy_lock);
	result = object_find(call, VGPU_HANDLE_USER_OBJECT, request->object, &object);
	if (result == CUDA_SUCCESS)
		result = give_up(object, request->count);
	if (result == CUDA_SUCCESS)
		result =
			call->driver->cuUserObjectRelease(object->driver, request->count);
	pthread_mutex_unlock(&call->session->destroy_lock);
	return result;
}

CUresult handle_cuGraphRetainUserObject(struct call *call,
	const Vgpu__CuGraphRetainUserObjectRequest *request,
	Vgpu__CuGraphRetainUserObjectReply *reply)
{
	bool moves = request->flags & CU_GRAPH_USER_OBJECT_MOVE;
	struct object *object;
	CUresult result;
	void *graph;

	if (!call->driver->cuGraphRetainUserObject)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&call->session->destroy_lock);
	result = object_get(call, VGPU_HANDLE_GRAPH, request->graph, false, &graph);
	if (result == CUDA_SUCCESS)
		result = object_find(
			call, VGPU_HANDLE_USER_OBJECT, request->object, &object);
	if (result == CUDA_SUCCESS && moves)
		result = give_up(object, request->count);
	if (result == CUDA_SUCCESS) {
		result = call->driver->cuGraphRetainUserObject(
			graph, object->driver, request->count, request->flags);
		if (result != CUDA_SUCCESS && moves)
			((struct user_object *)object)->n_owned += request->count;
	}
	pthread_mutex_unlock(&call->session->destroy_lock);
	return result;
}

CUresult handle_cuGraphReleaseUserObject(struct call *call,
	const Vgpu__CuGraphReleaseUserObjectRequest *request,
	Vgpu__CuGraphReleaseUserObjectReply *reply)
{
	struct object *object;
	CUresult result;
	void *graph;

	if (!call->driver->cuGraphReleaseUserObject)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&call->session->destroy_lock);
	result = object_get(call, VGPU_HANDLE_GRAPH, request->graph, false, &graph);
	if (result == CUDA_SUCCESS)
		result = object_find(
			call, VGPU_HANDLE_USER_OBJECT, request->object, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuGraphReleaseUserObject(
			graph, object->driver, request->count);
	pthread_mutex_unlock(&call->session->destroy_lock);
	return result;
}
