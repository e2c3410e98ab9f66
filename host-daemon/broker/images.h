/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Images: requests of workers for images and their VM's image store
 */

#include <stdbool.h>
#include <stdint.h>

#include "broker/worker.h"
#include "vgpud/link.h"

/* Answers a worker's request for an image. */
void images_handle_find(struct worker *worker, const struct control_image *wanted);

/* Answers a worker's request for a file to fill. */
void images_handle_file(struct worker *worker, const struct control_image *wanted);

/* A worker has released a file. */
void images_handle_drop(struct worker *worker, const struct control_image *given);

/* Return: memory of images that are removed from the store and may still be mapped by a
 * worker. */
uint64_t images_gone_size(const struct worker *worker);

/* A worker has exited, or was killed: frees the files that only it can have. */
void images_forget_worker(struct worker *worker);

/*
 * A worker offers an image to other processes of its VM.
 *
 * @fd:	takes ownership in any case
 *
 * Return: false if the message breaks the protocol.
 */
bool images_handle_keep(struct worker *worker, const struct control_image *given, int fd);

/* Adds an image that the keeper announces. Takes ownership of the descriptor. */
void images_restore(struct broker *broker, const struct link_message *message, int fd);
