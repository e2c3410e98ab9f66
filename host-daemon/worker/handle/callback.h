/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Callbacks: their handlers' interface to other files
 */

struct call;

/* Returns a callback that was refused in a call without a reply to the guest. */
void callback_give_back(struct call *call);
