/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pool: the workers, and the channels that wait for one
 */

#include <stdint.h>

struct broker;
struct worker_pool;

void pool_init(struct worker_pool *pool);

/* Gives warm workers to channels that wait, and asks for as many as are missing. */
void pool_update(struct broker *broker);

/* The keeper could not start a worker, with -errno. Where the host is short of something
 * channels wait for it; else they are refused. */
void pool_handle_no_worker(struct broker *broker, int error);

/* A worker died early, or has no driver: channels that wait are refused. */
void pool_handle_failure(struct broker *broker, uint32_t reason);
