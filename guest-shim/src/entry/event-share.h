/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Interprocess events
 *
 * Each has a place of 64 words in device memory that its processes share: the number of
 * its last record, and the numbers of records that are complete. To record it is to give
 * it the next number, before the call returns, and to have the stream write that number
 * when its work is done; to wait for it is to wait for the number that it has. Record n
 * writes word 1 + n mod 63, after record n - 63, so that a word only grows.
 *
 * All of it is done by copies and stream memory operations like those of any program, so
 * a process whose event another one waits for is needed until that record is complete.
 */

#include "vgpu/cuda.h"

struct shim_event_share;

/* Makes the state of a new event, which is not recorded yet. The context is current.
 * Return: CUDA_ERROR_NOT_SUPPORTED if the device cannot share memory. */
CUresult shim_event_share_new(struct shim_event_share **sharep);
void shim_event_share_free(struct shim_event_share *share);

/* A handle for other processes, and the state of an event by such a handle. */
CUresult shim_event_share_export(
	const struct shim_event_share *share, CUipcEventHandle *handle);
CUresult shim_event_share_import(
	const CUipcEventHandle *handle, struct shim_event_share **sharep);

CUresult shim_event_share_record(struct shim_event_share *share, CUstream stream);
CUresult shim_event_share_wait(struct shim_event_share *share, CUstream stream);
CUresult shim_event_share_query(struct shim_event_share *share);
CUresult shim_event_share_synchronize(struct shim_event_share *share);
