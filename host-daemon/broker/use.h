/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Use: what the guest processes of a VM do on each device
 */

#include <stdint.h>

struct account;
struct broker;
struct worker;

/* Reads what each worker with a session does, by vgpud's clock of the page. */
void use_sample(struct broker *broker, uint64_t now_us);

/* Writes the processes of a section into the broker's status, and adds their use to the
 * devices there. */
void use_fill(struct broker *broker, const struct account *account);

/* How busy a worker keeps the device that it uses most. Return: per cent, or
 * VGPU_STATUS_UNKNOWN. */
uint32_t use_utilisation(const struct broker *broker, const struct worker *worker);

/* Device memory that NVIDIA's card has noted for a worker. Return: bytes, 0: unknown. */
uint64_t use_memory_seen(const struct broker *broker, const struct worker *worker);

/* Reads what a worker with a session says of itself, and notes its faults in the history
 * of its VM. Also before such a worker is forgotten. */
void use_look(struct worker *worker);
