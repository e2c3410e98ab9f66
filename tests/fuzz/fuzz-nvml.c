/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: what NVML reads of a host that is hostile, or torn
 *
 * The input begins with pieces of the page, of which the rest is plausible; then come
 * calls with buffers of the size that they are told. Between its reads the library asks
 * whether the host is there: then the page changes, its sequence too, or the host is
 * gone. The transport and /proc are fakes.
 */

#include <stdlib.h>
#include <string.h>

#include "reader.h"
#include "vgpu/nvml.h"
#include "vgpu/ring-layout.h"
#include "vgpu/status.h"
#include "wire/proc.h"
#include "wire/reason.h"
#include "wire/sentence.h"
#include "wire/transport.h"

#define N_DEVICES 3u
#define ROOM 8u
#define OWN_NAMESPACE 1u
/* A page that stays torn costs naps: so often is the host there. */
#define LOOKS_MAX 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t memory[VGPU_EXTENT_SIZE / sizeof(uint64_t)];
static struct vgpu_shm_header *const header = (void *)memory;
static struct vgpu_status *status;
static struct reader input;
static unsigned int n_looks;
static uint64_t n_beats; /* of a host that is alive, in all executions */

#define need(_condition)                                                                 \
	do {                                                                             \
		if (!(_condition))                                                       \
			abort();                                                         \
	} while (0)

/*
 * Fakes
 */

static void change(void)
{
	const size_t at = reader_u32(&input) % sizeof(*status);
	uint8_t bytes[16];

	reader_bytes(&input, bytes, sizeof(bytes));
	memcpy((uint8_t *)status + at, bytes,
		at + sizeof(bytes) <= sizeof(*status) ? sizeof(bytes)
						      : sizeof(*status) - at);
}

static uint64_t silence(struct shim_transport *transport)
{
	n_looks++;
	header->heartbeat = ++n_beats;
	switch (reader_below(&input, 8)) {
	case 1:
		change();
		break;
	case 2:
		status->sequence++;
		break;
	case 3:
		return n_looks % 2 ? SHIM_GONE : 0;
	default:
		/* Else an odd sequence would be waited for. */
		status->sequence &= ~1u;
	}
	return n_looks > LOOKS_MAX ? SHIM_GONE : 0;
}

static void close_nothing(struct shim_transport *transport)
{
}

static const struct shim_transport_ops transport_fake = {
	.silence_ns = silence,
	.close = close_nothing,
};

/* The library asks whether it is this one. */
const struct shim_transport_ops shim_transport_socket;

int shim_transport_open(struct shim_transport *transport)
{
	*transport = (struct shim_transport){
		.ops = &transport_fake,
		.header = header,
		.header_size = sizeof(memory),
		.shm_size = VGPU_SHM_SIZE_MIN,
	};
	header->heartbeat = ++n_beats;
	status->sequence |= 2;
	status->sequence &= ~1u;
	return 0;
}

void shim_transport_close(struct shim_transport *transport)
{
}

void shim_reason_note(enum shim_reason kind, const char *format, ...)
{
}

void shim_reason_forget(void)
{
}

void shim_reason_set_library(const char *name)
{
}

const char *shim_reason_noted(void)
{
	return NULL;
}

const char shim_sentence_no_answer[] = "no answer";

bool shim_proc_read_stat(uint32_t pid, struct shim_proc_stat *stat)
{
	*stat = (struct shim_proc_stat){ .start_time = pid % 7 };
	return pid % 3;
}

uint64_t shim_proc_pid_namespace(void)
{
	return OWN_NAMESPACE;
}

uint32_t shim_proc_inner_pid(uint32_t pid)
{
	return pid % 5;
}

/*
 * Calls
 */

typedef nvmlReturn_t (*number_fn)(nvmlDevice_t device, unsigned int *value);
typedef nvmlReturn_t (*big_number_fn)(nvmlDevice_t device, unsigned long long *value);
typedef nvmlReturn_t (*state_fn)(nvmlDevice_t device, nvmlEnableState_t *state);
typedef nvmlReturn_t (*text_fn)(nvmlDevice_t device, char *text, unsigned int length);
typedef nvmlReturn_t (*engine_fn)(
	nvmlDevice_t device, unsigned int *percent, unsigned int *period);

static const number_fn numbers[] = {
	nvmlDeviceGetBoardId,
	nvmlDeviceGetMultiGpuBoard,
	nvmlDeviceGetIndex,
	nvmlDeviceGetMinorNumber,
	nvmlDeviceGetMemoryBusWidth,
	nvmlDeviceGetNumGpuCores,
	nvmlDeviceGetFanSpeed,
	nvmlDeviceGetNumFans,
	nvmlDeviceGetPowerUsage,
	nvmlDeviceGetPowerManagementLimit,
	nvmlDeviceGetEnforcedPowerLimit,
	nvmlDeviceGetPowerManagementDefaultLimit,
	nvmlDeviceGetCurrPcieLinkGeneration,
	nvmlDeviceGetCurrPcieLinkWidth,
	nvmlDeviceGetMaxPcieLinkGeneration,
	nvmlDeviceGetGpuMaxPcieLinkGeneration,
	nvmlDeviceGetMaxPcieLinkWidth,
	nvmlDeviceGetPcieSpeed,
	nvmlDeviceGetPcieLinkMaxSpeed,
	nvmlDeviceGetPcieReplayCounter,
	nvmlDeviceGetMaxMigDeviceCount,
	nvmlDeviceGetArchitecture,
};

static const big_number_fn big_numbers[] = {
	nvmlDeviceGetTotalEnergyConsumption,
	nvmlDeviceGetCurrentClocksEventReasons,
	nvmlDeviceGetSupportedClocksEventReasons,
	nvmlDeviceGetSupportedEventTypes,
};

static const state_fn states[] = {
	nvmlDeviceGetPersistenceMode,
	nvmlDeviceGetDisplayMode,
	nvmlDeviceGetDisplayActive,
	nvmlDeviceGetAccountingMode,
	nvmlDeviceGetPowerManagementMode,
	nvmlDeviceGetRetiredPagesPendingStatus,
};

static const text_fn texts[] = {
	nvmlDeviceGetName,
	nvmlDeviceGetUUID,
};

static const engine_fn engines[] = {
	nvmlDeviceGetEncoderUtilization,
	nvmlDeviceGetDecoderUtilization,
	nvmlDeviceGetJpgUtilization,
	nvmlDeviceGetOfaUtilization,
};

#define PICK(_table)                                                                     \
	((_table)[reader_below(&input, sizeof(_table) / sizeof((_table)[0]))])

static nvmlDevice_t pick_device(void)
{
	nvmlDevice_t device = NULL;

	if (nvmlDeviceGetHandleByIndex_v2(reader_below(&input, 8), &device))
		device = (nvmlDevice_t)(uintptr_t)reader_u8(&input);
	return device;
}

static void get_numbers(nvmlDevice_t device)
{
	unsigned long long big_number = 0;
	unsigned int number = 0, other = 0;
	nvmlEnableState_t state;

	PICK(numbers)(device, &number);
	PICK(big_numbers)(device, &big_number);
	PICK(states)(device, &state);
	PICK(engines)(device, &number, &other);
	nvmlDeviceGetClockInfo(device, (nvmlClockType_t)reader_u8(&input), &number);
	nvmlDeviceGetMaxClockInfo(device, (nvmlClockType_t)reader_u8(&input), &number);
	nvmlDeviceGetTemperatureThreshold(
		device, (nvmlTemperatureThresholds_t)reader_u8(&input), &number);
	nvmlDeviceGetPcieThroughput(
		device, (nvmlPcieUtilCounter_t)reader_u8(&input), &number);
	nvmlDeviceGetTotalEccErrors(device, (nvmlMemoryErrorType_t)reader_u8(&input),
		(nvmlEccCounterType_t)reader_u8(&input), &big_number);
}

static void get_text(nvmlDevice_t device)
{
	const unsigned int length = reader_u8(&input);
	char *text = malloc(length + 1u);

	need(text);
	memset(text, 'x', length + 1u);
	if (!PICK(texts)(device, text, length))
		need(memchr(text, '\0', length));
	need(text[length] == 'x');
	if (!nvmlSystemGetDriverVersion(text, length))
		need(memchr(text, '\0', length));
	if (!nvmlSystemGetNVMLVersion(text, length))
		need(memchr(text, '\0', length));
	need(text[length] == 'x');
	free(text);
}

static void get_structures(nvmlDevice_t device)
{
	nvmlMemory_v2_t second = { .version = nvmlMemory_v2 };
	nvmlGpuDynamicPstatesInfo_t domains;
	unsigned int rows[4];
	nvmlUtilization_t rates;
	nvmlBrandType_t brand;
	nvmlMemory_t memory_info;
	nvmlPciInfo_t pci;
	nvmlPstates_t pstate;
	int version, major, minor;

	if (!nvmlDeviceGetMemoryInfo(device, &memory_info))
		need(memory_info.used <= memory_info.total &&
			memory_info.free <= memory_info.total - memory_info.used);
	if (!nvmlDeviceGetMemoryInfo_v2(device, &second))
		need(second.reserved + second.used + second.free == second.total);
	if (!nvmlDeviceGetPciInfo_v3(device, &pci))
		need(memchr(pci.busId, '\0', sizeof(pci.busId)) &&
			memchr(pci.busIdLegacy, '\0', sizeof(pci.busIdLegacy)));
	if (!nvmlDeviceGetPerformanceState(device, &pstate))
		need(pstate <= NVML_PSTATE_15 || pstate == NVML_PSTATE_UNKNOWN);
	nvmlDeviceGetUtilizationRates(device, &rates);
	nvmlDeviceGetDynamicPstatesInfo(device, &domains);
	nvmlDeviceGetRemappedRows(device, &rows[0], &rows[1], &rows[2], &rows[3]);
	nvmlDeviceGetBrand(device, &brand);
	nvmlDeviceGetCudaComputeCapability(device, &major, &minor);
	nvmlSystemGetCudaDriverVersion(&version);
}

static void get_processes(nvmlDevice_t device)
{
	const unsigned int room = reader_u8(&input);
	nvmlProcessInfo_t *infos = calloc(room, sizeof(*infos));
	nvmlProcessUtilizationSample_t *samples = calloc(room, sizeof(*samples));
	unsigned int n = room;

	if (!nvmlDeviceGetComputeRunningProcesses_v3(device, &n, infos))
		need(n <= room);
	need(n <= VGPU_STATUS_PROCESSES_MAX || n == room);
	n = room;
	if (!nvmlDeviceGetProcessUtilization(device, samples, &n, reader_u8(&input)))
		need(n && n <= room);
	free(infos);
	free(samples);
}

static void get_samples(nvmlDevice_t device)
{
	const nvmlSamplingType_t kind = (nvmlSamplingType_t)reader_below(&input, 12);
	const unsigned int room = reader_below(&input, 128);
	nvmlSample_t *samples = calloc(room + 1u, sizeof(*samples));
	unsigned long long last = reader_u8(&input);
	nvmlValueType_t type;
	unsigned int n = room;

	need(samples);
	if (!nvmlDeviceGetSamples(device, kind, last, &type, &n, samples)) {
		need(n && n <= room);
		for (unsigned int i = 0; i < n; i++) {
			need(samples[i].timeStamp > last ||
				(i && samples[i].timeStamp == last));
			last = samples[i].timeStamp;
		}
	}
	need(!samples[room].timeStamp);
	free(samples);
}

static void get_pairs(nvmlDevice_t device)
{
	const nvmlDevice_t other = pick_device();
	nvmlDevice_t near[ROOM];
	nvmlGpuTopologyLevel_t level;
	nvmlGpuP2PStatus_t peer;
	unsigned int n = ROOM;

	if (!nvmlDeviceGetTopologyCommonAncestor(device, other, &level))
		need(level >= 0 && level <= NVML_TOPOLOGY_SYSTEM && level % 10 == 0);
	if (!nvmlDeviceGetP2PStatus(
		    device, other, (nvmlGpuP2PCapsIndex_t)reader_u8(&input), &peer))
		need(peer >= NVML_P2P_STATUS_OK && peer <= NVML_P2P_STATUS_UNKNOWN);
	if (!nvmlDeviceGetTopologyNearestGpus(device,
		    (nvmlGpuTopologyLevel_t)(10 * reader_below(&input, 6)), &n, near))
		need(n <= ROOM);
}

static void find_devices(void)
{
	char text[64] = "";
	nvmlDevice_t device;

	reader_bytes(&input, text, reader_below(&input, sizeof(text)));
	nvmlDeviceGetHandleByUUID(text, &device);
	nvmlDeviceGetHandleByPciBusId_v2(text, &device);
}

static void get_fields(nvmlDevice_t device)
{
	nvmlFieldValue_t values[ROOM];
	const int n = (int)reader_below(&input, ROOM + 1);

	for (int i = 0; i < n; i++)
		values[i] = (nvmlFieldValue_t){ .fieldId = reader_u16(&input) };
	nvmlDeviceGetFieldValues(device, n, values);
}

static void wait_for_events(nvmlDevice_t device)
{
	nvmlEventData_t data;
	nvmlEventSet_t set;

	if (nvmlEventSetCreate(&set))
		return;
	nvmlDeviceRegisterEvents(device, nvmlEventTypeXidCriticalError, set);
	nvmlDeviceRegisterEvents(pick_device(), nvmlEventTypeXidCriticalError, set);
	change();
	for (unsigned int i = 0; i < 4; i++)
		if (!nvmlEventSetWait_v2(set, &data, 0))
			need(data.eventData && data.device);
	if (reader_below(&input, 2))
		nvmlEventSetFree(set);
}

static void make_call(void)
{
	const nvmlDevice_t device = pick_device();

	switch (reader_below(&input, 10)) {
	case 0:
		get_numbers(device);
		break;
	case 1:
		get_text(device);
		break;
	case 2:
		get_structures(device);
		break;
	case 3:
		get_processes(device);
		break;
	case 4:
		get_samples(device);
		break;
	case 5:
		get_pairs(device);
		break;
	case 6:
		find_devices();
		break;
	case 7:
		get_fields(device);
		break;
	case 8:
		wait_for_events(device);
		break;
	default:
		change();
	}
}

/*
 * The page
 */

static void fill_page(void)
{
	memset(memory, 0, sizeof(memory));
	header->status_off = VGPU_STATUS_OFF;
	status = (void *)((uint8_t *)memory + VGPU_STATUS_OFF);
	status->n_devices = N_DEVICES;
	status->n_processes = reader_below(&input, 4);
	status->flags = VGPU_STATUS_WHOLE;
	for (uint32_t i = 0; i < N_DEVICES; i++) {
		status->devices[i].info.uuid[0] = (uint8_t)(i + 1);
		status->devices[i].sensors_known = reader_u64(&input);
		status->devices[i].memory_total = 1000;
	}
	for (uint32_t i = 0; i < status->n_processes; i++)
		status->processes[i].pid_namespace = reader_below(&input, 3);
	for (unsigned int i = reader_below(&input, 32); i; i--)
		change();
	/* Where most of the fields that bound others are. */
	if (reader_below(&input, 4) == 1) {
		status->n_devices = reader_u32(&input);
		status->n_processes = reader_u32(&input);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input = (struct reader){ .bytes = data, .size = size };
	n_looks = 0;
	fill_page();
	if (nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS))
		return 0;
	while (input.size)
		make_call();
	need(!nvmlShutdown());
	return 0;
}
