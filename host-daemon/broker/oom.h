/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Oom: workers that the kernel has ended because their control group was out of memory
 *
 * The kernel counts them for each group, and says of none why it has ended. So of the
 * workers of a group that were killed, and not by vgpud, as many were ended for lack of
 * memory as the count has grown. How many of them are noted is in the section's totals,
 * for the next broker.
 */

struct worker;

/*
 * A worker with a channel has exited: notes the reason if it was that.
 *
 * @status:	as of waitpid(), or LINK_STATUS_UNKNOWN
 */
void oom_note_exit(const struct worker *worker, int status);
