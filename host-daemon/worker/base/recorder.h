/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Recorder: writes what a session does into a socket, see control/recording.h
 *
 * A session that is not recorded has none. Any thread may call these functions; a lock
 * keeps records apart, and nothing else is locked with it. If the other end of the socket
 * is closed, or reads nothing for some seconds, the recording ends and the session goes
 * on.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/recording.h"
#include "vgpu/cuda.h"
#include "vgpu/frame.h"
#include "worker/base/session.h"

struct recorder;

/*
 * Begins a recording. The shared memory of the session is mapped, and its driver is open.
 *
 * @fd:	socket; the recorder's from here on
 *
 * Return: 0 or -ENOMEM.
 */
int recorder_start(
	struct session *session, int fd, const struct recording_header *header);
void recorder_free(struct recorder *recorder);

static inline bool session_is_recorded(const struct session *session)
{
	return __builtin_expect(session->recorder != NULL, 0);
}

/* Whether records are still written. */
bool recorder_is_on(struct recorder *recorder);

/* For the dispatcher: a call that was taken off the ring, with the words that the guest
 * may have read before it. */
void recorder_take(
	struct session *session, uint64_t number, const struct vgpu_frame *frame);

/* On the thread that runs a call, before it. */
void recorder_run(
	struct session *session, uint64_t number, const struct vgpu_frame *frame);

/* The result of that call, before its reply is published. */
void recorder_end(struct session *session, uint64_t number,
	const struct vgpu_frame *frame, CUresult result, const void *reply,
	size_t reply_size);

/* The device or the worker may access that part of the arena now: writes what the guest
 * has changed in it. The call that does so may queue recorder_output(). */
void recorder_touch(struct session *session, uint64_t address, uint64_t size);

/* The same for memory that no call names. */
void recorder_scan(struct session *session, uint64_t offset, uint64_t size);

/* Queues a digest of the arena that this call has touched. The context is current. */
void recorder_output(struct session *session, CUstream stream);

/* The running call names a graph or an executable one, or has made it. */
void recorder_name_graph(struct session *session, uint64_t handle);
void recorder_make_graph(struct session *session, uint64_t handle);

/* Queues digests of the arena that copies of an executable graph access, after a launch.
 * The context is current. */
void recorder_graph_output(struct session *session, uint64_t handle, CUstream stream);

/* Whether some kernel was given a pointer to host memory, so that each launch may read
 * any of it. */
bool recorder_follows_pointers(struct recorder *recorder);
void recorder_follow_pointers(struct recorder *recorder);

/* Words of completion that work writes; they only become more. */
void recorder_note_word(struct recorder *recorder, uint32_t offset);

/* An image that vgpud had. */
void recorder_image(struct session *session, const uint8_t digest[CONTROL_DIGEST_SIZE],
	const void *bytes, uint64_t size);

void recorder_answer(struct session *session, const struct control_message *message);

/* Once for each kind. */
void recorder_note(struct session *session, enum recording_note_kind kind);

/* A kernel has broken a context. By any thread, with a lock of the driver's held. */
void recorder_fault(struct session *session, int result, const char *text);

void recorder_close(struct session *session, uint32_t reason);
