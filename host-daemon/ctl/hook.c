/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hook: what libvirt calls when a domain starts and when it has ended
 *
 * A domain whose description has a device of ours needs a section of vgpud before its
 * QEMU starts. One that is there already is the administrator's, or vgpuctl attach's, and
 * stays as it is. Otherwise the hook adds one, with a file whose first line names the
 * domain: by that line the end of the domain removes it again, and nobody else's.
 *
 * libvirt waits for the hook while it holds the domain, so libvirt must not be asked
 * anything here: all there is to know is in the description, on standard input. Domains
 * without a device of ours start whether vgpud runs or not.
 */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/domain-xml.h"
#include "ctl/hook-group.h"
#include "ctl/section.h"
#include "vgpu/cleanup.h"
#include "vgpud/config.h"

#define CONFIG_DEFAULT "/etc/vgpu/vgpud.conf"
#define COMMENT "written by libvirt's hook for the domain "
#define SUFFIX ".sock"
#define UUID_SIZE 36
#define XML_MAX (4u << 20)

struct hook {
	const struct ctl_options *options;
	const char *domain;
	xmlDocPtr xml;
	char uuid[UUID_SIZE + 1];
	struct client client;
};

/* A device of the domain, and the section of its name. */
struct device {
	char name[CONTROL_VM_NAME_MAX];
	char socket[CTL_VALUE_MAX + 1];
	char *path;		   /* of the section's file */
	char owner[UUID_SIZE + 1]; /* the domain that the file is of; empty: none */
	bool has_file;
};

/*
 * The description
 */

static enum ctl_status read_xml(struct hook *hook)
{
	_vgpu_cleanup_(vgpu_freep) char *text = malloc(XML_MAX);
	xmlNode *node;
	xmlChar *uuid;
	size_t size;

	if (!text)
		return ctl_fail(CTL_FAILED, "there is no memory");
	size = fread(text, 1, XML_MAX, stdin);
	hook->xml = size < XML_MAX ? domain_xml_parse(text, size) : NULL;
	if (!hook->xml)
		return ctl_fail(CTL_REFUSED,
			"standard input has no description of the domain %s",
			hook->domain);
	node = domain_xml_child(xmlDocGetRootElement(hook->xml), NULL, "uuid");
	uuid = node ? xmlNodeGetContent(node) : NULL;
	if (uuid && strlen((const char *)uuid) == UUID_SIZE &&
		strspn((const char *)uuid, "0123456789abcdef-") == UUID_SIZE)
		strcpy(hook->uuid, (const char *)uuid);
	xmlFree(uuid);
	return *hook->uuid ? CTL_OK
			   : ctl_fail(CTL_REFUSED, "the description of %s has no uuid",
				     hook->domain);
}

/* The folder of a path without links, or as it is if it does not exist. */
static void folder_of(const char *path, char folder[static PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	_vgpu_cleanup_(vgpu_freep) char *text =
		slash ? strndup(path, (size_t)(slash - path)) : NULL;

	snprintf(folder, PATH_MAX, "%s", text ? text : "");
	if (text && !realpath(text, folder))
		snprintf(folder, PATH_MAX, "%s", text);
}

/* Whether the device has a socket in vgpud's folder; others are not ours. */
static bool read_device(
	const struct hook *hook, const xmlNode *node, struct device *device)
{
	char folder[PATH_MAX], ours[PATH_MAX];
	xmlChar *path = domain_xml_socket(node);
	const char *name;
	size_t size;

	*device = (struct device){ 0 };
	if (path && strlen((const char *)path) < sizeof(device->socket))
		strcpy(device->socket, (const char *)path);
	xmlFree(path);
	name = strrchr(device->socket, '/');
	size = name ? strlen(++name) : 0;
	if (size <= strlen(SUFFIX) || size - strlen(SUFFIX) >= sizeof(device->name) ||
		strcmp(name + size - strlen(SUFFIX), SUFFIX))
		return false;
	memcpy(device->name, name, size - strlen(SUFFIX));
	folder_of(device->socket, folder);
	folder_of(hook->options->socket, ours);
	return !strcmp(folder, ours);
}

/*
 * Settings
 */

/* Keys that decide about files and rights are not the domain's. */
static bool is_setting(const char *key)
{
	static const char *const keys[] = { "copy-bandwidth", "cpu", "device-memory",
		"devices", "evictable", "handles", "host-memory", "hugepages",
		"image-memory", "image-store", "log-lines", "max-processes",
		"max-threads", "paused", "priority", "process-rate", "size",
		"softgpu-launch-timeout", "weight" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (!strcmp(keys[i], key))
			return true;
	return false;
}

static enum ctl_status take_setting(const struct hook *hook, const char *key,
	const char *value, struct section *section, FILE *lines)
{
	if (!is_setting(key))
		return ctl_fail(CTL_REFUSED,
			"<metadata> of the domain %s: a domain has no setting '%s'",
			hook->domain, key);
	/* It becomes a line of a file. */
	if (!*value ||
		strspn(value, "abcdefghijklmnopqrstuvwxyz"
			      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,-") != strlen(value))
		return ctl_fail(CTL_REFUSED,
			"<metadata> of the domain %s: %s has a value of letters, "
			"digits, '.', ',' and '-'",
			hook->domain, key);
	if (!strcmp(key, "size")) {
		if (!config_parse_size(value, &section->size))
			return CTL_OK;
		return ctl_fail(CTL_REFUSED,
			"<metadata> of the domain %s: '%s' is not a size", hook->domain,
			value);
	}
	fprintf(lines, "%s = %s\n", key, value);
	return CTL_OK;
}

static enum ctl_status take_settings(
	const struct hook *hook, struct section *section, FILE *lines)
{
	const xmlNode *node = domain_xml_settings(hook->xml);
	enum ctl_status status = CTL_OK;
	xmlChar *value;

	for (xmlAttr *attribute = node ? node->properties : NULL; attribute && !status;
		attribute = attribute->next) {
		value = xmlNodeGetContent((xmlNode *)attribute);
		status = take_setting(hook, (const char *)attribute->name,
			value ? (const char *)value : "", section, lines);
		xmlFree(value);
	}
	return status;
}

/* Without root's rights QEMU has the group of its libvirt. */
static gid_t find_group(const struct hook *hook)
{
	gid_t group = (gid_t)-1;

	if (geteuid())
		return group;
	group = domain_xml_group(hook->xml);
	return group == (gid_t)-1 ? hook_group(HOOK_QEMU_CONF) : group;
}

/* The text of the section's file, to be freed. */
static enum ctl_status make_text(
	const struct hook *hook, const struct device *device, char **textp)
{
	_vgpu_cleanup_(vgpu_freep) char *lines = NULL;
	char comment[sizeof(COMMENT) + UUID_SIZE];
	struct section section = {
		.name = device->name,
		.socket = device->socket,
		.comment = comment,
		.group = find_group(hook),
	};
	enum ctl_status status;
	size_t size = 0;
	FILE *stream = open_memstream(&lines, &size);

	*textp = NULL;
	if (!stream)
		return ctl_fail(CTL_FAILED, "there is no memory");
	config_parse_size(SECTION_SIZE, &section.size);
	status = take_settings(hook, &section, stream);
	if (fclose(stream) && !status)
		status = ctl_fail(CTL_FAILED, "there is no memory");
	if (status)
		return status;
	snprintf(comment, sizeof(comment), COMMENT "%s", hook->uuid);
	section.settings = lines;
	*textp = section_text(&section);
	return *textp ? CTL_OK : ctl_fail(CTL_FAILED, "there is no memory");
}

/*
 * Files
 */

/* Whose file there is: the owner stays empty for one of another author. */
static enum ctl_status look_at_file(struct device *device, const char *config)
{
	char line[sizeof("# " COMMENT) + UUID_SIZE + 1] = "";
	FILE *file;

	device->path = section_path(config, device->name);
	if (!device->path)
		return ctl_fail(CTL_FAILED, "there is no memory");
	file = fopen(device->path, "re");
	if (!file)
		return errno == ENOENT ? CTL_OK
				       : ctl_fail(CTL_FAILED, "%s: %s", device->path,
						 strerror(errno));
	device->has_file = true;
	if (fgets(line, sizeof(line), file))
		sscanf(line, "# " COMMENT "%36[0-9a-f-]", device->owner);
	fclose(file);
	return CTL_OK;
}

/*
 * Before QEMU starts
 */

/* Whether that section serves that socket. */
static enum ctl_status is_at(
	struct hook *hook, const char *name, const char *socket, bool *isp)
{
	_vgpu_cleanup_(ctl_reply_freep) VgpuCtl__Reply *reply = NULL;
	enum ctl_status status;
	const char *value;

	status = client_find(&hook->client, name, &reply);
	value = reply ? section_value(reply->show, "socket") : NULL;
	*isp = value && !strcmp(value, socket);
	return status;
}

/* Whether any section does: the administrator may have given it another name. */
static enum ctl_status is_served(struct hook *hook, const char *socket, bool *isp)
{
	char after[CONTROL_VM_NAME_MAX + 1] = "";
	enum ctl_status status;
	bool more = true;

	*isp = false;
	while (more && !*isp) {
		_vgpu_cleanup_(ctl_reply_freep) VgpuCtl__Reply *reply = NULL;

		status = client_list(&hook->client, after, &reply);
		if (status)
			return status;
		more = reply->list->more && reply->list->n_vms;
		for (size_t i = 0; i < reply->list->n_vms && !*isp && !status; i++) {
			snprintf(after, sizeof(after), "%s", reply->list->vms[i]->name);
			status = is_at(hook, after, socket, isp);
		}
		if (status)
			return status;
	}
	return CTL_OK;
}

static enum ctl_status add(struct hook *hook, const struct device *device)
{
	_vgpu_cleanup_(vgpu_freep) char *text = NULL;
	enum ctl_status status;

	status = make_text(hook, device, &text);
	return status ? status
		      : section_add(
				&hook->client, device->name, device->path, text, NULL);
}

/* A section of that name that vgpud has. */
static enum ctl_status take_known(
	struct hook *hook, const struct device *device, const VgpuCtl__Details *known)
{
	const char *socket = section_value(known, "socket");
	const bool is_mine = !strcmp(device->owner, hook->uuid);

	if (!*device->owner && socket && !strcmp(socket, device->socket))
		return CTL_OK;
	if (!*device->owner)
		return ctl_fail(CTL_REFUSED,
			"%s: [vm %s] has the socket %s, and the domain %s the socket %s",
			known->vm->place, device->name, socket ? socket : "none",
			hook->domain, device->socket);
	if (!is_mine && known->vm->connections)
		return ctl_fail(CTL_REFUSED,
			"%s: [vm %s] is in use by another domain, %s: each domain needs "
			"a socket of its own",
			known->vm->place, device->name, device->owner);
	/* What a host that lost its power has left; the settings may be others now. */
	return add(hook, device);
}

static enum ctl_status take_unknown(struct hook *hook, const struct device *device)
{
	enum ctl_status status;
	bool is_there;

	status = is_served(hook, device->socket, &is_there);
	if (status || is_there)
		return status;
	if (device->has_file && !*device->owner)
		return ctl_fail(CTL_REFUSED,
			"%s is there, but vgpud has not read it: reload vgpud",
			device->path);
	return add(hook, device);
}

static enum ctl_status prepare(struct hook *hook, struct device *device)
{
	_vgpu_cleanup_(ctl_reply_freep) VgpuCtl__Reply *reply = NULL;
	enum ctl_status status;

	status = look_at_file(device, hook->client.hello->config);
	if (!status)
		status = client_find(&hook->client, device->name, &reply);
	if (status)
		return status;
	return reply ? take_known(hook, device, reply->show) : take_unknown(hook, device);
}

/*
 * After QEMU has ended
 */

/* The file goes also if vgpud cannot be asked: its next start has no use for it. */
static enum ctl_status release(struct hook *hook, struct device *device)
{
	_vgpu_cleanup_(ctl_reply_freep) VgpuCtl__Reply *reply = NULL;
	enum ctl_status status;

	status = look_at_file(
		device, hook->client.hello ? hook->client.hello->config : CONFIG_DEFAULT);
	if (status || strcmp(device->owner, hook->uuid))
		return status;
	if (hook->client.hello)
		status = client_find(&hook->client, device->name, &reply);
	if (!status && reply)
		status = section_remove(&hook->client, device->name);
	return status ? status : section_unlink(device->path);
}

/*
 * The whole
 */

typedef enum ctl_status (*step_fn)(struct hook *hook, struct device *device);

/* Connects for the first device. Return: whether there is a right to change vgpud. */
static enum ctl_status open_vgpud(struct hook *hook, bool *mayp)
{
	enum ctl_status status = CTL_OK;

	if (!hook->client.hello)
		status = client_open(&hook->client, hook->options->socket);
	/* The libvirt of a user has no say in the sections of the administrator, and QEMU
	 * gets what is there. */
	*mayp = status != CTL_DENIED &&
		(status || hook->client.hello->access == VGPU_CTL__ACCESS__ADMIN);
	return *mayp ? status : CTL_OK;
}

static enum ctl_status run(struct hook *hook, step_fn step)
{
	enum ctl_status status = CTL_OK, result;
	const bool is_start = step == prepare;
	xmlNode *node = NULL;
	struct device device;
	bool may = true;

	while (may && !(is_start && status) &&
		(node = domain_xml_device(hook->xml, node))) {
		if (!read_device(hook, node, &device))
			continue;
		result = open_vgpud(hook, &may);
		if (may && !(is_start && result))
			result = step(hook, &device);
		free(device.path);
		status = result ? result : status;
	}
	if (status && is_start)
		ctl_fail(status, "the domain %s has a vGPU, and does not start without",
			hook->domain);
	return status;
}

/* Of the calls of libvirt those in which no QEMU runs; the others need nothing. */
enum ctl_status ctl_hook(const struct ctl_options *options, char **arguments)
{
	struct hook hook = { .options = options, .domain = arguments[0] };
	const bool is_start = !strcmp(arguments[1], "prepare");
	enum ctl_status status;

	if (!is_start && strcmp(arguments[1], "release") != 0)
		return CTL_OK;
	hook.client = CLIENT_NULL;
	status = read_xml(&hook);
	if (!status)
		status = run(&hook, is_start ? prepare : release);
	client_close(&hook.client);
	domain_xml_freep(&hook.xml);
	return status;
}
