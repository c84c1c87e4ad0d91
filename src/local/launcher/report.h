/* SPDX-License-Identifier: Apache-2.0 */

/*
 * report: the domain as it is now, as text: what GetDomain answers and the domain events carry.
 *
 * Thread: a worker's. Blocks: on libvirt. Spec 03 §7.2 (GetDomain), §9.3 (events).
 */

#pragma once

#include "local/launcher/domain-json.h"
#include "local/launcher/guest-store.h"
#include "local/launcher/metadata.h"
#include "local/launcher/virt.h"

/* Whose domain this launcher runs; all borrowed. */
typedef struct {
    ChVirt *virt;
    ChMetadata *metadata;
    ChGuestStore *guest;
    const char *name;
    const char *namespace_;
    const char *uid;
    const char *domain_name;
} ChReporter;

/* What the RPCs of the same names answer. (transfer full): NULL with CH_VIRT_ERROR or
 * CH_ERROR_NOT_FOUND. No domain: "" from domain(), an error from stats(). */
char *ch_report_domain(const ChReporter *reporter, GError **error);
char *ch_report_stats(const ChReporter *reporter, GError **error);
char *ch_report_qemu_version(const ChReporter *reporter, GError **error);

/**
 * ch_report_event: for domain events: with the VMI's uid, and a deletion timestamp when the domain
 * is gone.
 * @out_is_deleted: (out): the domain is gone
 */
bool
ch_report_event(const ChReporter *reporter, char **out_text, bool *out_is_deleted, GError **error);
