/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Call times: how long the calls of a session, or of a virtual machine, took in workers
 *
 * A worker has struct call_times at the end of the file that it shares with vgpud
 * (control.h), a virtual machine struct vm_times at the end of its quota file: there
 * vgpud adds up the sessions that have ended, so that the next broker finds the sums.
 * Only pages in use take memory: one or two for each kind of call.
 *
 * A time is that from the frame taken off the ring to the end of the call. Calls without
 * a reply are timed together, up to 16 in a row, and each counts with their mean. A call
 * that a lane runs includes its way there. Calls whose purpose is to wait, for callbacks
 * and for notices, are not counted.
 *
 * Workers can write both. They may be compromised, so vgpud takes the numbers for no more
 * than what that virtual machine says of itself, and reads by pread(2).
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control/histogram.h"

/* Numbers of calls, see vgpu/g-calls.h, with room for those to come. */
#define CALL_TIMES_MAX 1024u
/* Changes with the layout of anything in this file or of struct histogram. */
#define CALL_TIMES_VERSION 1u

struct call_times {
	uint32_t version;  /* written by the worker before it times anything */
	uint32_t is_added; /* written by vgpud: the sums of the machine have it */
	uint8_t reserved[4096 - 8];
	struct histogram by_dispatcher[CALL_TIMES_MAX]; /* its thread alone writes */
	struct histogram by_lanes[CALL_TIMES_MAX];
};

/* Of all sessions that have ended; vgpud alone writes. */
struct vm_times {
	uint32_t version;
	uint32_t reserved;
	uint8_t reserved2[4096 - 8];
	struct histogram calls[CALL_TIMES_MAX];
};

static_assert(sizeof(struct call_times) % 4096 == 0, "whole pages");
static_assert(sizeof(struct vm_times) % 4096 == 0, "whole pages");

/*
 * For the worker: maps its times, at that offset of a file, and says their version.
 *
 * @timesp:	NULL with a file of an earlier build, which has none; else mapped until
 *		the process ends
 *
 * Return: 0 or -errno.
 */
int call_times_map(struct call_times **timesp, int fd, off_t offset);

/*
 * Adds what is in a file to an array of CALL_TIMES_MAX, which is zeroed before the first.
 *
 * @fd:		of a worker, or of a machine, with its times at that offset
 * @first:	the number of a call; n of them are added
 * @n_stepsp:	is increased by what it cost: looks into the file, and histograms read
 *
 * Return: 0, also if the file has none of this version, or -errno.
 */
int call_times_add(struct histogram *calls, int fd, off_t offset, uint32_t first,
	uint32_t n, uint64_t *n_stepsp);
int vm_times_add(struct histogram *calls, int fd, off_t offset, uint32_t first,
	uint32_t n, uint64_t *n_stepsp);

/*
 * For vgpud: adds the times of a session that has ended to those of its machine, once. If
 * vgpud dies in between they are added twice.
 *
 * Return: 0 or -errno.
 */
int vm_times_take(int fd, off_t offset, int worker_fd, off_t worker_offset);
