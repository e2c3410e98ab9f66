/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Get: how the values of fields are asked for
 *
 * Each getter has an argument, whose meaning is its own.
 */

#include <stddef.h>

#include "smi/library.h"
#include "smi/value.h"

typedef nvmlReturn_t (*smi_number_fn)(nvmlDevice_t device, unsigned int *value);
typedef nvmlReturn_t (*smi_text_fn)(nvmlDevice_t device, char *text, unsigned int length);
typedef nvmlReturn_t (*smi_state_fn)(nvmlDevice_t device, nvmlEnableState_t *state);
typedef nvmlReturn_t (*smi_engine_fn)(
	nvmlDevice_t device, unsigned int *percent, unsigned int *period);

/* A getter and its argument, for a function of the library that has that type. */
#define SMI_GET(_get, _type, _name)                                                      \
	_get, (int)(offsetof(struct smi_library, _name) +                                \
		      0 * sizeof(char[__builtin_types_compatible_p(                      \
					      __typeof__(&_name), _type)                 \
					      ? 1                                        \
					      : -1]))
#define SMI_NUMBER(_name) SMI_GET(smi_get_number, smi_number_fn, _name)
#define SMI_TEXT(_name) SMI_GET(smi_get_text, smi_text_fn, _name)
#define SMI_STATE(_name) SMI_GET(smi_get_state, smi_state_fn, _name)
#define SMI_ENGINE(_name) SMI_GET(smi_get_engine, smi_engine_fn, _name)
/* In mW, shown in W. */
#define SMI_WATTS(_name) SMI_GET(smi_get_watts, smi_number_fn, _name)

#define SMI_GETTER(_name)                                                                \
	void smi_get_##_name(nvmlDevice_t device, struct smi_value *value, int argument)

/* Argument: of the macros above. */
SMI_GETTER(number);
SMI_GETTER(text);
SMI_GETTER(state);
SMI_GETTER(engine);
SMI_GETTER(watts);

/* Of no NVML that there is. */
SMI_GETTER(nothing);

SMI_GETTER(timestamp);
SMI_GETTER(driver);
SMI_GETTER(count);
SMI_GETTER(capability);
SMI_GETTER(compute_mode);

enum {
	SMI_PCI_ID,
	SMI_PCI_DOMAIN,
	SMI_PCI_BUS,
	SMI_PCI_DEVICE,
	SMI_PCI_KIND,
	SMI_PCI_BOARD,
};
SMI_GETTER(pci);

/* Argument: 0 now, 1 after the next start. */
SMI_GETTER(mig);
SMI_GETTER(ecc_mode);
SMI_GETTER(operation_mode);

/* Argument: 0 whether it is on, 1 whether it is by default. */
SMI_GETTER(gsp_mode);

/* Argument: nvmlInforomObject_t, or -1 for the image. */
SMI_GETTER(inforom);

enum { SMI_MEMORY_TOTAL, SMI_MEMORY_USED, SMI_MEMORY_FREE, SMI_MEMORY_RESERVED };
SMI_GETTER(memory);

/* Argument: 0 the GPU, 1 its memory. */
SMI_GETTER(utilization);

enum { SMI_SESSIONS, SMI_FRAMES, SMI_LATENCY };
SMI_GETTER(encoder);

#define SMI_ERRORS_TOTAL 15
/* Argument: nvmlMemoryErrorType_t, nvmlEccCounterType_t, and nvmlMemoryLocation_t or
 * SMI_ERRORS_TOTAL. */
#define SMI_ERRORS(_type, _counter, _location)                                           \
	((_type) | (_counter) << 1 | (_location) << 2)
SMI_GETTER(ecc_errors);

/* Argument: a field of nvmlDeviceGetFieldValues(). */
SMI_GETTER(value);
SMI_GETTER(value_watts);
SMI_GETTER(value_yes_no);

SMI_GETTER(temperature);
SMI_GETTER(margin);
/* Argument: nvmlTemperatureThresholds_t. */
SMI_GETTER(threshold);

SMI_GETTER(pstate);
/* Argument: 0 those that are active, 1 those that there can be. */
SMI_GETTER(reasons);
/* Argument: a bit of the active ones. */
SMI_GETTER(reason);

/* Argument: 0 the lower, 1 the upper one. */
SMI_GETTER(power_bound);
SMI_GETTER(energy);

/* Argument: nvmlClockType_t. */
SMI_GETTER(clock);
SMI_GETTER(max_clock);
SMI_GETTER(application_clock);
SMI_GETTER(default_clock);
