/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sentences: what is wrong with the way to the host, and what to do
 *
 * docs/troubleshooting.md has each of them.
 */

#include <stddef.h>

struct vgpu_channel_entry;

#define SHIM_SENTENCE_SIZE 640u

/* Why the ivshmem device of that name, or none, cannot be opened: -errno. */
void shim_sentence_of_device(char text[SHIM_SENTENCE_SIZE], const char *name, int error);

/* Why a socket cannot be: -errno. */
void shim_sentence_of_socket(char text[SHIM_SENTENCE_SIZE], const char *path, int error);

/* Why the host refused or ended a channel, from its entry. */
void shim_sentence_of_channel(
	char text[SHIM_SENTENCE_SIZE], const struct vgpu_channel_entry *entry);

/* Why the file of the kernel's driver cannot be opened: -errno. */
void shim_sentence_of_driver(char text[SHIM_SENTENCE_SIZE], const char *path, int error);

/* What to do when vgpud does not answer, and when the device is gone. */
extern const char shim_sentence_no_answer[];
extern const char shim_sentence_removed[];
