/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Arena: the shared memory that this session may access
 *
 * The worker reserves the whole window W and maps into it its own channel area and the
 * extents granted to the channel, nothing else: memory of other channels is not mapped
 * here. Extents are only added while a session lives, so a look-up reads a table of bytes
 * without a lock.
 *
 * Words, extents and aliases are registered with the driver (portable, mapped) under the
 * worker's own retain of a primary context, the arena's home, once there is one.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/ring-layout.h"

struct context;
struct runner;
struct session;

struct arena_run {
	uint32_t first;
	uint32_t n_extents;
	bool registered;
	bool is_pageable; /* never registered */
};

/* A second address of some pages, for one mapping of the guest (host-mapping.h). */
struct arena_alias {
	uint64_t address;
	uint64_t size;
	bool is_open;	 /* to be registered */
	bool registered; /* by the home */
	struct arena_alias *previous, *next;
};

/* Runs grow by at least 64 MiB on request, so a window of some TiB stays below. */
#define ARENA_RUNS_MAX 1024u

/* Completion words, and words of records. */
#define ARENA_WORD_PIECES 2u

struct arena {
	uint64_t base;	    /* address of extent 0 */
	uint32_t n_extents; /* of the whole memory */
	uint8_t *owned;	    /* one byte each, atomic */
	int memfd;
	/* Registration and growth. */
	pthread_mutex_t lock;
	struct arena_run runs[ARENA_RUNS_MAX];
	uint32_t n_runs;
	uint32_t n_words_registered; /* of ARENA_WORD_PIECES */
	struct arena_alias *aliases;
};

/* Maps the channel's area and its first extents into the window reserved before. */
int arena_init(
	struct session *session, int memfd, uint32_t first_extent, uint32_t n_extents);
void arena_deinit(struct session *session);

/* Maps a run of extents granted later. Return: 0, -errno. */
int arena_add_run(struct session *session, uint32_t first_extent, uint32_t n_extents);

/* Keeps the run that begins with this extent from being registered: its pages may be
 * given back to the host, which the driver's pins would not notice. */
void arena_keep_pageable(struct session *session, uint32_t first_extent);

/* Whether the session has that extent. */
bool arena_has_extent(const struct session *session, uint32_t extent);

/* Whether [address, address + size) is within extents of this session: of memory that a
 * call is about to use, which is recorded. */
bool arena_covers(const struct session *session, uint64_t address, uint64_t size);

/* Registers all unregistered memory. `context` is current, and becomes the home if there
 * is none yet. Return: the driver's result. */
CUresult arena_register(struct session *session, struct context *context);

/* Registers a run that was added while the session runs. */
CUresult arena_register_growth(struct session *session, struct runner *runner);

/* Unregisters all memory if `context` is the home, which is about to be destroyed and
 * current. */
void arena_unregister(struct session *session, struct context *context);

/* Maps pages that the session has at another address of the window. Return: 0, -errno. */
int arena_map_at(
	struct session *session, uint64_t address, uint64_t size, uint64_t arena_address);

/*
 * Makes an alias known, opens it to devices, closes it, and forgets it. One thread at a
 * time has an alias; closing waits for work of the home. Opening returns the driver's
 * result.
 */
void arena_add_alias(struct session *session, struct arena_alias *alias);
CUresult arena_open_alias(
	struct session *session, struct runner *runner, struct arena_alias *alias);
void arena_close_alias(
	struct session *session, struct runner *runner, struct arena_alias *alias);
void arena_remove_alias(struct session *session, struct arena_alias *alias);
