/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Notices: functions of the program that are called when it is over its memory budget
 *
 * The budget is the VM's quota of device memory. A thread, started at the first
 * registration, waits at the host for the next time that the quota is lowered below the
 * VM's use, and then calls all functions that are registered by then, one after the
 * other, in the order of their registration. It is not the thread of other callbacks: a
 * function may free memory, and so wait for a stream that waits for a callback.
 *
 * Nothing is called once the registration has ended. So ending it waits for a call that
 * is under way; from such a call it is refused, as in CUDA.
 */

#include <stdbool.h>

#include "vgpu/cuda.h"

/* Registrations at a time. CUDA's manual lets each function take some 10 ms, so the last
 * of this many is called ten seconds after the first. */
#define SHIM_NOTICES_MAX 1024u

/* Whether the calling thread runs a function that is registered here. */
bool shim_notice_is_running_here(void);

/* Whether there is room for another registration. */
bool shim_notice_has_room(void);

/*
 * Registers a function. The host has to be armed already.
 *
 * Return: CUDA_ERROR_OUT_OF_MEMORY beyond SHIM_NOTICES_MAX, or without a thread.
 */
CUresult shim_notice_add(CUdevice device, CUasyncCallback function, void *data,
	CUasyncCallbackHandle *handlep);

/* Return: CUDA_ERROR_INVALID_VALUE if that is not registered for the device. */
CUresult shim_notice_remove(CUdevice device, CUasyncCallbackHandle handle);
