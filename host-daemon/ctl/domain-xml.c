/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domain XML: what a description of a domain of libvirt says of devices
 */

#include <libxml/parser.h>
#include <limits.h>
#include <string.h>

#include "ctl/domain-xml.h"
#include "ctl/hook-group.h"

xmlDocPtr domain_xml_parse(const char *text, size_t size)
{
	if (!text || size > INT_MAX)
		return NULL;
	return xmlReadMemory(text, (int)size, "domain.xml", NULL,
		XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
}

void domain_xml_freep(xmlDocPtr *xmlp)
{
	if (*xmlp)
		xmlFreeDoc(*xmlp);
}

static bool is_element(const xmlNode *node, const char *name)
{
	return node->type == XML_ELEMENT_NODE && !strcmp((const char *)node->name, name);
}

xmlNode *domain_xml_child(const xmlNode *parent, const xmlNode *after, const char *name)
{
	xmlNode *node = after ? after->next : parent ? parent->children : NULL;

	while (node && !is_element(node, name))
		node = node->next;
	return node;
}

bool domain_xml_has(const xmlNode *node, const char *key, const char *value)
{
	xmlChar *found = node ? xmlGetProp((xmlNode *)node, (const xmlChar *)key) : NULL;
	const bool is_same = found && !strcmp((const char *)found, value);

	xmlFree(found);
	return is_same;
}

xmlNode *domain_xml_device(xmlDocPtr xml, const xmlNode *after)
{
	const xmlNode *devices =
		domain_xml_child(xmlDocGetRootElement(xml), NULL, "devices");
	xmlNode *device = domain_xml_child(devices, after, "shmem");

	while (device && !domain_xml_has(domain_xml_child(device, NULL, "model"), "type",
				 "ivshmem-doorbell"))
		device = domain_xml_child(devices, device, "shmem");
	return device;
}

xmlChar *domain_xml_socket(const xmlNode *device)
{
	xmlNode *server = domain_xml_child(device, NULL, "server");

	return server ? xmlGetProp(server, (const xmlChar *)"path") : NULL;
}

/* A label is USER:GROUP. */
static gid_t group_of(const xmlNode *label)
{
	xmlChar *text = label ? xmlNodeGetContent((xmlNode *)label) : NULL;
	const char *colon = text ? strchr((const char *)text, ':') : NULL;
	const gid_t group = colon ? hook_group_find(colon + 1) : (gid_t)-1;

	xmlFree(text);
	return group;
}

gid_t domain_xml_group(xmlDocPtr xml)
{
	const xmlNode *root = xmlDocGetRootElement(xml), *label = NULL;
	gid_t group = (gid_t)-1;

	while (group == (gid_t)-1 && (label = domain_xml_child(root, label, "seclabel")))
		if (domain_xml_has(label, "model", "dac"))
			group = group_of(domain_xml_child(label, NULL, "label"));
	return group;
}

xmlNode *domain_xml_settings(xmlDocPtr xml)
{
	const xmlNode *metadata =
		domain_xml_child(xmlDocGetRootElement(xml), NULL, "metadata");
	xmlNode *node = NULL;

	while ((node = domain_xml_child(metadata, node, "vm")))
		if (node->ns &&
			!strcmp((const char *)node->ns->href, DOMAIN_XML_NAMESPACE))
			return node;
	return NULL;
}
