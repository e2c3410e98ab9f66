/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Token file: the descriptor that a program passes to another process to share memory
 *
 * To the program it is opaque, as NVIDIA's is. It is a small file in memory with a token,
 * by which the host finds the memory; the memory itself is not in the guest.
 */

#include <stdbool.h>
#include <stdint.h>

#define SHIM_TOKEN_SIZE 16

/* What the token stands for. */
enum shim_token_kind {
	SHIM_TOKEN_MEMORY = 1, /* made by cuMemCreate */
	SHIM_TOKEN_POOL,
};

/* Return: a descriptor, which is the caller's, or -1. */
int shim_token_file_new(enum shim_token_kind kind, const uint8_t token[SHIM_TOKEN_SIZE]);

/* Return: false for anything but a token of that kind. */
bool shim_token_file_read(
	int fd, enum shim_token_kind kind, uint8_t token[SHIM_TOKEN_SIZE]);
