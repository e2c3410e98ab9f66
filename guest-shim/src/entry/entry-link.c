/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: the linker
 *
 * A link is made of code on the host; here is what belongs to the program: where the logs
 * of its creation go, and the linked image, which it may read until it destroys the
 * link. Both are found by the handle's index under a lock. The handle has one reference,
 * each call under way another, so a thread may destroy what others use; one call of a
 * link is under way at a time, as on the host.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"
#include "vgpu/g-driver.pb-c.h"

#include "code/load.h"
#include "g-remote.h"
#include "process/call.h"
#include "wire/lock.h"
#include "wire/table.h"

/* The host cuts longer names of inputs in its logs, so they are cut here. */
#define LABEL_MAX 255u

/* Bytes of a linked image that come with one reply. */
#define PIECE_MAX (4ull << 20)

struct link {
	uint64_t handle;
	uint32_t n_refs;      /* links_lock */
	pthread_mutex_t lock; /* for what follows, and over the call to the host */
	struct shim_jit jit;  /* where results of the compiler go, as created */
	uint32_t info_size;
	uint32_t error_size;
	void *image; /* once complete */
	size_t size;
};

static struct shim_lock links_lock;
static struct shim_table links;

/* With links_lock. */
static struct link *link_find(CUlinkState state)
{
	uint64_t handle = (uint64_t)(uintptr_t)state;
	struct link *link;

	if (vgpu_handle_kind(handle) != VGPU_HANDLE_LINK)
		return NULL;
	link = shim_table_get(&links, vgpu_handle_index(handle));
	return link && link->handle == handle ? link : NULL;
}

static struct link *link_new(const struct shim_load *load)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->n_refs = 1;
	pthread_mutex_init(&link->lock, NULL);
	link->jit = load->jit;
	link->info_size = load->wire.info_size;
	link->error_size = load->wire.error_size;
	return link;
}

static void link_drop(struct link *link)
{
	bool is_last;

	shim_lock(&links_lock);
	is_last = !--link->n_refs;
	shim_unlock(&links_lock);
	if (!is_last)
		return;
	pthread_mutex_destroy(&link->lock);
	free(link->image);
	free(link);
}

static void link_dropp(struct link **linkp)
{
	if (*linkp)
		link_drop(*linkp);
}

static void link_leavep(struct link **linkp)
{
	if (!*linkp)
		return;
	pthread_mutex_unlock(&(*linkp)->lock);
	link_drop(*linkp);
}

/* Return: the link, which is the caller's alone until link_leavep(), or NULL. */
static struct link *link_enter(CUlinkState state)
{
	struct link *link;

	shim_lock(&links_lock);
	link = link_find(state);
	if (link)
		link->n_refs++;
	shim_unlock(&links_lock);
	if (link)
		pthread_mutex_lock(&link->lock);
	return link;
}

static bool link_publish(struct link *link)
{
	SHIM_LOCKED(&links_lock);
	return shim_table_set(&links, vgpu_handle_index(link->handle), link);
}

/* Return: the link, whose handle is none any more, or NULL where it was none. */
static struct link *link_take(CUlinkState state)
{
	struct link *link;
	SHIM_LOCKED(&links_lock);

	link = link_find(state);
	if (link)
		shim_table_set(&links, vgpu_handle_index(link->handle), NULL);
	return link;
}

CUresult shim_cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options,
	void **optionValues, CUlinkState *stateOut)
{
	Vgpu__CuLinkCreateV2Request request = VGPU__CU_LINK_CREATE_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuLinkCreate_v2);
	CUresult result = shim_call_check(call.id);
	_vgpu_cleanup_(shim_load_freep) struct shim_load *load = NULL;
	_vgpu_cleanup_(link_dropp) struct link *link = NULL;
	const ProtobufCMessage *message;

	if (result != CUDA_SUCCESS)
		return result;
	if (!stateOut)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_load_new(&load, options, optionValues, numOptions);
	if (result != CUDA_SUCCESS)
		return result;
	link = link_new(load);
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	request.load = shim_load_bytes(load);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_link_create_v2_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	link->handle = ((const Vgpu__CuLinkCreateV2Reply *)message)->state_out;
	*stateOut = (CUlinkState)(uintptr_t)link->handle;
	if (!link_publish(link)) {
		shim_remote_cuLinkDestroy(*stateOut);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	link = NULL;
	return CUDA_SUCCESS;
}

/* A load with the logs of the link; all its other options are for one input. */
static CUresult load_for(struct shim_load **loadp, const struct link *link,
	const CUjit_option *options, void **values, unsigned int n)
{
	CUresult result = shim_load_new(loadp, options, values, n);

	if (result == CUDA_SUCCESS) {
		(*loadp)->wire.info_size = link->info_size;
		(*loadp)->wire.error_size = link->error_size;
	}
	return result;
}

CUresult shim_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data,
	size_t size, const char *name, unsigned int numOptions, CUjit_option *options,
	void **optionValues)
{
	Vgpu__CuLinkAddDataV2Request request = VGPU__CU_LINK_ADD_DATA_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuLinkAddData_v2);
	CUresult result = shim_call_check(call.id);
	_vgpu_cleanup_(shim_load_freep) struct shim_load *load = NULL;
	const ProtobufCMessage *message;
	_vgpu_cleanup_(link_leavep) struct link *link = NULL;
	char label[LABEL_MAX + 1] = "";

	if (result != CUDA_SUCCESS)
		return result;
	link = link_enter(state);
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || !size || size > SHIM_IMAGE_SIZE_MAX || link->image)
		return CUDA_ERROR_INVALID_VALUE;
	result = load_for(&load, link, options, optionValues, numOptions);
	if (result != CUDA_SUCCESS)
		return result;
	load->image.parts[0] = (struct shim_image_part){ data, size, 0 };
	load->image.n_parts = 1;
	result = shim_load_upload(load, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (name)
		strncpy(label, name, LABEL_MAX);
	request.state = link->handle;
	request.type = (int32_t)type;
	request.name = label;
	request.load = shim_load_bytes(load);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_link_add_data_v2_reply__descriptor, &message);
	if (message)
		shim_load_finish(load, &link->jit,
			&((const Vgpu__CuLinkAddDataV2Reply *)message)->load_result);
	return result;
}

CUresult shim_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
	unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	_vgpu_cleanup_(shim_image_file_deinit) struct shim_image_file file = {};
	CUresult result;

	SHIM_CHECK_READY();
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_image_file_read(path, &file);
	if (result != CUDA_SUCCESS)
		return result;
	return shim_cuLinkAddData_v2(state, type, file.data, file.size, path, numOptions,
		options, optionValues);
}

/* Fetches the piece of the image that begins at an offset; the first completes it. */
static CUresult fetch(struct link *link, struct shim_load *load, uint64_t offset)
{
	Vgpu__CuLinkCompleteRequest request = VGPU__CU_LINK_COMPLETE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuLinkComplete);
	const Vgpu__CuLinkCompleteReply *reply;
	const ProtobufCMessage *message;
	CUresult result;
	uint64_t n;

	request.state = link->handle;
	request.load = shim_load_bytes(load);
	request.destination = (uint64_t)(uintptr_t)load->room;
	request.room = PIECE_MAX;
	request.offset = offset;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_link_complete_reply__descriptor, &message);
	if (!message)
		return result;
	reply = (const Vgpu__CuLinkCompleteReply *)message;
	shim_load_finish(load, &link->jit, &reply->load_result);
	if (result != CUDA_SUCCESS)
		return result;
	if (!offset) {
		link->size = reply->size_out;
		link->image = malloc(link->size + 1);
		if (!link->image)
			return CUDA_ERROR_OUT_OF_MEMORY;
		((char *)link->image)[link->size] = '\0';
	}
	n = link->size - offset;
	memcpy((char *)link->image + offset, load->room, n < PIECE_MAX ? n : PIECE_MAX);
	return CUDA_SUCCESS;
}

static CUresult fetch_all(struct link *link)
{
	_vgpu_cleanup_(shim_load_freep) struct shim_load *load = NULL;
	uint64_t offset = 0;
	CUresult result;

	result = load_for(&load, link, NULL, NULL, 0);
	if (result == CUDA_SUCCESS)
		result = shim_load_upload(load, PIECE_MAX);
	if (result != CUDA_SUCCESS)
		return result;
	do {
		result = fetch(link, load, offset);
		offset += PIECE_MAX;
	} while (result == CUDA_SUCCESS && offset < link->size);
	if (result != CUDA_SUCCESS) {
		free(link->image);
		link->image = NULL;
	}
	return result;
}

CUresult shim_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
	_vgpu_cleanup_(link_leavep) struct link *link = NULL;
	CUresult result = CUDA_SUCCESS;

	SHIM_CHECK_READY();
	link = link_enter(state);
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!cubinOut)
		return CUDA_ERROR_INVALID_VALUE;
	if (!link->image)
		result = fetch_all(link);
	if (result != CUDA_SUCCESS)
		return result;
	*cubinOut = link->image;
	if (sizeOut)
		*sizeOut = link->size;
	return CUDA_SUCCESS;
}

CUresult shim_cuLinkDestroy(CUlinkState state)
{
	struct link *link;
	CUresult result;

	SHIM_CHECK_READY();
	link = link_take(state);
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	result = shim_remote_cuLinkDestroy(state);
	link_drop(link);
	return result;
}
