/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver: a libcuda-compatible library opened by path
 */

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "driver/driver.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"
#include "vgpu/note.h"

static void close_library(void *library)
{
	dlclose(library);
}

VGPU_DEFINE_CLEANUP(void *, close_library);

/* Notes and logs why a library will not do. */
static void __attribute__((__format__(__printf__, 2, 3)))
note_why(struct driver *driver, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(driver->why, sizeof(driver->why), format, ap);
	va_end(ap);
	vgpu_log_info("%s", driver->why);
}

static int refuse_ours(struct driver *driver, const char *path)
{
	char text[64];

	if (vgpu_note_read_path(path, text, sizeof(text)))
		return 0;
	note_why(driver,
		"the driver library %s is vGPU's own for guests (%s): not loaded", path,
		text);
	return DRIVER_E_OURS;
}

int driver_open(struct driver *driver, const char *path,
	const struct softgpu_config *softgpu, CUresult *initp)
{
	_vgpu_cleanup_(close_libraryp) void *library = NULL;
	int r;

	memset(driver, 0, sizeof(*driver));
	r = refuse_ours(driver, path);
	if (r)
		return r;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		note_why(driver, "the driver library %s cannot be loaded: %s", path,
			dlerror());
		return DRIVER_E_ABSENT;
	}
	vgpu_driver_resolve(&driver->table, library);
	if (!driver->table.cuInit) {
		note_why(
			driver, "the library %s has no cuInit: it is not a driver", path);
		return DRIVER_E_ABSENT;
	}
	*(void **)&driver->configure = dlsym(library, "softgpu_configure");
	*(void **)&driver->set_window = dlsym(library, "softgpu_set_window");
	*(void **)&driver->export = dlsym(library, "softgpu_export");
	*(void **)&driver->list_memory = dlsym(library, "softgpu_list_memory");
	*(void **)&driver->drop_memory = dlsym(library, "softgpu_drop_memory");
	*(void **)&driver->has_memory = dlsym(library, "softgpu_has_memory");
	*(void **)&driver->limit_launches = dlsym(library, "softgpu_limit_launches");
	*(void **)&driver->trace = dlsym(library, "softgpu_trace");
	if (driver->configure && driver->configure(softgpu))
		vgpu_log_warning(
			"the driver library %s refuses the identity configured", path);
	snprintf(driver->path, sizeof(driver->path), "%s", path);
	library = NULL;

	*initp = driver->table.cuInit(0);
	if (*initp != CUDA_SUCCESS) {
		note_why(driver,
			"the driver library %s does not start: cuInit returns CUDA error "
			"%d",
			path, *initp);
		return DRIVER_E_NO_INIT;
	}
	return 0;
}
