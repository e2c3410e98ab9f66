/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Journal: log messages as entries of systemd's journal, with fields
 */

/*
 * Sends further messages of this process to the journal, if standard error is connected
 * to it, and else to standard error. To be called again after that was replaced.
 */
void journal_use(void);

/* The same for a socket of the journal that is at another path, without a condition.
 * Return: 0 or -errno. */
int journal_open(const char *path);
