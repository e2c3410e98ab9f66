/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Error log: the last messages about failed calls, for the program itself
 *
 * cuLogs* (CUDA Driver API, Error Log Management Functions): a program asks for a
 * position in the log, and later for the messages from there on, or is called with each.
 * Messages are the reasons of wire/reason.h. A program that never asks costs nothing: the
 * host is not asked for a reason that nobody reads.
 */

#include <stdbool.h>
#include <stddef.h>

#include "vgpu/cuda.h"

/* The log keeps so many messages, and a dump to memory has at most so many bytes (CUDA
 * Driver API, cuLogsDumpToMemory). */
#define SHIM_ERROR_LOG_MESSAGES 100u
#define SHIM_ERROR_LOG_DUMP_MAX 25600u

/* Room for the text of a dump to a file: all messages, each as long as it may be. */
#define SHIM_ERROR_LOG_TEXT_MAX (SHIM_ERROR_LOG_MESSAGES * 1024u)

/* Whether the program has asked for messages. */
bool shim_error_log_is_used(void);

/* Adds a message, and calls the program. */
void shim_error_log_add(CUlogLevel level, const char *text);

/* Return: the position of the next message. */
CUlogIterator shim_error_log_position(void);

/*
 * Writes messages as lines, the newest ones if there is no room for all: then, and if the
 * log has lost some, the first line says so.
 *
 * @iterator:	the first message; becomes the position after the last one. NULL: all
 * @size:	of the buffer, with the NUL at the end
 *
 * Return: the length of the text.
 */
size_t shim_error_log_read(CUlogIterator *iterator, char *buffer, size_t size);

/* Return: false without memory. */
bool shim_error_log_listen(
	CUlogsCallback function, void *data, CUlogsCallbackHandle *handlep);

/* Return: whether it was registered. */
bool shim_error_log_stop(CUlogsCallbackHandle handle);
