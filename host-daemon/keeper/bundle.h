/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bundle: a socket that has one message with many descriptors in its queue
 *
 * Who keeps the socket keeps all of them, with what the message says about them, and
 * loses all of them at once. The message is read without being removed.
 */

#include <stddef.h>
#include <stdint.h>

/* The kernel takes 253 in a message. */
#define BUNDLE_FDS_MAX 250

struct bundle_label {
	uint32_t magic;
	uint32_t number;   /* unique; the later one of two has the greater number */
	uint64_t identity; /* what it is about */
	uint64_t key;	   /* of what it says */
};

/* Makes one; the descriptors stay the caller's. Return: its socket, or -errno. */
int bundle_make(const struct bundle_label *label, const int *fds, size_t n_fds);

/* Reads the label alone. Return: 0 or -errno: it is none. */
int bundle_read_label(int bundle, struct bundle_label *label);

/*
 * Duplicates the descriptors.
 *
 * @fds:	room for BUNDLE_FDS_MAX
 *
 * Return: 0 or -errno; then none of them is open.
 */
int bundle_open(int bundle, int *fds, size_t *n_fdsp);
