/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Boot: which kernel the guest runs, by the boot id that its processes say
 */

#include <stdbool.h>
#include <stdint.h>

struct vm;

/*
 * Notes what a process of the guest said its kernel is. A kernel that was not seen before
 * ends the channels of the last one.
 */
void boot_note(struct vm *vm, const uint8_t boot_id[16]);

/* The same for what the header says now. */
void boot_note_header(struct vm *vm);

/* Whether the header names the guest's kernel, which then speaks for all processes. */
bool boot_is_known(const struct vm *vm);
