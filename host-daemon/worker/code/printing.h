/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether code that a guest loads may print
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;

/* Checks whether code that is about to be loaded may print, and notifies the guest.
 * Return: whether it certainly does not. */
bool printing_note(struct session *session, const uint8_t *bytes, size_t size);
