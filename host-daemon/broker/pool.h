/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pool: the warm workers, and the channels that wait for one
 */

#include <stdint.h>

struct broker;
struct worker_pool;

void pool_init(struct worker_pool *pool);

/* Assigns warm workers to waiting channels, and requests missing ones. */
void pool_update(struct broker *broker);

/* The keeper could not start a worker: -errno. Channels wait if the host lacks a
 * resource; otherwise they are refused. */
void pool_handle_no_worker(struct broker *broker, int error);

/* A worker died early, or has no driver: refuses waiting channels. */
void pool_handle_failure(struct broker *broker, uint32_t reason);
