/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IPC: allocations of device memory that other processes of the VM may open
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"
#include "worker/base/call.h"
#include "worker/base/ranges.h"
#include "worker/base/session.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/ipc.h"
#include "worker/memory/placement.h"
#include "worker/memory/virtual.h"

void ipc_init(struct session *session)
{
	pthread_mutex_init(&session->ipc->lock, NULL);
}

void ipc_deinit(struct session *session)
{
	struct ipc *ipc = session->ipc;

	while (ipc->users) {
		struct ipc_user *user = ipc->users;

		ipc->users = user->next;
		free(user);
	}
	while (ipc->pages) {
		struct ipc_pages *pages = ipc->pages;

		ipc->pages = pages->next;
		free(pages);
	}
	pthread_mutex_destroy(&ipc->lock);
}

static struct ipc_pages *find_pages(const struct ipc *ipc, uint64_t base)
{
	struct ipc_pages *pages;

	for (pages = ipc->pages; pages && pages->base != base; pages = pages->next)
		;
	return pages;
}

static struct ipc_user *find_user(const struct ipc *ipc, uint64_t address)
{
	struct ipc_user *user;

	for (user = ipc->users; user && user->address != address; user = user->next)
		;
	return user;
}

/*
 * Asks the driver for the pages that hold an address.
 *
 * @share:	softgpu has vgpud make a new file, which is shared then
 */
static CUresult ask_driver(struct session *session, uint64_t address, uint64_t *basep,
	uint64_t *sizep, int *fdp, struct share *share)
{
	struct share *made = &session->shares->made;

	*share = (struct share){};
	if (session->memory->placement)
		return placement_export(
			session->memory->placement, address, basep, sizep, fdp);
	if (!session->driver->export)
		return CUDA_ERROR_NOT_SUPPORTED;
	made->cookie = 0;
	if (session->driver->export(address, basep, sizep, fdp)) {
		share_leave(session, made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*share = *made;
	made->cookie = 0;
	return CUDA_SUCCESS;
}

/* With the lock. */
static CUresult add_pages(
	struct session *session, const struct range *range, struct ipc_pages **pagesp)
{
	const CUdevice device = ((const struct context *)range->owner)->device;
	_vgpu_cleanup_(vgpu_freep) struct ipc_pages *pages = calloc(1, sizeof(*pages));
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	struct ipc_pages *known;
	CUresult result;

	if (!pages)
		return CUDA_ERROR_OUT_OF_MEMORY;
	session->shares->device = device;
	result = ask_driver(
		session, range->start, &pages->base, &pages->size, &fd, &pages->share);
	if (result != CUDA_SUCCESS)
		return result;
	known = find_pages(session->ipc, pages->base);
	if (known) {
		share_leave(session, &pages->share);
		*pagesp = known;
		return CUDA_SUCCESS;
	}
	if (!pages->share.cookie &&
		share_give(session, device, fd, pages->size, &pages->share))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pages->next = session->ipc->pages;
	session->ipc->pages = pages;
	*pagesp = pages;
	pages = NULL;
	return CUDA_SUCCESS;
}

/* With the lock: pages that no exported allocation is in are dropped, too. */
static void remove_user(struct session *session, struct ipc_user *user)
{
	struct ipc_pages **link = &session->ipc->pages, *pages = user->pages;
	struct ipc_user **user_link = &session->ipc->users;

	while (*user_link != user)
		user_link = &(*user_link)->next;
	*user_link = user->next;
	free(user);
	if (--pages->n_users)
		return;
	while (*link != pages)
		link = &(*link)->next;
	*link = pages->next;
	share_leave(session, &pages->share);
	free(pages);
}

/* With the lock. */
static CUresult export_locked(
	struct session *session, const struct range *range, struct ipc_user **userp)
{
	struct ipc_user *user = find_user(session->ipc, range->start);
	struct ipc_pages *pages;
	CUresult result;

	*userp = user;
	if (user)
		return CUDA_SUCCESS;
	user = calloc(1, sizeof(*user));
	if (!user)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = add_pages(session, range, &pages);
	if (result != CUDA_SUCCESS) {
		free(user);
		return result;
	}
	pages->n_users++;
	*user = (struct ipc_user){ session->ipc->users, range->start, pages };
	session->ipc->users = user;
	*userp = user;
	return CUDA_SUCCESS;
}

static bool find_allocation(
	struct session *session, uint64_t address, struct range *range)
{
	return ranges_find(&session->ranges, address, range) &&
	       range->kind == RANGE_MEMORY && range->start <= address;
}

CUresult ipc_export(struct call *call, uint64_t address, struct ipc_export *exported)
{
	struct session *session = call->session;
	struct ipc_user *user;
	struct range range;
	CUresult result;

	if (!find_allocation(session, address, &range))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&session->virtual->lock);
	pthread_mutex_lock(&session->ipc->lock);
	result = export_locked(session, &range, &user);
	/* A thread that freed it meanwhile may not have found it here. */
	if (result == CUDA_SUCCESS && !find_allocation(session, address, &range)) {
		remove_user(session, user);
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (result == CUDA_SUCCESS) {
		memcpy(exported->token, user->pages->share.token,
			sizeof(exported->token));
		exported->pages_size = user->pages->size;
		exported->offset = range.start - user->pages->base;
		exported->size = range.size;
	}
	pthread_mutex_unlock(&session->ipc->lock);
	pthread_mutex_unlock(&session->virtual->lock);
	return result;
}

void ipc_forget(struct session *session, uint64_t address)
{
	struct ipc_user *user;

	pthread_mutex_lock(&session->ipc->lock);
	user = find_user(session->ipc, address);
	if (user)
		remove_user(session, user);
	pthread_mutex_unlock(&session->ipc->lock);
}
