/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Printing: whether code that a guest loads may print
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;

/* Checks whether code that is about to be loaded may print, and sets a flag in the
 * control page for the guest then. Return: true if it certainly does not print. */
bool printing_note(struct session *session, const uint8_t *bytes, size_t size);
