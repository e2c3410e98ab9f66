/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Share table: device memory that the guest processes of one VM share
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "vgpu/checked.h"
#include "vgpu/error.h"
#include "vgpud/closer.h"
#include "vgpud/share-table.h"

void share_table_init(struct share_table *table)
{
	*table = (struct share_table){ .n = 0 };
	TAILQ_INIT(&table->shares);
}

static bool has_first(const struct share *share)
{
	return share->holders[0].worker;
}

static void remove_share(struct share_table *table, struct share *share)
{
	TAILQ_REMOVE(&table->shares, share, entry);
	table->n--;
	table->n_holders -= share->n_holders;
	if (!has_first(share))
		table->unpaid -= share->size;
	closer_close(share->fd);
	free(share->holders);
	free(share);
}

void share_table_clear(struct share_table *table)
{
	struct share *share;

	while ((share = TAILQ_FIRST(&table->shares)))
		remove_share(table, share);
}

void share_table_move(struct share_table *to, struct share_table *from)
{
	TAILQ_CONCAT(&to->shares, &from->shares, entry);
	to->n = from->n;
	to->n_holders = from->n_holders;
	to->unpaid = from->unpaid;
	share_table_init(from);
}

static struct share *find(
	const struct share_table *table, const uint8_t token[CONTROL_TOKEN_SIZE])
{
	struct share *share;

	TAILQ_FOREACH(share, &table->shares, entry)
		if (!memcmp(share->token, token, CONTROL_TOKEN_SIZE))
			return share;
	return NULL;
}

struct share *share_table_find(
	const struct share_table *table, const uint8_t token[CONTROL_TOKEN_SIZE])
{
	struct share *share = find(table, token);

	return share && has_first(share) ? share : NULL;
}

/* Return: the index of a holder, or n_holders. */
static uint32_t find_holder(const struct share *share, uint64_t worker, uint32_t cookie)
{
	uint32_t i = 0;

	while (i < share->n_holders && (share->holders[i].worker != worker ||
					       share->holders[i].cookie != cookie))
		i++;
	return i;
}

struct share *share_table_find_held(
	struct share_table *table, uint64_t worker, uint32_t cookie)
{
	struct share *share;

	TAILQ_FOREACH(share, &table->shares, entry)
		if (find_holder(share, worker, cookie) < share->n_holders)
			return share;
	return NULL;
}

int share_table_add(struct share_table *table, const struct share *template,
	uint64_t worker, uint32_t cookie)
{
	struct share *share;

	if (find(table, template->token))
		return -EEXIST;
	if (table->n == SHARE_TABLE_N_MAX || table->n_holders == SHARE_TABLE_HOLDERS_MAX)
		return -ENOSPC;
	share = calloc(1, sizeof(*share));
	if (!share)
		return vgpu_error_origin(-ENOMEM);
	share->holders = calloc(1, sizeof(*share->holders));
	if (!share->holders) {
		free(share);
		return vgpu_error_origin(-ENOMEM);
	}
	memcpy(share->token, template->token, CONTROL_TOKEN_SIZE);
	share->size = template->size;
	memcpy(share->device, template->device, sizeof(share->device));
	share->fd = template->fd;
	share->holders[0] = (struct share_holder){ worker, cookie };
	share->n_holders = 1;
	TAILQ_INSERT_TAIL(&table->shares, share, entry);
	table->n++;
	table->n_holders++;
	if (!worker)
		table->unpaid += share->size;
	return 0;
}

int share_table_hold(
	struct share_table *table, struct share *share, uint64_t worker, uint32_t cookie)
{
	struct share_holder *holders;

	if (find_holder(share, worker, cookie) < share->n_holders)
		return 0;
	if (table->n_holders == SHARE_TABLE_HOLDERS_MAX)
		return -ENOSPC;
	holders = reallocarray(share->holders, share->n_holders + 1, sizeof(*holders));
	if (!holders)
		return vgpu_error_origin(-ENOMEM);
	holders[share->n_holders++] = (struct share_holder){ worker, cookie };
	share->holders = holders;
	table->n_holders++;
	return 0;
}

static void remove_holder(struct share_table *table, struct share *share, uint32_t i)
{
	/* The first keeps its place, so that it is known to be the one that has left. */
	if (!i) {
		share->holders[0].worker = 0;
		table->unpaid += share->size;
	} else {
		share->holders[i] = share->holders[--share->n_holders];
		table->n_holders--;
	}
	if (share->n_holders == 1 && !has_first(share))
		remove_share(table, share);
}

void share_table_leave(struct share_table *table, uint64_t worker, uint32_t cookie)
{
	struct share *share = share_table_find_held(table, worker, cookie);

	if (share)
		remove_holder(table, share, find_holder(share, worker, cookie));
}

/* Return: the index of any use by a worker, or n_holders. */
static uint32_t find_worker(const struct share *share, uint64_t worker)
{
	uint32_t i = 0;

	while (i < share->n_holders && share->holders[i].worker != worker)
		i++;
	return i;
}

/* The last one first, because removing it may free the entry. */
static void forget_in(struct share_table *table, struct share *share, uint64_t worker)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < share->n_holders; i++)
		n += share->holders[i].worker == worker;
	while (n--)
		remove_holder(table, share, find_worker(share, worker));
}

void share_table_forget(struct share_table *table, uint64_t worker)
{
	struct share *share, *next;

	for (share = TAILQ_FIRST(&table->shares); share; share = next) {
		next = TAILQ_NEXT(share, entry);
		forget_in(table, share, worker);
	}
}

uint64_t share_table_unpaid_on(
	const struct share_table *table, const uint8_t device[static 16])
{
	const struct share *share;
	uint64_t sum = 0;

	TAILQ_FOREACH(share, &table->shares, entry)
		if (!has_first(share) &&
			!memcmp(share->device, device, sizeof(share->device)) &&
			!vgpu_add_u64(sum, share->size, &sum))
			return UINT64_MAX;
	return sum;
}

uint64_t share_table_host_memory(const struct share_table *table)
{
	const struct share *share;
	uint64_t size = 0;
	struct stat st;

	TAILQ_FOREACH(share, &table->shares, entry)
		if (!fstat(share->fd, &st) && S_ISREG(st.st_mode))
			size += (uint64_t)st.st_blocks * S_BLKSIZE;
	return size;
}
