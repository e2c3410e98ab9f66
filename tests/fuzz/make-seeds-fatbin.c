/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeds of the fuzz target fatbin: make-seeds-fatbin FOLDER
 */

#include <stdio.h>
#include <stdlib.h>

#include "fatbin/fatbin.h"
#include "fatbin/test-builder.h"

static const char text[] =
	".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k()\n{ ret; }\n";

static void write_seed(
	const char *folder, const char *name, const struct builder *builder)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "wb");
	if (!file || fwrite(builder->bytes, 1, builder->size, file) != builder->size ||
		fclose(file)) {
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
	write_seed(folder, name, &builder);
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
	write_seed(folder, "many", &builder);
	builder_deinit(&builder);
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
	return EXIT_SUCCESS;
}
