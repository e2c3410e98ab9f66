/* Generated from nvml-small.xml by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* NVML: types, constants and prototypes */

#ifndef __nvml_nvml_h__
#define __nvml_nvml_h__

/* The size and the number of a form, by which a call tells structures apart. */
#define NVML_STRUCT_VERSION(_name, _number) \
	(unsigned int)(sizeof(nvml##_name##_v##_number##_t) | (_number##u << 24))

#define NVML_DEVICE_PCI_BUS_ID_FMT_ARGS(_pci) (_pci)->domain, (_pci)->bus, (_pci)->device
#define NVML_CUDA_DRIVER_VERSION_MAJOR(_version) ((_version) / 1000)
#define NVML_CUDA_DRIVER_VERSION_MINOR(_version) (((_version) % 1000) / 10)

#define NVML_ONE 1
#define nvmlPair_v1 NVML_STRUCT_VERSION(Pair, 1)

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nvmlReturn_enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_NOT_SUPPORTED = 3,
} nvmlReturn_t;

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct {
	unsigned int version;
	unsigned int values[2];
} nvmlPair_v1_t;

#ifndef NVML_NO_UNVERSIONED_FUNC_DEFS
#define nvmlInit nvmlInit_v2
#endif

nvmlReturn_t nvmlInit_v2(void);
const char *nvmlErrorString(nvmlReturn_t result);
nvmlReturn_t nvmlDeviceGetPair(nvmlDevice_t device, nvmlPair_v1_t *pair,
	unsigned int *list);
nvmlReturn_t nvmlDeviceGetFog(nvmlDevice_t device, unsigned int *fog);
nvmlReturn_t nvmlSetFog(unsigned int fog);

#ifdef NVML_NO_UNVERSIONED_FUNC_DEFS

nvmlReturn_t nvmlInit(void);

#endif /* NVML_NO_UNVERSIONED_FUNC_DEFS */

#ifdef __cplusplus
}
#endif

#endif /* __nvml_nvml_h__ */
