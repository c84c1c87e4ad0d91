/* SPDX-License-Identifier: Apache-2.0 */

/*
 * host-devices: which devices of the node VMs may have, and which mediated devices it shall make.
 * Spec 08 §6.6, 07 §1.4.
 *
 * Pure. Thread: any.
 */

#pragma once

#include "handler/config/json-fields.h"

typedef struct {
    char *selector;      /* "10DE:1EB8", or a mediated device type's name */
    char *resource_name; /* "nvidia.com/TU104GL" */
    bool is_external;    /* another device plugin offers it */
} ChPermittedDevice;

typedef struct {
    char *vendor, *product; /* "0951" */
} ChUsbSelector;

typedef struct {
    char *resource_name;
    bool is_external;
    GArray *selectors; /* ChUsbSelector */
} ChPermittedUsb;

typedef struct {
    GArray *pci, *mediated; /* ChPermittedDevice */
    GArray *usb;            /* ChPermittedUsb */
} ChPermittedDevices;

/**
 * ch_permitted_devices_read:
 * @devices: zeroed, or as the last call left it
 * @object: (nullable): permittedHostDevices
 *
 * Returns: false with CH_ERROR_INVALID, @devices then holds some of it
 */
bool ch_permitted_devices_read(ChPermittedDevices *devices, const ChJson *object, GError **error);
void ch_permitted_devices_clear(ChPermittedDevices *devices);

/* mediatedDevicesConfiguration */
typedef struct ChMediatedDevices ChMediatedDevices;

/* (transfer full): @object: (nullable). NULL with CH_ERROR_INVALID */
ChMediatedDevices *ch_mediated_devices_parse(const ChJson *object, GError **error);
void ch_mediated_devices_free(ChMediatedDevices *devices); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChMediatedDevices, ch_mediated_devices_free)

/**
 * ch_mediated_devices_types:
 * @labels: (nullable): the node's labels, an object
 *
 * Those of all entries whose selector matches, each once, in the order of the entries; when there
 * are none those of the cluster. An entry's deprecated list counts when the other is empty.
 *
 * Returns: (transfer full)
 */
char **ch_mediated_devices_types(const ChMediatedDevices *devices, const ChJson *labels);

/* `enabled` */
ChTristate ch_mediated_devices_is_enabled(const ChMediatedDevices *devices);
