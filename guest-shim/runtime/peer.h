/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Access of the current device to the memory of others
 */

int rt_peer_enable(int peer, unsigned int flags);
int rt_peer_disable(int peer);
