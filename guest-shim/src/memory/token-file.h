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

struct shim_token {
	uint32_t kind;	/* enum shim_token_kind */
	int32_t device; /* of a pool: the host's number */
	uint8_t bytes[SHIM_TOKEN_SIZE];
};

/* Return: a descriptor, which is the caller's, or -1. */
int shim_token_file_new(const struct shim_token *token);

/* Return: false for anything but a token of that kind. */
bool shim_token_file_read(int fd, enum shim_token_kind kind, struct shim_token *token);
