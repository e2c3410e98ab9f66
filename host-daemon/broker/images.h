/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Images: what workers ask of the store of their VM, and put into it
 */

#include <stdbool.h>
#include <stdint.h>

#include "broker/worker.h"
#include "vgpud/link.h"

/* Most images of each VM, so that all VMs together leave descriptors for what comes. */
uint32_t images_n_max(unsigned int n_vms);

/* A worker asks for an image: it is answered. */
void images_handle_find(struct worker *worker, const struct control_image *wanted);

/* A worker asks for a file to fill: it is answered. */
void images_handle_file(struct worker *worker, const struct control_image *wanted);

/* A worker needs a file no more. */
void images_handle_drop(struct worker *worker, const struct control_image *given);

/* Return: memory of what is gone from the store and a worker may still have. */
uint64_t images_gone_size(const struct worker *worker);

/* A worker has ended, or is killed: what only it may have had is free. */
void images_forget_worker(struct worker *worker);

/*
 * A worker gives an image for the next process of its VM.
 *
 * @fd:	its own in any case
 *
 * Return: whether an honest worker would have given that.
 */
bool images_handle_keep(struct worker *worker, const struct control_image *given, int fd);

/* The keeper announces an image that it holds. Takes ownership of the descriptor. */
void images_restore(struct broker *broker, const struct link_message *message, int fd);
