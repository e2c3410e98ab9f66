/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Status: what the broker publishes about the GPUs of each VM (vgpu/status.h)
 */

struct broker;
struct vm;
struct worker;

/* The devices of a set, from a worker that is ready and has no guest yet. */
void status_learn(const struct worker *worker);

/*
 * The page of sensors, from the keeper.
 *
 * @fd:	takes ownership in any case
 *
 * Return: 0 or -errno.
 */
int status_use_sensors(struct broker *broker, int fd);

/* Renews the status in all VMs, at a limited rate. */
void status_renew(struct broker *broker);

/* Shows a VM that has just connected what is known so far: over the socket transport that
 * is a process, which may only want to look. */
void status_show(struct broker *broker, struct vm *vm);

void status_deinit(struct broker *broker);
