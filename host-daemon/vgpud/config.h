/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Configuration of vgpud
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "control/control.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"
#include "vgpud/config-source.h"
#include "vgpud/mistakes.h"

#define CONFIG_VMS_MAX 1024
/* Keys of [vm NAME]: a new one is in the tables of config.c and config-show.c. */
#define CONFIG_VM_KEYS 25

enum {
	_CONFIG_E_SUCCESS,
	CONFIG_E_INVALID, /* a wrong value; the error text has line and reason */
};

enum config_transport {
	CONFIG_IVSHMEM, /* QEMU's ivshmem-doorbell connects, one at a time */
	CONFIG_SOCKET,	/* local processes connect, each with its own memory */
	CONFIG_PLAIN,	/* a file of QEMU's ivshmem-plain, without doorbells */
	_CONFIG_TRANSPORT_N,
};

/* Pages of the shared memory. */
enum config_hugepages {
	CONFIG_HUGEPAGES_NO,
	CONFIG_HUGEPAGES_TRANSPARENT, /* if the kernel likes */
	CONFIG_HUGEPAGES_HUGETLB,     /* 2 MiB each, reserved by the administrator */
	_CONFIG_HUGEPAGES_N,
};

/* Of a VM's work for the device; a higher one goes before all lower ones. */
enum config_priority {
	CONFIG_PRIORITY_LOW,
	CONFIG_PRIORITY_NORMAL,
	CONFIG_PRIORITY_HIGH,
	_CONFIG_PRIORITY_N,
};

/* One [vm NAME] section. */
struct config_vm {
	TAILQ_ENTRY(config_vm) entry;
	char name[CONTROL_VM_NAME_MAX];
	unsigned int index; /* among all, identifies the section on the link */
	struct text_place place;
	enum config_transport transport;
	char *socket;
	char *memory;
	uid_t memory_owner; /* permitted owner besides root and vgpud; (uid_t)-1: none */
	gid_t memory_group; /* permitted group with write access */
	uint64_t size;
	enum config_hugepages hugepages;
	char *devices;		/* see device-list.h; NULL: all that the driver has */
	uint64_t device_memory; /* 0: all */
	bool evictable;		/* its memory may make room for that of others */
	unsigned int weight;	/* of its share of the device's time */
	enum config_priority priority;
	bool paused;		  /* it has no device time */
	uint64_t image_memory;	  /* bytes of code, of each process */
	uint64_t image_store;	  /* bytes of code kept for other processes of it */
	uint64_t host_memory;	  /* bytes of all its workers; 0: half the host's */
	unsigned int cpu;	  /* percent of one CPU, of all workers; 0: no limit */
	uint64_t copy_bandwidth;  /* bytes a second of all processes; 0: no limit */
	unsigned int handles;	  /* of each process */
	unsigned int max_threads; /* that call, of each process */
	unsigned int max_processes;
	unsigned int process_rate; /* new processes per second */
	/* Seconds that a launch has, with all that it starts; 0: no limit. */
	unsigned int softgpu_launch_timeout;
	unsigned int log_lines; /* burst of lines caused by its guests */
	mode_t socket_mode;
	gid_t socket_group; /* (gid_t)-1: unchanged */
};

/* Numbers from first to last. */
struct config_range {
	unsigned int first;
	unsigned int last;
};

struct config {
	struct text_place place; /* of [vgpud]; line 0: absent */
	char *driver;
	char *worker;
	char *softgpu;
	char *null_driver;
	char *sensors; /* the program that reads them */
	char *nvml;    /* auto, no, or the path of a libnvidia-ml.so.1 */
	char *log_file;
	char *flight_folder; /* of files with the last calls of workers; NULL: none */
	/* The socket for vgpuctl, "no", or NULL: as the service manager has it. */
	char *ctl_socket;
	gid_t ctl_admins; /* (gid_t)-1: the group of the default name, if there is one */
	gid_t ctl_monitors;
	enum vgpu_log_level log_level;
	unsigned int warm_workers;
	unsigned int max_workers;
	unsigned int quantum;	      /* ms of device time */
	uint64_t device_memory_total; /* bytes of all VMs at a time; 0: no limit */
	unsigned int evict_idle;      /* seconds without calls */

	/* Confinement of workers. The user ids are used if vgpud is root. */
	bool sandbox;
	bool allow_unprivileged; /* NVIDIA's driver if vgpud is not root */
	bool meter; /* device time of drivers other than softgpu is measured */
	struct config_range worker_uids;

	/* Identity of softgpu; NULL or 0: its own default. */
	char *softgpu_name;
	char *softgpu_cc;
	uint64_t softgpu_memory;
	unsigned int softgpu_threads;
	unsigned int softgpu_kernel_timeout; /* seconds, 0: none */
	unsigned int softgpu_devices;
	char *softgpu_schedule; /* long, fair, or NULL */
	char *softgpu_check;	/* a list with commas, or NULL */

	TAILQ_HEAD(, config_vm) vms;
	unsigned int n_vms;
	char **files; /* paths of the sources, which the places refer to */
	size_t n_files;
};

/*
 * Parses all sources.
 *
 * @configp:	owned by the caller on success
 * @errorp:	on CONFIG_E_INVALID all mistakes, one per line, with file and line;
 *		to be freed
 *
 * Return: 0, CONFIG_E_INVALID or -errno.
 */
int config_new(
	struct config **configp, const struct config_sources *sources, char **errorp);
/*
 * The same without the files of the folder that have mistakes, so that these keep no
 * other VM from its device. They are marked as left out.
 *
 * @errorp:	all mistakes, also on success; NULL: none
 *
 * Return: 0, CONFIG_E_INVALID: the main file has some, or -errno.
 */
int config_new_of_right(
	struct config **configp, struct config_sources *sources, char **errorp);
/* config_new() for one main file without a folder. */
int config_new_from_text(
	struct config **configp, const char *path, const char *text, char **errorp);
struct config *config_free(struct config *config);

/* Reads a file into a string that the caller frees. Return: 0 or -errno. */
int config_read(int fd, char **textp);

const struct config_vm *config_find_vm(const struct config *config, const char *name);
const struct config_vm *config_vm_at(const struct config *config, unsigned int index);
/* Return: the path of the socket for vgpuctl, or NULL if there is none. */
const char *config_ctl_socket(const struct config *config);

const char *config_transport_name(enum config_transport transport);
const char *config_hugepages_name(enum config_hugepages hugepages);
const char *config_priority_name(enum config_priority priority);

/* Parses "4G", "512M", "65536". Return: 0 or CONFIG_E_INVALID. */
int config_parse_size(const char *string, uint64_t *sizep);

static inline void config_freep(struct config **configp)
{
	config_free(*configp);
}
