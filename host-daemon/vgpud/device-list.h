/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Device list: which devices a VM has, and in which order
 *
 * Entries with commas, as in CUDA_VISIBLE_DEVICES: the index of a device in the order of
 * PCI addresses, GPU-UUID or the beginning of one, or MIG-UUID. CUDA shows a process one
 * MIG instance and no other device with it.
 */

#include <stddef.h>

/* Longest list with its NUL: a line of the configuration has no room for more. */
#define DEVICE_LIST_MAX 192u

/*
 * Checks a list, and writes it without blanks, with UUIDs in small letters.
 *
 * @reason:	on failure a sentence
 *
 * Return: 0 or -EINVAL.
 */
int device_list_parse(const char *text, char list[static DEVICE_LIST_MAX], char *reason,
	size_t reason_size);

/* Return: the number of entries of a list that was parsed. */
unsigned int device_list_count(const char *list);
