/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Device time: tells the arbiter which workers there are, and which devices they share
 *
 * What works at the same time are threads of softgpu, whatever device they work for, or
 * NVIDIA's devices, each of which is shared apart. Workers of different device sets have
 * different numbers for one device, which is known by its UUID.
 */

struct broker;
struct channel;
struct worker;
struct worker_devices;

/* The devices of a worker that is ready and has no guest yet. */
void device_time_learn(struct broker *broker, const struct worker_devices *devices);

/* A worker has a session, of this broker or the last one. Without memory for it the
 * worker has as much of the device's time as it can get. */
void device_time_share(const struct channel *channel, struct worker *worker);
