/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device: its identity, memory and threads
 *
 * Identity comes from softgpu_configure(), else from the environment, else from the
 * defaults below, and is fixed by cuInit. Memory comes with the first
 * context: a worker learns its address window only after it has been started.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/error.h"
#include "vgpu/log.h"

#include "api/api.h"

/* Lines about watched kernels that a process may cause in the log. */
#define DEVICE_FINDINGS_MAX 100u

#define DEVICE_NAME "vGPU softgpu (CPU)"
#define DEVICE_CC 121
#define DEVICE_MEMORY (4ull << 30)
#define DEVICE_MEMORY_MIN (1ull << 20)
#define DEVICE_MEMORY_MAX (1ull << 40)
#define DEVICE_THREADS_MAX SCHED_THREADS_MAX
#define DEVICE_TIMEOUT_MS 0

/*
 * Default number of kernel threads: one for each CPU, up to this. Every process of a VM
 * has its own device, so many processes have many times as many.
 */
#define DEVICE_THREADS_DEFAULT_MAX 16

struct device softgpu_device = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The process in which cuInit was called; another one is a child after fork. */
static pid_t device_process;

CUresult device_check(void)
{
	pid_t process = __atomic_load_n(&device_process, __ATOMIC_ACQUIRE);

	return process > 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult device_get(CUdevice number)
{
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (number < 0 || (uint32_t)number >= softgpu_device.n_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	return CUDA_SUCCESS;
}

/* The threads of the scheduler do not exist in a child: refuse everything. */
static void device_forked(void)
{
	__atomic_store_n(&device_process, -1, __ATOMIC_RELEASE);
}

/*
 * Identity
 */

/* Return: whether the text is a size such as "4G". */
static bool device_parse_size(const char *text, uint64_t *sizep)
{
	unsigned long long value;
	unsigned int shift = 0;
	char *end;

	value = strtoull(text, &end, 10);
	if (end == text)
		return false;
	if (*end == 'K' || *end == 'k')
		shift = 10;
	else if (*end == 'M' || *end == 'm')
		shift = 20;
	else if (*end == 'G' || *end == 'g')
		shift = 30;
	else if (*end)
		return false;
	if ((shift && end[1]) || value > UINT64_MAX >> shift)
		return false;
	*sizep = (uint64_t)value << shift;
	return true;
}

/* "12.1" to 121. */
static bool device_parse_cc(const char *text, unsigned int *ccp)
{
	unsigned int major, minor;
	char rest;

	if (sscanf(text, "%2u.%1u%c", &major, &minor, &rest) != 2)
		return false;
	*ccp = 10 * major + minor;
	return true;
}

static bool device_set_cc(unsigned int cc)
{
	if (cc < 50 || cc > 999)
		return false;
	softgpu_device.cc = cc;
	return true;
}

static bool device_set_memory(uint64_t size)
{
	if (size < DEVICE_MEMORY_MIN || size > DEVICE_MEMORY_MAX)
		return false;
	softgpu_device.total_memory = size / SOFTGPU_PAGE_SIZE * SOFTGPU_PAGE_SIZE;
	return true;
}

static bool device_set_threads(uint64_t n)
{
	if (!n || n > DEVICE_THREADS_MAX)
		return false;
	softgpu_device.n_threads = n;
	return true;
}

static bool device_set_number(uint64_t n)
{
	if (!n || n > MEMORY_DEVICES_MAX)
		return false;
	softgpu_device.n_devices = n;
	return true;
}

static bool device_set_name(const char *name)
{
	if (!*name || strlen(name) >= sizeof(softgpu_device.name))
		return false;
	strcpy(softgpu_device.name, name);
	return true;
}

static bool device_set_visible(const char *list)
{
	if (strlen(list) >= sizeof(softgpu_device.visible))
		return false;
	strcpy(softgpu_device.visible, list);
	return true;
}

static bool device_set_schedule(uint32_t schedule)
{
	if (schedule != SOFTGPU_CONFIG_LONG && schedule != SOFTGPU_CONFIG_FAIR)
		return false;
	softgpu_device.schedule = schedule;
	return true;
}

static bool device_parse_schedule(const char *text)
{
	return device_set_schedule(!strcmp(text, "long")   ? SOFTGPU_CONFIG_LONG
				   : !strcmp(text, "fair") ? SOFTGPU_CONFIG_FAIR
							   : 0);
}

/* A list with commas, or yes or no. */
static bool device_set_check(const char *text)
{
	static const struct {
		const char *word;
		bool is_memory;
		unsigned int kind;
	} words[] = {
		{ "no", false, 0 },
		{ "0", false, 0 },
		{ "yes", true, 0 },
		{ "1", true, 0 },
		{ "memory", true, 0 },
		{ "race", false, SOFTGPU_CHECK_RACES },
		{ "uninitialised", false, SOFTGPU_CHECK_UNWRITTEN },
		{ "fatal", false, SOFTGPU_CHECK_FATAL },
	};
	struct device *device = &softgpu_device;

	device->is_checked = false;
	device->checks.kinds = 0;
	for (;;) {
		size_t n = strcspn(text, ","), i = 0;

		while (i < sizeof(words) / sizeof(words[0]) &&
			(strlen(words[i].word) != n || strncmp(words[i].word, text, n)))
			i++;
		if (i == sizeof(words) / sizeof(words[0]))
			return false;
		device->is_checked |= words[i].is_memory;
		device->checks.kinds |= words[i].kind;
		if (!text[n])
			return true;
		text += n + 1;
		text += strspn(text, " ");
	}
}

/* Each instruction has one of each kind at most, but a guest may have many. */
static void device_report(void *data, const struct softgpu_fault *finding)
{
	static uint32_t n_reported; /* atomic */
	uint32_t n = __atomic_load_n(&n_reported, __ATOMIC_RELAXED);

	do {
		if (n > DEVICE_FINDINGS_MAX)
			return;
	} while (!__atomic_compare_exchange_n(
		&n_reported, &n, n + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	if (n < DEVICE_FINDINGS_MAX)
		vgpu_log_error("softgpu-check: %s", finding->text);
	else
		vgpu_log_error("softgpu-check: more is not logged, after %u findings", n);
}

static void device_read_environment(void)
{
	const char *cc = getenv("VGPU_SOFTGPU_CC");
	const char *memory = getenv("VGPU_SOFTGPU_MEMORY");
	const char *threads = getenv("VGPU_SOFTGPU_THREADS");
	const char *name = getenv("VGPU_SOFTGPU_NAME");
	const char *timeout = getenv("VGPU_SOFTGPU_TIMEOUT");
	const char *launch = getenv("VGPU_SOFTGPU_LAUNCH_TIMEOUT");
	const char *devices = getenv("VGPU_SOFTGPU_DEVICES");
	const char *schedule = getenv("VGPU_SOFTGPU_SCHEDULE");
	const char *check = getenv("VGPU_SOFTGPU_CHECK");
	struct device *device = &softgpu_device;
	unsigned int number;
	uint64_t size;

	if (cc && !device->cc && !(device_parse_cc(cc, &number) && device_set_cc(number)))
		vgpu_log_warning("VGPU_SOFTGPU_CC=%s is not a compute capability", cc);
	if (memory && !device->total_memory &&
		!(device_parse_size(memory, &size) && device_set_memory(size)))
		vgpu_log_warning("VGPU_SOFTGPU_MEMORY=%s is not a possible size", memory);
	if (threads && !device->n_threads &&
		!device_set_threads(strtoul(threads, NULL, 10)))
		vgpu_log_warning("VGPU_SOFTGPU_THREADS=%s is not 1 to %d", threads,
			DEVICE_THREADS_MAX);
	if (name && !*device->name && !device_set_name(name))
		vgpu_log_warning("VGPU_SOFTGPU_NAME is empty or too long");
	if (devices && !device->n_devices &&
		!device_set_number(strtoul(devices, NULL, 10)))
		vgpu_log_warning("VGPU_SOFTGPU_DEVICES=%s is not 1 to %u", devices,
			MEMORY_DEVICES_MAX);
	if (schedule && !device->schedule && !device_parse_schedule(schedule))
		vgpu_log_warning(
			"VGPU_SOFTGPU_SCHEDULE=%s is neither long nor fair", schedule);
	if (check && !device->has_check && !device_set_check(check))
		vgpu_log_warning("VGPU_SOFTGPU_CHECK=%s is not a list of memory, race, "
				 "uninitialised and fatal",
			check);
	if (timeout && !device->timeout_ms)
		device->timeout_ms = strtoul(timeout, NULL, 10);
	if (launch && !device->launch_ms)
		device->launch_ms = strtoul(launch, NULL, 10);
}

/* FNV-1a: the same identity gives the same uuid in every process and at every start. */
static void device_derive_uuid(uint32_t number)
{
	struct device *device = &softgpu_device;
	CUuuid *uuid = &device->uuids[number];
	uint64_t hash = 0xcbf29ce484222325;
	char text[320];
	int n;

	n = snprintf(text, sizeof(text), "%s/%u/%llu/%u", device->name, device->cc,
		(unsigned long long)device->total_memory, device->n_threads);
	if (number)
		n += snprintf(text + n, sizeof(text) - n, "/%u", number);
	for (unsigned int half = 0; half < 2; half++) {
		for (int i = 0; i < n; i++)
			hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3;
		memcpy(uuid->bytes + 8 * half, &hash, 8);
	}
	/* A name-based UUID as RFC 4122 marks them: version 5, variant 1. */
	uuid->bytes[6] = (uuid->bytes[6] & 0x0f) | 0x50;
	uuid->bytes[8] = (uuid->bytes[8] & 0x3f) | 0x80;
}

/* Whether an entry of the list begins a device's UUID. */
static bool device_is_named(const CUuuid *uuid, const char *entry, size_t length)
{
	char text[48];
	int n = snprintf(text, sizeof(text), "GPU-");

	for (int i = 0; i < 16; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			(uint8_t)uuid->bytes[i]);
	return length > 4 && !strncmp(text, entry, length);
}

/* Return: the device of an entry, or n_devices. */
static uint32_t device_of_entry(const char *entry, size_t length)
{
	const struct device *device = &softgpu_device;
	uint32_t number = 0;
	char *end;

	if (*entry >= '0' && *entry <= '9') {
		const unsigned long index = strtoul(entry, &end, 10);

		return end == entry + length && index < device->n_devices
			       ? (uint32_t)index
			       : device->n_devices;
	}
	while (number < device->n_devices &&
		!device_is_named(&device->uuids[number], entry, length))
		number++;
	return number;
}

/* Devices differ by their UUIDs and places only. */
static void device_choose(const char *list)
{
	struct device *device = &softgpu_device;
	CUuuid uuids[MEMORY_DEVICES_MAX];
	uint32_t n = 0;

	while (n < MEMORY_DEVICES_MAX) {
		const size_t length = strcspn(list, ",");
		const uint32_t number = device_of_entry(list, length);

		if (number == device->n_devices)
			break;
		uuids[n] = device->uuids[number];
		device->places[n++] = number;
		if (!list[length])
			break;
		list += length + 1;
	}
	memcpy(device->uuids, uuids, n * sizeof(*uuids));
	device->n_devices = n;
}

static void device_complete(void)
{
	struct device *device = &softgpu_device;
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!*device->name)
		device_set_name(DEVICE_NAME);
	if (!device->cc)
		device_set_cc(DEVICE_CC);
	if (!device->total_memory)
		device_set_memory(DEVICE_MEMORY);
	if (n_cpus > DEVICE_THREADS_DEFAULT_MAX)
		n_cpus = DEVICE_THREADS_DEFAULT_MAX;
	if (!device->n_threads)
		device_set_threads(n_cpus > 0 ? (uint64_t)n_cpus : 1);
	if (!device->timeout_ms)
		device->timeout_ms = DEVICE_TIMEOUT_MS;
	device->checks.report = device_report;
	print_setup(&device->hooks);
	if (!device->n_devices)
		device_set_number(1);
	for (uint32_t i = 0; i < device->n_devices; i++) {
		device->places[i] = i;
		device_derive_uuid(i);
	}
	if (*device->visible)
		device_choose(device->visible);
}

/*
 * Before the first context
 */

void device_explain(const char *text)
{
	const struct device *device = &softgpu_device;

	if (device->explain)
		device->explain(device->explain_data, text, strlen(text));
}

int softgpu_configure(const struct softgpu_config *config)
{
	struct device *device = &softgpu_device;
	int r = 0;

	if (!config || config->size < sizeof(*config))
		return vgpu_error_origin(-EINVAL);
	pthread_mutex_lock(&device->lock);
	if (device_process)
		r = -EBUSY;
	else if ((config->cc && !device_set_cc(config->cc)) ||
		 (config->memory && !device_set_memory(config->memory)) ||
		 (config->n_threads && !device_set_threads(config->n_threads)) ||
		 (config->n_devices && !device_set_number(config->n_devices)) ||
		 (config->schedule && !device_set_schedule(config->schedule)) ||
		 (config->name && !device_set_name(config->name)) ||
		 (config->visible && !device_set_visible(config->visible)) ||
		 (config->check && !device_set_check(config->check)))
		r = -EINVAL;
	if (!r) {
		device->timeout_ms = config->timeout_ms;
		device->has_check = config->check;
		device->hooks.print = config->print;
		device->hooks.print_error = config->print_error;
		device->hooks.data = config->print_data;
		device->explain = config->explain;
		device->explain_data = config->explain_data;
		device->fault = config->fault;
		device->fault_data = config->fault_data;
		device->managed_alloc = config->managed_alloc;
		device->managed_free = config->managed_free;
		device->managed_data = config->managed_data;
		device->memory_fd = config->memory_fd;
		device->memory_offset = config->memory_offset;
		device->memory_size = config->memory_size;
		device->make_file = config->make_file;
		device->make_file_data = config->make_file_data;
		device->allowance = config->allowance;
		/* Known from now on: none. */
		if (device->allowance)
			__atomic_store_n(
				&device->allowance->n_pending, 1, __ATOMIC_RELAXED);
		device->charging = (struct memory_charging){
			.charge = config->charge,
			.refund = config->refund,
			.data = config->charge_data,
		};
	}
	pthread_mutex_unlock(&device->lock);
	return r ? vgpu_error_origin(r) : 0;
}

static bool device_window_is_sane(uint64_t base, uint64_t size)
{
	uint64_t end;

	if (!size)
		return !base;
	return base % SOFTGPU_PAGE_SIZE == 0 && size % SOFTGPU_PAGE_SIZE == 0 &&
	       base >= SOFTGPU_GLOBAL_LOWEST &&
	       !__builtin_add_overflow(base, size, &end) && end <= 1ull << 47;
}

int softgpu_set_window(
	uint64_t base, uint64_t size, uint64_t host_base, uint64_t host_size)
{
	struct device *device = &softgpu_device;
	int r = 0;

	if (!device_window_is_sane(base, size) ||
		!device_window_is_sane(host_base, host_size) ||
		(size && host_size && base < host_base + host_size &&
			host_base < base + size))
		return vgpu_error_origin(-EINVAL);
	pthread_mutex_lock(&device->lock);
	if (device->has_memory) {
		r = -EBUSY;
	} else {
		device->window_base = base;
		device->window_size = size;
		device->host_base = host_base;
		device->host_size = host_size;
	}
	pthread_mutex_unlock(&device->lock);
	return r ? vgpu_error_origin(r) : 0;
}

_Static_assert(SCHED_WORKSPACES *SCHED_WORKSPACE_SIZE <= SOFTGPU_PAGE_SIZE, "fits");

CUresult device_start(void)
{
	struct device *device = &softgpu_device;
	struct range workspaces = {
		.kind = RANGE_DRIVER,
		.size = SOFTGPU_PAGE_SIZE, /* on separate pages */
		.owner = device,
	};
	int r;

	if (!device->has_memory) {
		r = memory_init(&device->memory, device->n_devices, device->total_memory,
			device->window_base, device->window_size, device->host_base,
			device->host_size);
		if (r)
			return CUDA_ERROR_OUT_OF_MEMORY;
		device->memory.is_checked = device->is_checked;
		device->memory.charging = device->charging;
		if (device->checks.kinds & SOFTGPU_CHECK_UNWRITTEN &&
			memory_watch(&device->memory)) {
			memory_deinit(&device->memory);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		device->memory.physicals.fd = device->memory_fd;
		device->memory.physicals.offset = device->memory_offset;
		device->memory.physicals.size = device->memory_size;
		device->memory.physicals.make_file = device->make_file;
		device->memory.physicals.make_file_data = device->make_file_data;
		sched_init(&device->sched, device->n_threads);
		device->sched.allowance = device->allowance;
		device->sched.fault = device->fault;
		device->sched.fault_data = device->fault_data;
		if (device->checks.kinds & SOFTGPU_CHECK_UNWRITTEN)
			memory_space(&device->memory, 0, (1u << device->n_devices) - 1,
				&device->sched.watched);
		r = memory_alloc(&device->memory, &workspaces, &device->sched.workspaces);
		if (r) {
			memory_deinit(&device->memory);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		device->sched.timeout_ns = device->timeout_ms * UINT64_C(1000000);
		device->sched.launch_ns = device->launch_ms * UINT64_C(1000000);
		device->has_memory = true;
	}
	return CUDA_SUCCESS;
}

void softgpu_trace(const struct softgpu_trace *trace)
{
	sched_trace = trace;
}

void softgpu_limit_launches(uint32_t ms)
{
	struct device *device = &softgpu_device;

	pthread_mutex_lock(&device->lock);
	device->launch_ms = ms;
	/* Partner: sched_budget_begin(). */
	__atomic_store_n(
		&device->sched.launch_ns, ms * UINT64_C(1000000), __ATOMIC_RELAXED);
	pthread_mutex_unlock(&device->lock);
}

CUresult device_begin(void)
{
	CUresult result;

	result = device_check();
	if (result)
		return result;
	pthread_mutex_lock(&softgpu_device.lock);
	result = device_start();
	pthread_mutex_unlock(&softgpu_device.lock);
	return result;
}

CUresult cuInit(unsigned int Flags)
{
	struct device *device = &softgpu_device;
	CUresult result = CUDA_SUCCESS;

	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&device->lock);
	if (device_process < 0) {
		result = CUDA_ERROR_NOT_INITIALIZED;
	} else if (!device_process) {
		/* A fault or a kernel that cannot be run is worth a line in any program.
		 */
		vgpu_log_init("softgpu", VGPU_LOG_WARNING);
		device_read_environment();
		device_complete();
		pthread_atfork(NULL, NULL, device_forked);
		__atomic_store_n(&device_process, getpid(), __ATOMIC_RELEASE);
	}
	if (!result && !device->n_devices)
		result = CUDA_ERROR_NO_DEVICE;
	pthread_mutex_unlock(&device->lock);
	return result;
}

/*
 * Queries
 */

CUresult cuDriverGetVersion(int *driverVersion)
{
	if (!driverVersion)
		return CUDA_ERROR_INVALID_VALUE;
	*driverVersion = API_DRIVER_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (int)softgpu_device.n_devices;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	CUresult result;

	result = device_get(ordinal);
	if (result)
		return result;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	if (!name || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, len, "%s", softgpu_device.name);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	*uuid = softgpu_device.uuids[dev];
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = softgpu_device.total_memory;
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	*major = softgpu_device.cc / 10;
	*minor = softgpu_device.cc % 10;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	return pi && device_attribute(dev, attrib, pi) ? CUDA_SUCCESS
						       : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	int domain, bus, device;
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	if (!pciBusId || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	device_attribute(dev, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &domain);
	device_attribute(dev, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &bus);
	device_attribute(dev, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &device);
	snprintf(pciBusId, len, "%04X:%02X:%02X.0", domain, bus, device);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	unsigned int domain = 0, bus, device, function = 0;
	int own_domain, own_bus, own_device;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!dev || !pciBusId)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(pciBusId, "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3) {
		domain = 0;
		if (sscanf(pciBusId, "%x:%x.%x", &bus, &device, &function) < 2)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (CUdevice i = 0; i < (CUdevice)softgpu_device.n_devices; i++) {
		device_attribute(i, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &own_domain);
		device_attribute(i, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &own_bus);
		device_attribute(i, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &own_device);
		if ((int)domain != own_domain || (int)bus != own_bus ||
			(int)device != own_device || function)
			continue;
		*dev = i;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	*prop = (CUdevprop){
		.maxThreadsPerBlock = SOFTGPU_BLOCK_THREADS_MAX,
		.maxThreadsDim = { SOFTGPU_BLOCK_THREADS_MAX, SOFTGPU_BLOCK_THREADS_MAX,
			API_BLOCK_Z_MAX },
		.maxGridSize = { API_GRID_X_MAX, API_GRID_YZ_MAX, API_GRID_YZ_MAX },
		.sharedMemPerBlock = API_BLOCK_SHARED,
		.totalConstantMemory = API_CONST_MAX,
		.SIMDWidth = SOFTGPU_WARP_SIZE,
		.regsPerBlock = API_SM_REGISTERS,
	};
	device_attribute(dev, CU_DEVICE_ATTRIBUTE_MAX_PITCH, &prop->memPitch);
	device_attribute(dev, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &prop->clockRate);
	device_attribute(dev, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, &prop->textureAlign);
	return CUDA_SUCCESS;
}
