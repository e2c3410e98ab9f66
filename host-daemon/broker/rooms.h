/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rooms: what all workers may have on the device, of device-memory-total
 */

struct broker;

/* Looks at what all workers say; when one has said something new, or is gone. */
void rooms_look(struct broker *broker);

/* Ends workers that are seen to have more than they may; after each look of the quota
 * watch. */
void rooms_watch(struct broker *broker);
