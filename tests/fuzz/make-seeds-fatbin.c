/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeds of the fuzz target fatbin: make-seeds-fatbin FOLDER
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/fatbin.h"
#include "fatbin/standin.h"
#include "fatbin/test-builder.h"

static const char text[] =
	".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k()\n{ ret; }\n";

static void write_seed(
	const char *folder, const char *name, const uint8_t *bytes, size_t size)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "wb");
	if (!file || fwrite(bytes, 1, size, file) != size || fclose(file)) {
		perror(path);
		exit(EXIT_FAILURE);
	}
}

static void seed_of_one(
	const char *folder, const char *name, enum builder_packing packing)
{
	struct builder builder;

	builder_init(&builder);
	builder_add(&builder, FATBIN_KIND_PTX, 50, 0, 70, packing, text);
	builder_close(&builder);
	write_seed(folder, name, builder.bytes, builder.size);
	builder_deinit(&builder);
}

static void seed_of_many(const char *folder)
{
	struct builder builder;

	builder_init(&builder);
	builder_add(&builder, FATBIN_KIND_CUBIN, 75, 0, 18, BUILDER_PLAIN, "\177ELF");
	builder_add(&builder, FATBIN_KIND_PTX, 75, 0, 90, BUILDER_ZSTD, text);
	builder_add(
		&builder, FATBIN_KIND_PTX, 90, FATBIN_FLAG_ARCH, 90, BUILDER_LZ4, text);
	builder_add(&builder, FATBIN_KIND_PTX, 120, FATBIN_FLAG_FAMILY, 90, BUILDER_PLAIN,
		text);
	builder_close(&builder);
	write_seed(folder, "many", builder.bytes, builder.size);
	builder_deinit(&builder);
}

/* A container of a file that ptxas, or its stand-in, wrote. */
static void seed_of_file(const char *folder, const char *name,
	enum builder_packing packing, const uint8_t *bytes, size_t size)
{
	struct builder builder;

	builder_init(&builder);
	builder_add_bytes(&builder, FATBIN_KIND_CUBIN, 90, 0, 18, packing, bytes, size);
	builder_close(&builder);
	write_seed(folder, name, builder.bytes, builder.size);
	builder_deinit(&builder);
}

static void seed_of_standin(const char *folder)
{
	uint8_t *bytes;
	size_t size;

	if (standin_new(90, text, strlen(text), "k\n", &bytes, &size)) {
		perror("standin");
		exit(EXIT_FAILURE);
	}
	write_seed(folder, "standin", bytes, size);
	seed_of_file(folder, "standin-plain", BUILDER_PLAIN, bytes, size);
	seed_of_file(folder, "standin-lz4", BUILDER_LZ4, bytes, size);
	seed_of_file(folder, "standin-zstd", BUILDER_ZSTD, bytes, size);
	free(bytes);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return EXIT_FAILURE;
	}
	seed_of_one(argv[1], "plain", BUILDER_PLAIN);
	seed_of_one(argv[1], "lz4", BUILDER_LZ4);
	seed_of_one(argv[1], "zstd", BUILDER_ZSTD);
	seed_of_many(argv[1]);
	seed_of_standin(argv[1]);
	return EXIT_SUCCESS;
}
