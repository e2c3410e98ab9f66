/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Event: sets of events
 */

/* Frees the sets that the program has not freed. When the library is released. */
void nvml_event_release(void);

/* Around a fork: the child's list is not that of a moment in a change. */
void nvml_event_before_fork(void);
void nvml_event_after_fork(void);
