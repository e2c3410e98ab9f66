/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Doorbell: an eventfd that a guest's side holds too
 *
 * Whether reading it sleeps is a property of what both sides share, so the other side
 * decides it. And it may read too, between our poll and our read.
 */

/* Takes all rings, if there are any, and never sleeps. Return: 0 or -errno. */
int doorbell_take(int fd);
