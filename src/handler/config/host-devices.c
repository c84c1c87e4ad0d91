/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/host-devices.h"

#include "lib/base/errors.h"

/* --- permitted devices */

#define DEVICE_FIELDS(selector_key)                                                                \
    {                                                                                              \
        {.path = (selector_key),                                                                   \
         .kind = CH_FIELD_STRING,                                                                  \
         .offset = offsetof(ChPermittedDevice, selector),                                          \
         .preset_text = ""},                                                                       \
            {.path = "resourceName",                                                               \
             .kind = CH_FIELD_STRING,                                                              \
             .offset = offsetof(ChPermittedDevice, resource_name),                                 \
             .preset_text = ""},                                                                   \
            {.path = "externalResourceProvider",                                                   \
             .kind = CH_FIELD_BOOL,                                                                \
             .offset = offsetof(ChPermittedDevice, is_external)},                                  \
    }

/* Spelt alike but for the selector. */
static const ChField pci_fields[] = DEVICE_FIELDS("pciVendorSelector");
static const ChField mediated_fields[] = DEVICE_FIELDS("mdevNameSelector");
static const ChField usb_fields[] = {
    {.path = "resourceName",
     .kind = CH_FIELD_STRING,
     .offset = offsetof(ChPermittedUsb, resource_name),
     .preset_text = ""},
    {.path = "externalResourceProvider",
     .kind = CH_FIELD_BOOL,
     .offset = offsetof(ChPermittedUsb, is_external)},
};
static const ChField usb_selector_fields[] = {
    {.path = "vendor",
     .kind = CH_FIELD_STRING,
     .offset = offsetof(ChUsbSelector, vendor),
     .preset_text = ""},
    {.path = "product",
     .kind = CH_FIELD_STRING,
     .offset = offsetof(ChUsbSelector, product),
     .preset_text = ""},
};

static void
clear_device(gpointer data)
{
    ch_fields_clear(pci_fields, G_N_ELEMENTS(pci_fields), data);
}

static void
clear_usb_selector(gpointer data)
{
    ch_fields_clear(usb_selector_fields, G_N_ELEMENTS(usb_selector_fields), data);
}

static void
clear_usb(gpointer data)
{
    ChPermittedUsb *usb = data;

    ch_fields_clear(usb_fields, G_N_ELEMENTS(usb_fields), usb);
    g_clear_pointer(&usb->selectors, g_array_unref);
}

/* (transfer full): what @clear frees */
static GArray *
new_array(gsize size, GDestroyNotify clear)
{
    GArray *array = g_array_new(FALSE, TRUE, (guint)size);

    g_array_set_clear_func(array, clear);
    return array;
}

/* Appends a record for each item of @list. */
static bool
read_list(GArray *array,
          const ChField *fields,
          gsize n_fields,
          const ChJson *list,
          const char *name,
          GError **error)
{
    if (list != NULL && !ch_json_is_array(list))
        return ch_fail(error, CH_ERROR_INVALID, "'%s' is no list", name);
    for (gsize i = 0; i < ch_json_length(list); i++) {
        gpointer record;

        g_array_set_size(array, array->len + 1);
        record = array->data + (array->len - 1) * g_array_get_element_size(array);
        ch_fields_preset(fields, n_fields, record);
        if (!ch_fields_read(fields, n_fields, ch_json_item(list, i), record, error)) {
            g_prefix_error(error, "%s: ", name);
            return false;
        }
    }
    return true;
}

static bool
read_usb(GArray *array, const ChJson *list, GError **error)
{
    if (!read_list(array, usb_fields, G_N_ELEMENTS(usb_fields), list, "usb", error))
        return false;
    for (guint i = 0; i < array->len; i++) {
        ChPermittedUsb *usb = &g_array_index(array, ChPermittedUsb, i);

        usb->selectors = new_array(sizeof(ChUsbSelector), clear_usb_selector);
        if (!read_list(usb->selectors,
                       usb_selector_fields,
                       G_N_ELEMENTS(usb_selector_fields),
                       ch_json_at(ch_json_item(list, i), "selectors"),
                       "usb.selectors",
                       error))
            return false;
    }
    return true;
}

bool
ch_permitted_devices_read(ChPermittedDevices *devices, const ChJson *object, GError **error)
{
    ch_permitted_devices_clear(devices);
    devices->pci = new_array(sizeof(ChPermittedDevice), clear_device);
    devices->mediated = new_array(sizeof(ChPermittedDevice), clear_device);
    devices->usb = new_array(sizeof(ChPermittedUsb), clear_usb);
    if (object != NULL && !ch_json_is_object(object))
        return ch_fail(error, CH_ERROR_INVALID, "'permittedHostDevices' is no object");
    return read_list(devices->pci,
                     pci_fields,
                     G_N_ELEMENTS(pci_fields),
                     ch_json_at(object, "pciHostDevices"),
                     "pciHostDevices",
                     error) &&
           read_list(devices->mediated,
                     mediated_fields,
                     G_N_ELEMENTS(mediated_fields),
                     ch_json_at(object, "mediatedDevices"),
                     "mediatedDevices",
                     error) &&
           read_usb(devices->usb, ch_json_at(object, "usb"), error);
}

void
ch_permitted_devices_clear(ChPermittedDevices *devices)
{
    g_clear_pointer(&devices->pci, g_array_unref);
    g_clear_pointer(&devices->mediated, g_array_unref);
    g_clear_pointer(&devices->usb, g_array_unref);
}

/* --- mediated devices */

typedef struct {
    char **types, **old_types; /* the deprecated spelling */
    GHashTable *selector;      /* label -> value, owned strings */
} Entry;

struct ChMediatedDevices {
    char **types, **old_types;
    ChTristate enabled;
    GArray *entries; /* Entry */
};

#define TYPES_FIELDS(Type)                                                                         \
    {.path = "mediatedDeviceTypes", .kind = CH_FIELD_STRINGS, .offset = offsetof(Type, types)},    \
    {                                                                                              \
        .path = "mediatedDevicesTypes", .kind = CH_FIELD_STRINGS,                                  \
        .offset = offsetof(Type, old_types)                                                        \
    }

static const ChField entry_fields[] = {TYPES_FIELDS(Entry)};
static const ChField cluster_fields[] = {
    TYPES_FIELDS(ChMediatedDevices),
    {.path = "enabled", .kind = CH_FIELD_TRISTATE, .offset = offsetof(ChMediatedDevices, enabled)},
};

static void
clear_entry(gpointer data)
{
    Entry *entry = data;

    ch_fields_clear(entry_fields, G_N_ELEMENTS(entry_fields), entry);
    g_clear_pointer(&entry->selector, g_hash_table_unref);
}

static bool
read_selector(Entry *entry, const ChJson *selector, GError **error)
{
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    entry->selector = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    if (selector != NULL && !ch_json_is_object(selector))
        return ch_fail(error, CH_ERROR_INVALID, "'nodeSelector' is no object");
    ch_json_iter_init(&iter, selector);
    while (ch_json_iter_next(&iter, &key, &value)) {
        if (ch_json_as_string(value) == NULL)
            return ch_fail(error, CH_ERROR_INVALID, "'nodeSelector' has a value that is no string");
        g_hash_table_replace(entry->selector, g_strdup(key), g_strdup(ch_json_as_string(value)));
    }
    return true;
}

static bool
read_entries(GArray *entries, const ChJson *list, GError **error)
{
    if (!read_list(entries,
                   entry_fields,
                   G_N_ELEMENTS(entry_fields),
                   list,
                   "nodeMediatedDeviceTypes",
                   error))
        return false;
    for (guint i = 0; i < entries->len; i++) {
        if (!read_selector(&g_array_index(entries, Entry, i),
                           ch_json_at(ch_json_item(list, i), "nodeSelector"),
                           error))
            return false;
    }
    return true;
}

ChMediatedDevices *
ch_mediated_devices_parse(const ChJson *object, GError **error)
{
    g_autoptr(ChMediatedDevices) devices = g_new0(ChMediatedDevices, 1);

    ch_fields_preset(cluster_fields, G_N_ELEMENTS(cluster_fields), devices);
    devices->entries = new_array(sizeof(Entry), clear_entry);
    if (!ch_fields_read(cluster_fields, G_N_ELEMENTS(cluster_fields), object, devices, error) ||
        !read_entries(devices->entries, ch_json_at(object, "nodeMediatedDeviceTypes"), error))
        return NULL;
    return g_steal_pointer(&devices);
}

void
ch_mediated_devices_free(ChMediatedDevices *devices)
{
    if (devices == NULL)
        return;
    ch_fields_clear(cluster_fields, G_N_ELEMENTS(cluster_fields), devices);
    g_array_unref(devices->entries);
    g_free(devices);
}

static bool
matches(const Entry *entry, const ChJson *labels)
{
    GHashTableIter iter;
    gpointer key, value;

    g_hash_table_iter_init(&iter, entry->selector);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        if (g_strcmp0(ch_json_string_at(labels, (const char *)key), value) != 0)
            return false;
    }
    return true;
}

/* Each once. @types: borrowed strings */
static void
add_types(GPtrArray *types, char **more)
{
    for (; *more != NULL; more++) {
        if (!g_ptr_array_find_with_equal_func(types, *more, g_str_equal, NULL))
            g_ptr_array_add(types, *more);
    }
}

static char **
either(char **types, char **old_types)
{
    return types[0] != NULL ? types : old_types;
}

char **
ch_mediated_devices_types(const ChMediatedDevices *devices, const ChJson *labels)
{
    g_autoptr(GPtrArray) types = g_ptr_array_new();

    for (guint i = 0; i < devices->entries->len; i++) {
        const Entry *entry = &g_array_index(devices->entries, Entry, i);

        if (matches(entry, labels))
            add_types(types, either(entry->types, entry->old_types));
    }
    if (types->len == 0)
        return g_strdupv(either(devices->types, devices->old_types));
    g_ptr_array_add(types, NULL);
    return g_strdupv((char **)types->pdata);
}

ChTristate
ch_mediated_devices_is_enabled(const ChMediatedDevices *devices)
{
    return devices->enabled;
}
