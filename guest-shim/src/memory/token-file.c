/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Token file: the descriptor that a program passes to another process to share memory
 */

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vgpu/cleanup.h"

#include "memory/token-file.h"

/* The whole file. Programs of another build of this library may read it. */
struct contents {
	char magic[8];
	uint32_t version;
	struct shim_token token;
};

static const char magic[8] = "vGPUtokn";

#define VERSION 1u

int shim_token_file_new(const struct shim_token *token)
{
	struct contents contents = { .version = VERSION, .token = *token };
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	int taken;

	memcpy(contents.magic, magic, sizeof(magic));
	fd = memfd_create("vgpu-token", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || write(fd, &contents, sizeof(contents)) != sizeof(contents) ||
		fcntl(fd, F_ADD_SEALS,
			F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return -1;
	taken = fd;
	fd = -1;
	return taken;
}

bool shim_token_file_read(int fd, enum shim_token_kind kind, struct shim_token *token)
{
	struct contents contents;

	/* Only of a file that cannot change: a pipe, or a device, might block. */
	if (fcntl(fd, F_GET_SEALS) < 0 ||
		pread(fd, &contents, sizeof(contents), 0) != sizeof(contents) ||
		memcmp(contents.magic, magic, sizeof(magic)) ||
		contents.version != VERSION || contents.token.kind != (uint32_t)kind)
		return false;
	*token = contents.token;
	return true;
}
