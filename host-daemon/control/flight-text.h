/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Flight recorder as text
 *
 * A worker is assumed to be compromised by its guest, so each number is checked, only
 * printable characters are passed on, and any bytes give some line.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/flight.h"
#include "vgpu/cuda.h"

/* A longer line is cut. */
#define FLIGHT_LINE_MAX 400u

/* When a recorder is read, by the time-stamp counter and by CLOCK_MONOTONIC. */
struct flight_time {
	uint64_t ticks;
	uint64_t ns;
};

void flight_time_now(struct flight_time *time);

/*
 * Puts entries into the order of their numbers, the last one last; those without a number
 * are left out.
 *
 * Return: how many there are.
 */
size_t flight_order(const struct flight_call calls[FLIGHT_CALLS],
	const struct flight_call *order[FLIGHT_CALLS]);

/*
 * Writes a line about a call, without a newline: its number, how long ago it was, the
 * lane, the call with the fields of its message, the result.
 *
 * @flight:	has the names of functions
 */
void flight_format(const struct flight *flight, const struct flight_call *call,
	const struct flight_time *now, char line[FLIGHT_LINE_MAX]);

/* Return: the name of a CUresult, or its number, written to `text`. */
const char *flight_result(int32_t result, char text[32]);

/* Whether a result means a broken context rather than a failed call. */
static inline bool flight_is_fault(int32_t result)
{
	switch (result) {
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_UNKNOWN:
		return true;
	default:
		return false;
	}
}
