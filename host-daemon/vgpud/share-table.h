/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Share table: device memory that the guest processes of one VM share
 *
 * A worker gives vgpud the descriptor of the memory and receives a token for its guest.
 * Each worker that presents the token gets the descriptor. Those workers, and the one
 * that shared the memory, are its holders. Once the worker that shared it has left or is
 * gone, no other can get it, and it remains until its last holder leaves.
 *
 * The worker that shared the memory pays for it. Memory that it left to other holders
 * counts for the VM as a whole, because no worker pays for it.
 *
 * Keeper and broker have a table each, with the same contents: a new broker receives the
 * keeper's.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "control/control.h"

/* Maximum of a table: each has a descriptor in the keeper and one in the broker. */
#define SHARE_TABLE_N_MAX 1024u
/* At most one in this many descriptors of a process of vgpud is of shared memory. */
#define SHARE_TABLE_FD_SHARE 8
/* Maximum of holders of all entries of a table together. */
#define SHARE_TABLE_HOLDERS_MAX 16384u

struct share_holder {
	uint64_t worker; /* identifies it to the keeper; 0: it has left */
	uint32_t cookie; /* the worker's name for this use */
};

struct share {
	TAILQ_ENTRY(share) entry;
	uint8_t token[CONTROL_TOKEN_SIZE];
	uint64_t size;
	uint8_t device[16]; /* its UUID, as the worker says; zeros: unknown */
	int fd;
	/* The first is that of the worker that shared it, whether it has left or not. */
	struct share_holder *holders;
	uint32_t n_holders;
};

struct share_table {
	TAILQ_HEAD(shares, share) shares;
	uint32_t n;
	uint32_t n_holders;
	uint64_t unpaid; /* bytes of entries whose first holder has left */
};

void share_table_init(struct share_table *table);
void share_table_clear(struct share_table *table);

/* Moves all entries to an empty table. */
void share_table_move(struct share_table *to, struct share_table *from);

/* Return: the entry, or NULL for an unknown token, or one whose first holder has left. */
struct share *share_table_find(
	const struct share_table *table, const uint8_t token[CONTROL_TOKEN_SIZE]);

/* Return: the entry that a worker holds under that cookie, or NULL. */
struct share *share_table_find_held(
	struct share_table *table, uint64_t worker, uint32_t cookie);

/*
 * Adds an entry.
 *
 * @template:	token, size, device and fd (owned by the table on success) are used
 * @worker:	its first holder, or 0: it has left
 *
 * Return: 0, -EEXIST, -ENOSPC or -ENOMEM.
 */
int share_table_add(struct share_table *table, const struct share *template,
	uint64_t worker, uint32_t cookie);

/* Adds a holder. Return: 0, -ENOSPC or -ENOMEM. */
int share_table_hold(
	struct share_table *table, struct share *share, uint64_t worker, uint32_t cookie);

/* Removes a holder, and an entry without any. */
void share_table_leave(struct share_table *table, uint64_t worker, uint32_t cookie);

/* The same for all that a worker holds. */
void share_table_forget(struct share_table *table, uint64_t worker);

/* Return: bytes of a device in entries whose first holder has left, at most UINT64_MAX.
 */
uint64_t share_table_unpaid_on(
	const struct share_table *table, const uint8_t device[static 16]);

/* Return: host memory of the entries that are memory files, in bytes. It is counted
 * whatever a worker says: a compromised one may share any file that it has. */
uint64_t share_table_host_memory(const struct share_table *table);
