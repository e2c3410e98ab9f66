/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Removal: what happens to threads of a process whose device is taken away
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * Puts empty memory in the place of shared memory that the kernel has taken back, when a
 * thread next touches it, instead of ending the process with SIGBUS. What is written
 * there reaches nobody. A program that handles SIGBUS itself gets the signals of other
 * addresses if it did so before, and all of them if it does so later.
 *
 * @removed:	set to true then
 */
void shim_removal_watch(uint64_t address, uint64_t size, bool *removed);

/* Ends that for the place at the address, before others use it. */
void shim_removal_forget(uint64_t address);
