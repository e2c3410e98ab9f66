/* Generated from nvml-small.xml by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* The description against NVIDIA's nvml.h */

#ifndef CHECK_MACROS
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#endif
#include <nvml.h>
#include <stddef.h>

#if NVML_API_VERSION != 13
#error "the description is of NVML 13.0"
#endif

#define SAME_TYPE(_a, _b) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(_a), _b), #_a)
#define SAME_VALUE(_a, _b) _Static_assert((_a) == (_b), #_a)
#define SAME_SIZE(_a, _b) _Static_assert(sizeof(_a) == sizeof(_b), #_a)
#define SAME_OFFSET(_a, _b, _field) \
	_Static_assert(offsetof(_a, _field) == offsetof(_b, _field), #_a "." #_field)

#ifndef CHECK_MACROS

SAME_TYPE(nvmlInit_v2, nvmlReturn_t(void));
SAME_TYPE(nvmlInit, nvmlReturn_t(void));
SAME_TYPE(nvmlErrorString, const char *(nvmlReturn_t));
SAME_TYPE(nvmlDeviceGetPair, nvmlReturn_t(nvmlDevice_t, nvmlPair_v1_t *, unsigned int *));
SAME_TYPE(nvmlDeviceGetFog, nvmlReturn_t(nvmlDevice_t, unsigned int *));
SAME_TYPE(nvmlSetFog, nvmlReturn_t(unsigned int));

SAME_VALUE(NVML_SUCCESS, (nvmlReturn_t)0ll);
SAME_VALUE(NVML_ERROR_NOT_SUPPORTED, (nvmlReturn_t)3ll);
SAME_TYPE(nvmlDevice_t, struct nvmlDevice_st *);

SAME_VALUE(NVML_ONE, 1);

struct check_nvmlPair_v1_t {
	unsigned int version;
	unsigned int values[2];
};
SAME_SIZE(nvmlPair_v1_t, struct check_nvmlPair_v1_t);
SAME_OFFSET(nvmlPair_v1_t, struct check_nvmlPair_v1_t, version);
SAME_OFFSET(nvmlPair_v1_t, struct check_nvmlPair_v1_t, values);

SAME_VALUE(nvmlPair_v1, NVML_STRUCT_VERSION(Pair, 1));
#else /* CHECK_MACROS */

#define TEXT_(_name) #_name
#define TEXT(_name) TEXT_(_name)
#define SAME_NAME(_name, _symbol) \
	_Static_assert(__builtin_strcmp(TEXT(_name), _symbol) == 0, _symbol)

SAME_NAME(nvmlInit, "nvmlInit_v2");
SAME_NAME(nvmlErrorString, "nvmlErrorString");
SAME_NAME(nvmlDeviceGetPair, "nvmlDeviceGetPair");
SAME_NAME(nvmlDeviceGetFog, "nvmlDeviceGetFog");
SAME_NAME(nvmlSetFog, "nvmlSetFog");

#endif /* CHECK_MACROS */
