/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Doorbell: an eventfd shared with the guest's side
 *
 * O_NONBLOCK is a flag of the shared file description, so the other side can clear it. It
 * can also read the counter between poll() and read() here.
 */

/* Resets the counter, and never blocks. Return: 0 or -errno. */
int doorbell_take(int fd);
