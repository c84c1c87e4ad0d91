/* SPDX-License-Identifier: Apache-2.0 */

/* The Domain document, as launchers send it. */

#include "handler/launcher/domain.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every text to its end: a sanitizer sees what is not there. */
static void
touch(const char *text)
{
    g_assert_nonnull(text);
    g_assert_true(strlen(text) < G_MAXINT);
}

static void
touch_lists(const ChDomain *domain)
{
    for (guint i = 0; i < domain->disks->len; i++) {
        const ChDomainDisk *disk = &g_array_index(domain->disks, ChDomainDisk, i);

        touch(disk->name);
        touch(disk->file);
        touch(disk->dev);
        touch(disk->target);
    }
    for (guint i = 0; i < domain->nics->len; i++) {
        touch(g_array_index(domain->nics, ChDomainNic, i).name);
        touch(g_array_index(domain->nics, ChDomainNic, i).mac);
    }
    for (guint i = 0; i < domain->host_devices->len; i++)
        touch(domain->host_devices->pdata[i]);
    for (guint i = 0; i < domain->guest_nics->len; i++) {
        const ChGuestNic *nic = &g_array_index(domain->guest_nics, ChGuestNic, i);

        touch(nic->mac);
        touch(nic->ip);
        touch(nic->interface_name);
        for (const char **ip = nic->ips; *ip != NULL; ip++)
            touch(*ip);
    }
}

/* What is left out is refused as well. */
static void
check_parts(const char *text, gssize length)
{
    static const ChJsonPart none[] = {{NULL, NULL}};
    g_autoptr(ChJson) all = ch_json_parse(text, length, NULL);
    g_autoptr(ChJson) nothing = ch_json_parse_parts(text, length, none, NULL);

    g_assert_true((all == NULL) == (nothing == NULL));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChDomain) domain = ch_domain_parse((const char *)data, (gssize)size, &error);

    g_assert_true((domain == NULL) == (error != NULL));
    check_parts((const char *)data, (gssize)size);
    if (domain == NULL)
        return 0;
    touch(domain->namespace_);
    touch(domain->name);
    touch(domain->uid);
    touch(domain->status_text);
    touch(domain->reason_text);
    touch(domain->machine);
    touch(domain->current_memory_unit);
    touch(domain->migration.uid);
    touch(domain->backup.volumes);
    touch(domain->memory_dump.file_name);
    touch(domain->access_credential.message);
    touch(domain->os.name);
    touch(domain->freeze_status);
    touch(domain->panic.type);
    touch_lists(domain);
    (void)ch_domain_is_migrating(domain);
    return 0;
}
