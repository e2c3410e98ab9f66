/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Domain XML: what a description of a domain of libvirt says of devices
 */

#include <libxml/tree.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Of the element in <metadata> whose attributes are settings of the domain's section. */
#define DOMAIN_XML_NAMESPACE "https://vgpu.invalid/domain/1"

/* Return: the document, or NULL for what is none. Nothing outside the text is read. */
xmlDocPtr domain_xml_parse(const char *text, size_t size);
void domain_xml_freep(xmlDocPtr *xmlp);

/* Return: the next element of that name after a child, or the first one; NULL: none. */
xmlNode *domain_xml_child(const xmlNode *parent, const xmlNode *after, const char *name);
bool domain_xml_has(const xmlNode *node, const char *key, const char *value);

/* Return: the next device of vgpud's kind after one, or the first one; NULL: none. */
xmlNode *domain_xml_device(xmlDocPtr xml, const xmlNode *after);
/* Return: the path of its socket, to be freed by xmlFree(), or NULL. */
xmlChar *domain_xml_socket(const xmlNode *device);

/* Return: the group of QEMU by the domain's own label (<seclabel model='dac'>), or
 * (gid_t)-1: it has none, and libvirt chooses. */
gid_t domain_xml_group(xmlDocPtr xml);

/* Return: the element with the settings, or NULL. */
xmlNode *domain_xml_settings(xmlDocPtr xml);
