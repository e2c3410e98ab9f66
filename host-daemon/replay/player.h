/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Player: guest and vgpud for the worker of a replay
 */

#include "replay/findings.h"
#include "replay/program.h"

/* How a replay has ended. */
enum player_end {
	PLAYER_DONE,	 /* at the end of the recording */
	PLAYER_NO_START, /* the worker cannot serve */
	PLAYER_DIED,   /* the worker has ended by itself, and did not in the recording */
	PLAYER_STUCK,  /* something does not go on */
	PLAYER_BROKEN, /* the recording is damaged */
	PLAYER_FAILED, /* this host lacks something */
};

/* Calls that are named at most. */
#define PLAYER_OPEN_MAX 16u

/* A call that had not returned when the recording ended. */
struct player_open {
	uint64_t number;
	bool returns; /* now */
	int32_t result;
};

struct player_result {
	enum player_end end;
	uint64_t n_calls;		  /* that were made again */
	uint64_t number;		  /* of the last of them */
	int status;			  /* with DIED: of waitpid(2) */
	char reason[256];		  /* a sentence, unless it is done */
	bool is_closed;			  /* the recording has the end of the session */
	struct recording_summary summary; /* of what was read */
	struct player_open open[PLAYER_OPEN_MAX]; /* unless it is closed */
	uint32_t n_open;
};

/*
 * Runs a recording again.
 *
 * @recording:	opened, at the first record after the header
 * @findings:	zeroed but for what is printed
 */
void player_play(struct recording *recording, const struct recording_header *header,
	const struct config *paths, const struct replay_options *options,
	struct findings *findings, struct player_result *result);
