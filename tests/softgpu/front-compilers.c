/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the front end on what compilers write
 *
 * front-kernels.cu is compiled when the test runs: by clang for several
 * architectures and levels of optimisation, and, where there is one, by nvcc into
 * fatbins of every compression. All of it must parse, and every instruction must be
 * one that is decoded.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/image.h"
#include "ptx/module.h"
#include "test.h"

static char *read_all(const char *path, size_t *sizep)
{
	FILE *file = fopen(path, "rb");
	char *bytes;
	long size;

	check(file);
	check(!fseek(file, 0, SEEK_END));
	size = ftell(file);
	check(size > 0);
	rewind(file);
	bytes = malloc(size);
	check(fread(bytes, 1, size, file) == (size_t)size);
	fclose(file);
	*sizep = size;
	return bytes;
}

/* Returns: whether the compiler did it; its words go to the test's log. */
static bool run(const char *format, ...) __attribute__((__format__(__printf__, 1, 2)));

static bool run(const char *format, ...)
{
	char command[8192];
	va_list ap;

	va_start(ap, format);
	vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	return system(command) == 0;
}

static void check_module(const char *text, size_t size, const char *what)
{
	const struct ptx_body *body;
	struct ptx_module *module;
	struct ptx_error error;
	uint32_t n_instrs = 0;

	if (ptx_module_new(&module, text, size, 121, &error))
		test_fail(
			__FILE__, __LINE__, "%s:%u: %s", what, error.line, error.message);
	for (uint32_t i = 0; i < module->n_functions; i++) {
		if (!module->functions[i].is_defined)
			continue;
		if (ptx_function_parse(module, i, &error))
			test_fail(__FILE__, __LINE__, "%s:%u: %s", what, error.line,
				error.message);
		body = module->functions[i].body;
		n_instrs += body->n_instrs;
		if (body->first_unsupported != PTX_INDEX_NONE)
			test_fail(__FILE__, __LINE__, "%s: %s", what,
				ptx_instr_name(
					body, &body->instrs[body->first_unsupported]));
	}
	check(n_instrs > 100);
	check(ptx_module_find_function(module, "everything") != PTX_INDEX_NONE);
	check(ptx_module_find_function(module, "add") != PTX_INDEX_NONE);
	check(module->n_relocs > 0);
	ptx_module_free(module);
}

static void check_file(const char *path, const char *what)
{
	struct softgpu_image image;
	size_t size;
	char *bytes = read_all(path, &size);

	check_eq(softgpu_image_select(bytes, size, 121, 0, &image), 0);
	check_module(image.text, image.size, what);
	softgpu_image_deinit(&image);
	free(bytes);
}

TEST(clang_output_parses)
{
	static const char *const archs[] = { "sm_35", "sm_60", "sm_75" };
	char path[256], what[64];

	if (!*CLANG)
		test_skip("there is no clang");
	snprintf(path, sizeof(path), "%s/kernels.ptx", test_tmpdir());
	for (size_t i = 0; i < sizeof(archs) / sizeof(*archs); i++) {
		for (int level = 0; level <= 2; level += 2) {
			snprintf(
				what, sizeof(what), "clang -O%d for %s", level, archs[i]);
			if (!run(CLANG " -x cuda --cuda-device-only -nocudainc "
				       "-nocudalib -w "
				       "-S -O%d --cuda-gpu-arch=%s " KERNELS " -o %s",
				    level, archs[i], path))
				test_fail(__FILE__, __LINE__, "%s did not work", what);
			check_file(path, what);
		}
	}
}

/* Each option of --compress-mode is a different packing, and so is debug information. */
TEST(nvcc_fatbins_are_unpacked_and_parsed)
{
	static const char *const options[] = {
		"--compress-mode=none -gencode arch=compute_75,code=compute_75",
		"--compress-mode=speed -gencode arch=compute_90,code=compute_90",
		"--compress-mode=size -lineinfo -gencode "
		"arch=compute_120,code=compute_120 "
		"-gencode arch=compute_75,code=compute_75",
	};
	char path[256];

	if (!*NVCC)
		test_skip("there is no nvcc");
	snprintf(path, sizeof(path), "%s/kernels.fatbin", test_tmpdir());
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		if (!run("TMPDIR=%s " NVCC " -fatbin -w %s " KERNELS " -o %s",
			    test_tmpdir(), options[i], path))
			test_fail(__FILE__, __LINE__, "nvcc %s did not work", options[i]);
		check_file(path, options[i]);
	}
}
