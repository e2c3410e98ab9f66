/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domain: the device of vgpud in a domain of libvirt
 *
 * A device is found by the path of its socket, which is vgpud's name for the machine:
 * whoever added it, and under whatever alias.
 */

#include <inttypes.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/domain-xml.h"
#include "ctl/domain.h"
#include "vgpu/cleanup.h"
#include "vgpud/config.h"

/* A guest lets a device go when its kernel has; it may not, or have none. */
#define DETACH_STEPS 100
#define DETACH_STEP_US 100000
/* KiB of a window above 4 GiB that QEMU gives the root bus of an i440FX by default. */
#define HOLE_OF_PC (2U << 20)

struct domain {
	virConnectPtr connection;
	virDomainPtr domain;
	bool is_active;
	bool is_persistent;
};

static enum ctl_status fail(const char *what)
{
	return ctl_fail(CTL_FAILED, "libvirt: %s: %s", what, virGetLastErrorMessage());
}

/* Errors are printed once, by fail(). */
static void print_nothing(void *data, virErrorPtr error)
{
}

enum ctl_status domain_open(struct domain **domainp, const char *uri, const char *name)
{
	struct domain *domain = calloc(1, sizeof(*domain));
	enum ctl_status status = CTL_OK;

	*domainp = NULL;
	if (!domain)
		return ctl_fail(CTL_FAILED, "there is no memory");
	virSetErrorFunc(NULL, print_nothing);
	domain->connection = virConnectOpen(uri);
	if (domain->connection)
		domain->domain = virDomainLookupByName(domain->connection, name);
	if (!domain->connection)
		status = fail(uri ? uri : "the connection");
	else if (!domain->domain)
		status = virGetLastErrorCode() == VIR_ERR_NO_DOMAIN
				 ? ctl_fail(CTL_NO_VM, "libvirt has no domain %s", name)
				 : fail(name);
	if (status) {
		domain_close(domain);
		return status;
	}
	domain->is_active = virDomainIsActive(domain->domain) == 1;
	domain->is_persistent = virDomainIsPersistent(domain->domain) == 1;
	*domainp = domain;
	return CTL_OK;
}

void domain_close(struct domain *domain)
{
	if (!domain)
		return;
	if (domain->domain)
		virDomainFree(domain->domain);
	if (domain->connection)
		virConnectClose(domain->connection);
	free(domain);
}

bool domain_is_active(const struct domain *domain)
{
	return domain->is_active;
}

bool domain_is_persistent(const struct domain *domain)
{
	return domain->is_persistent;
}

/*
 * Descriptions
 */

static xmlDocPtr describe(const struct domain *domain, bool is_live)
{
	_vgpu_cleanup_(vgpu_freep) char *text = NULL;

	text = virDomainGetXMLDesc(domain->domain, is_live ? 0 : VIR_DOMAIN_XML_INACTIVE);
	return domain_xml_parse(text, text ? strlen(text) : 0);
}

/* Return: the device at that socket, or NULL. */
static xmlNode *find_device(xmlDocPtr xml, const char *socket)
{
	const xmlNode *devices =
		domain_xml_child(xmlDocGetRootElement(xml), NULL, "devices");
	xmlNode *device = NULL;

	while ((device = domain_xml_child(devices, device, "shmem")))
		if (domain_xml_has(
			    domain_xml_child(device, NULL, "server"), "path", socket))
			return device;
	return NULL;
}

enum ctl_status domain_has_device(
	const struct domain *domain, bool is_live, const char *socket, bool *hasp)
{
	_vgpu_cleanup_(domain_xml_freep) xmlDocPtr xml = describe(domain, is_live);

	*hasp = xml && find_device(xml, socket);
	return xml ? CTL_OK : fail("the description of the domain");
}

/* Return: whether the description has a device in the folder. */
static bool find_socket(
	xmlDocPtr xml, const char *beside, size_t folder, char *path, size_t size)
{
	xmlNode *device = NULL;
	bool is_found = false;

	while (!is_found && (device = domain_xml_device(xml, device))) {
		xmlChar *found = domain_xml_socket(device);
		const char *socket = (const char *)found;

		is_found = socket && strlen(socket) < size &&
			   !strncmp(socket, beside, folder) &&
			   !strchr(socket + folder, '/');
		if (is_found)
			strcpy(path, socket);
		xmlFree(found);
	}
	return is_found;
}

bool domain_find_socket(
	const struct domain *domain, const char *beside, char *path, size_t size)
{
	const size_t folder = (size_t)(strrchr(beside, '/') + 1 - beside);
	bool is_found = false;

	for (int is_live = 0; is_live < 2 && !is_found; is_live++) {
		_vgpu_cleanup_(domain_xml_freep) xmlDocPtr xml = NULL;

		if (is_live ? domain->is_active : domain->is_persistent)
			xml = describe(domain, is_live);
		is_found = xml && find_socket(xml, beside, folder, path, size);
	}
	return is_found;
}

/* A label is +USER:+GROUP. */
static gid_t parse_label(const xmlNode *label)
{
	xmlChar *text = label ? xmlNodeGetContent((xmlNode *)label) : NULL;
	unsigned int group = (unsigned int)-1;

	if (text && sscanf((const char *)text, "+%*u:+%u", &group) != 1)
		group = (unsigned int)-1;
	xmlFree(text);
	return group;
}

/* That of domains without a label of their own. */
static gid_t common_group(const struct domain *domain)
{
	_vgpu_cleanup_(vgpu_freep) char *text =
		virConnectGetCapabilities(domain->connection);
	_vgpu_cleanup_(domain_xml_freep) xmlDocPtr xml =
		domain_xml_parse(text, text ? strlen(text) : 0);
	const xmlNode *host, *model = NULL;
	xmlChar *name;
	bool is_dac;

	host = xml ? domain_xml_child(xmlDocGetRootElement(xml), NULL, "host") : NULL;
	while ((model = domain_xml_child(host, model, "secmodel"))) {
		name = xmlNodeGetContent(domain_xml_child(model, NULL, "model"));
		is_dac = name && !strcmp((const char *)name, "dac");
		xmlFree(name);
		if (is_dac)
			return parse_label(domain_xml_child(model, NULL, "baselabel"));
	}
	return (gid_t)-1;
}

gid_t domain_group(const struct domain *domain)
{
	_vgpu_cleanup_(domain_xml_freep) xmlDocPtr xml =
		describe(domain, domain->is_active);
	const gid_t group = xml ? domain_xml_group(xml) : (gid_t)-1;

	return group == (gid_t)-1 ? common_group(domain) : group;
}

/* The room for windows that each root port of a running machine has kept, by an argument
 * of QEMU. */
static uint64_t find_reserve(const xmlNode *root)
{
	static const char key[] = "pcie-root-port.pref64-reserve=";
	const xmlNode *line = domain_xml_child(root, NULL, "commandline"),
		      *argument = NULL;
	uint64_t size = 0;
	xmlChar *value;

	while ((argument = domain_xml_child(line, argument, "arg"))) {
		value = xmlGetProp((xmlNode *)argument, (const xmlChar *)"value");
		if (value && !strncmp((const char *)value, key, strlen(key)))
			config_parse_size((const char *)value + strlen(key), &size);
		xmlFree(value);
	}
	return size;
}

static bool is_q35(const xmlNode *root)
{
	const xmlNode *type =
		domain_xml_child(domain_xml_child(root, NULL, "os"), NULL, "type");
	xmlChar *machine =
		type ? xmlGetProp((xmlNode *)type, (const xmlChar *)"machine") : NULL;
	const bool is_it = machine && strstr((const char *)machine, "q35");

	xmlFree(machine);
	return is_it;
}

static unsigned int read_number(const xmlNode *node, const char *key)
{
	xmlChar *text = xmlGetProp((xmlNode *)node, (const xmlChar *)key);
	const unsigned long number = text ? strtoul((const char *)text, NULL, 0) : 0;

	xmlFree(text);
	return (unsigned int)number;
}

/* Whether a device has an address on the bus. */
static bool is_used(const xmlNode *devices, unsigned int bus)
{
	const xmlNode *address;

	for (const xmlNode *device = devices->children; device; device = device->next) {
		address = domain_xml_child(device, NULL, "address");
		if (domain_xml_has(address, "type", "pci") &&
			read_number(address, "bus") == bus)
			return true;
	}
	return false;
}

/*
 * A port of the root bus that takes a device while the machine runs. It has a window of
 * its own; a bridge behind a port has none but for what was there when the machine
 * started.
 * Return: the number of its bus, 0: there is none.
 */
static unsigned int find_port(const xmlNode *devices)
{
	const xmlNode *controller = NULL, *target;
	unsigned int bus;

	while ((controller = domain_xml_child(devices, controller, "controller"))) {
		target = domain_xml_child(controller, NULL, "target");
		if (!domain_xml_has(controller, "model", "pcie-root-port") ||
			domain_xml_has(target, "hotplug", "off"))
			continue;
		bus = read_number(controller, "index");
		if (bus && !is_used(devices, bus))
			return bus;
	}
	return 0;
}

/* The window of the root bus above 4 GiB, in KiB; 0: the firmware's. */
static uint64_t find_hole(const xmlNode *devices)
{
	const xmlNode *controller = NULL, *hole;
	uint64_t size = 0;
	xmlChar *text;

	while ((controller = domain_xml_child(devices, controller, "controller"))) {
		hole = domain_xml_child(controller, NULL, "pcihole64");
		text = hole ? xmlNodeGetContent((xmlNode *)hole) : NULL;
		if (text)
			sscanf((const char *)text, "%" SCNu64, &size);
		xmlFree(text);
	}
	return size;
}

static enum ctl_status check_ports(const xmlNode *root, uint64_t size)
{
	if (find_reserve(root) / 2 < size)
		return ctl_fail(CTL_REFUSED,
			"the running domain has no window for %" PRIu64
			" MiB at its ports: it takes -global "
			"pcie-root-port.pref64-reserve=%" PRIu64
			"M and a start of the domain; --config attaches for its next "
			"start",
			size >> 20, size >> 19);
	if (!find_port(domain_xml_child(root, NULL, "devices")))
		return ctl_fail(CTL_REFUSED,
			"the running domain has no free port for the device: it takes "
			"one more <controller type='pci' model='pcie-root-port'/> and a "
			"start of the domain; --config attaches for its next start");
	return CTL_OK;
}

/*
 * What a running machine needs was decided when it started. The memory is aligned to its
 * size, a window is not: one of twice the size has a place for it wherever it is.
 */
static enum ctl_status check_live(const xmlNode *root, uint64_t size, uint64_t hole)
{
	if (is_q35(root))
		return check_ports(root, size);
	if ((hole ? hole : HOLE_OF_PC) / 2 < size >> 10)
		return ctl_fail(CTL_REFUSED,
			"the running domain has no window for %" PRIu64
			" MiB: it takes <pcihole64 unit='KiB'>%" PRIu64
			"</pcihole64> in its <controller type='pci' index='0' "
			"model='pci-root'/> and a start of the domain; --config attaches "
			"for its next start",
			size >> 20, size >> 9);
	return CTL_OK;
}

enum ctl_status domain_check(const struct domain *domain, bool is_live, uint64_t size)
{
	_vgpu_cleanup_(domain_xml_freep) xmlDocPtr xml = describe(domain, is_live);
	const xmlNode *root = xml ? xmlDocGetRootElement(xml) : NULL;
	uint64_t hole;

	if (!root)
		return fail("the description of the domain");
	hole = find_hole(domain_xml_child(root, NULL, "devices"));
	if (hole && hole < size >> 10)
		return ctl_fail(CTL_REFUSED,
			"<pcihole64> of the domain is %" PRIu64
			" KiB, less than the %" PRIu64 " KiB of the device",
			hole, size >> 10);
	return is_live ? check_live(root, size, hole) : CTL_OK;
}

/*
 * Changes
 */

static unsigned int flag_of(bool is_live)
{
	return is_live ? VIR_DOMAIN_AFFECT_LIVE : VIR_DOMAIN_AFFECT_CONFIG;
}

/* Of a bus, 0: libvirt shall choose one. Return: the element of the device, to be freed,
 * or NULL. */
static char *make_device(const char *socket, unsigned int bus)
{
	xmlChar *path = xmlEncodeSpecialChars(NULL, (const xmlChar *)socket);
	char address[64] = "", *text = NULL;

	if (bus)
		snprintf(address, sizeof(address),
			"<address type='pci' domain='0' bus='%u' slot='0'/>", bus);
	if (!path || asprintf(&text,
			     "<shmem name='vgpu'><model type='ivshmem-doorbell'/>"
			     "<server path='%s'/><msi vectors='32' ioeventfd='on'/>"
			     "<alias name='ua-vgpu'/>%s</shmem>",
			     (const char *)path, address) < 0)
		text = NULL;
	xmlFree(path);
	return text;
}

/* libvirt would choose a bridge for a device of this kind. */
static unsigned int choose_bus(const struct domain *domain)
{
	_vgpu_cleanup_(domain_xml_freep) xmlDocPtr xml = describe(domain, true);
	const xmlNode *root = xml ? xmlDocGetRootElement(xml) : NULL;

	return root && is_q35(root) ? find_port(domain_xml_child(root, NULL, "devices"))
				    : 0;
}

enum ctl_status domain_attach(
	const struct domain *domain, bool is_live, const char *socket)
{
	_vgpu_cleanup_(vgpu_freep) char *device = NULL;

	device = make_device(socket, is_live ? choose_bus(domain) : 0);
	if (!device)
		return ctl_fail(CTL_FAILED, "there is no memory");
	if (virDomainAttachDeviceFlags(domain->domain, device, flag_of(is_live)) < 0)
		return fail(is_live ? "the running domain does not take the device"
				    : "the domain does not take the device");
	return CTL_OK;
}

/* Return: the device as libvirt describes it, to be freed, or NULL. */
static char *copy_device(const struct domain *domain, bool is_live, const char *socket)
{
	_vgpu_cleanup_(domain_xml_freep) xmlDocPtr xml = describe(domain, is_live);
	xmlNode *device = xml ? find_device(xml, socket) : NULL;
	xmlBufferPtr buffer = device ? xmlBufferCreate() : NULL;
	char *text = NULL;

	if (buffer && xmlNodeDump(buffer, xml, device, 0, 0) > 0)
		text = strdup((const char *)xmlBufferContent(buffer));
	if (buffer)
		xmlBufferFree(buffer);
	return text;
}

/* A running guest may take its time. */
static enum ctl_status wait_until_gone(const struct domain *domain, const char *socket)
{
	enum ctl_status status;
	bool has;

	for (int i = 0; i < DETACH_STEPS; i++) {
		status = domain_has_device(domain, true, socket, &has);
		if (status || !has)
			return status;
		usleep(DETACH_STEP_US);
	}
	return ctl_fail(CTL_FAILED,
		"the guest has not let the device go yet: detach again when it has, or "
		"when the domain is off");
}

enum ctl_status domain_detach(
	const struct domain *domain, bool is_live, const char *socket)
{
	_vgpu_cleanup_(vgpu_freep) char *device = copy_device(domain, is_live, socket);

	if (!device)
		return CTL_OK;
	if (virDomainDetachDeviceFlags(domain->domain, device, flag_of(is_live)) < 0)
		return fail("the device cannot be detached");
	return is_live ? wait_until_gone(domain, socket) : CTL_OK;
}
