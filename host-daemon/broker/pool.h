/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pool: the warm workers, and the channels that wait for one
 */

#include <stdint.h>

struct broker;
struct device_set;
struct worker_pool;

void pool_init(struct worker_pool *pool);

/* Assigns warm workers to waiting channels, and requests missing ones. */
void pool_update(struct broker *broker);

/* Whether the keeper was asked for workers that have not started yet. */
bool pool_is_starting(const struct broker *broker);

/* The keeper could not start a worker: -errno. Channels wait if the host lacks a
 * resource; otherwise they are refused. */
void pool_handle_no_worker(struct device_set *set, int error);

/* A worker died early, or has no driver: refuses the channels that wait for such
 * a one. */
void pool_handle_failure(struct device_set *set, uint32_t reason);
