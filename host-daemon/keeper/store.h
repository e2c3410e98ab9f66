/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Store: what the service manager keeps for the next keeper
 *
 * systemd keeps descriptors for a service (FDSTORE=1 of sd_notify(3)) until the service
 * is stopped, and gives them to its next process, however the last one has ended.
 */

#include <stdbool.h>
#include <stdint.h>

struct handover;
struct held_vm;
struct listen_fds;

/* Most descriptors: their names have room in one variable of the environment. */
#define STORE_MAX 8192u
#define STORE_BUCKETS 1024u

/* A descriptor in the store. */
struct stored {
	struct stored *next; /* in its bucket */
	uint64_t key;	     /* 0: to be removed */
	uint32_t number;     /* its name without the prefix */
	bool is_needed;
};

struct store {
	unsigned int n_max; /* 0: there is no store */
	unsigned int n;
	uint32_t last; /* number */
	struct stored *buckets[STORE_BUCKETS];
	bool is_full;
	bool is_blocked; /* the service manager takes nothing at the moment */
	bool is_failing;
	bool has_complained;
	int64_t retry_at; /* ms; 0: everything is stored */
};

/* Adds what is in the store already. Return: 0 or -ENOMEM. */
int store_add(struct store *store, uint32_t number, uint64_t key);
void store_deinit(struct store *store);

/* Stores what is not stored yet, and removes what has changed or is gone. It never waits:
 * what the service manager does not take is tried again at retry_at. */
void store_sync(struct store *store, const struct handover *handover);

/*
 * Stores a VM as soon as it is greeted, before the rest of what store_sync() stores.
 *
 * It cannot be stored earlier: a greeting is several messages, and the next keeper could
 * not find out how many of them had been sent. If this keeper is killed in between, the
 * VM's connection ends: QEMU reports that it cannot create the device.
 */
void store_vm(struct store *store, const struct held_vm *vm);

/* store_sync(), and waits a while if it has to. Return: whether everything is stored. */
bool store_flush(struct store *store, const struct handover *handover);

/* Removes everything, and uses the store no longer. */
void store_end(struct store *store);

/*
 * Takes what the service manager has given to this process. The log names what is not
 * vgpud's.
 *
 * @n_max:	how many descriptors it keeps, 0: none is wanted
 *
 * Return: a state file for keeper_run(), or -1: there is nothing to take over, or nothing
 * that this program can, which is logged and removed.
 */
int store_inherit(struct listen_fds *fds, unsigned int n_max);
