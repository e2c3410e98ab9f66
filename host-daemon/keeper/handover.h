/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Handover: what a keeper leaves to its successor, another program that it executes
 *
 * The process stays the same: its children remain its children, and its descriptors open.
 * If the service manager keeps the descriptors, see store.h, the successor may be another
 * process as well.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keeper/endpoints.h"
#include "keeper/held-ctl.h"
#include "keeper/held-worker.h"
#include "keeper/store.h"
#include "vgpud/config.h"

/* argv[1] of a successor, before the number of the state and the path of the
 * configuration; and of a trial, with the state as descriptor 3 and the sources as 4. */
#define HANDOVER_SUCCESSOR "--successor"
#define HANDOVER_TRIAL "--successor-trial"
/* Exit status of a trial: the program can be the successor. */
#define HANDOVER_EXIT_CAN 113

/* The parts of a keeper. */
struct handover {
	char *program; /* path on the disk */
	int sources;   /* of the configuration, a memory file */
	int previous;  /* the program to return to, or -1 */
	uint64_t last_worker;
	unsigned int last_uid;
	struct endpoints *endpoints;
	struct held_ctl *ctl;
	struct held_workers *workers;
	struct store *store;
	bool restarted; /* the keeper that left it was another process */
};

/* A piece of that, which is kept by itself. */
enum handover_kind {
	HANDOVER_BASE, /* what there is once */
	HANDOVER_SECTION,
	HANDOVER_IMAGES, /* of a section, and so are shares */
	HANDOVER_SHARES,
	HANDOVER_VM,
	HANDOVER_LEAVING, /* a VM that the broker has released */
	HANDOVER_WORKER,
};

/* Most images or shares in a piece. */
#define HANDOVER_CHUNK 200

struct handover_part {
	enum handover_kind kind;
	const struct handover *handover; /* of the base */
	const struct endpoint *endpoint; /* of the next three */
	size_t first;			 /* image or share */
	const struct held_vm *vm;
	const struct held_worker *worker;
};

/* The parts in a memory file, and the descriptors that they mention. */
struct handover_state {
	int file;
	int *fds;
	size_t n_fds;
};

#define HANDOVER_STATE_NULL                                                              \
	{                                                                                \
		.file = -1                                                               \
	}

/* Return: 0 or -errno; deinitialise in any case. Closes none of the descriptors but the
 * memory file. */
int handover_save(struct handover_state *state, const struct handover *handover);

/* The same for a piece, whose numbers are places in the list of its descriptors. */
int handover_save_part(struct handover_state *state, const struct handover_part *part);
void handover_state_deinit(struct handover_state *state);

/*
 * Executes a program, which keeps the descriptors.
 *
 * @program:	a path, or NULL: the descriptor handover->previous
 * @config:	path of the configuration
 *
 * Return: -errno; on success it does not return.
 */
int handover_execute(const struct handover_state *state, const char *program,
	int previous, const char *config);

/*
 * Reads what a keeper has left. The parts of the result that are pointers have to be
 * there and empty; the sources and the previous program are the caller's.
 *
 * @config:	made of the sources
 *
 * Return: 0 or -errno. On failure some descriptors stay open.
 */
int handover_load(struct handover *handover, int file, const struct config *config);

/* Reads only the descriptor of the sources. Return: it, or -errno. */
int handover_find_sources(int file);

/* Whether this program can be the successor: the reason why not is logged. */
bool handover_is_possible(int file);
