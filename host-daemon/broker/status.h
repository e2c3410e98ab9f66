/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Status: what the broker publishes about the GPUs of each VM (vgpu/status.h)
 */

#include <stdbool.h>

struct broker;
struct worker;

/* The devices of the host, from a worker that is ready and has no guest yet. */
void status_learn(struct broker *broker, const struct worker *worker);
bool status_is_known(const struct broker *broker);

/* Renews the status in all VMs, at a limited rate. */
void status_renew(struct broker *broker);

void status_deinit(struct broker *broker);
