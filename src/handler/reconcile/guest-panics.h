/* SPDX-License-Identifier: Apache-2.0 */

/*
 * guest-panics: counts panics of guests, each once, for the metric
 * kubevirt_vmi_guest_os_panic_total.
 *
 * Launchers report how often their guest panicked; a count that is higher than the last one seen is
 * one more panic. Thread: any; nothing blocks. Spec: 02 §13.
 */

#pragma once

#include "handler/launcher/domain.h"
#include "lib/base/counter.h"

typedef struct ChGuestPanics ChGuestPanics;

ChGuestPanics *ch_guest_panics_new(void);
void ch_guest_panics_free(ChGuestPanics *panics);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChGuestPanics, ch_guest_panics_free)

/* Looks at what is reported of the VMI @uid. @domain: (nullable) */
void ch_guest_panics_note(ChGuestPanics *panics,
                          const char *namespace_,
                          const char *name,
                          const char *uid,
                          const ChDomain *domain);

/* The VMI was cleaned up: what was seen of it is forgotten, what was counted stays. */
void ch_guest_panics_forget(ChGuestPanics *panics, const char *uid);

/* Borrowed: what the metrics page prints. */
ChCounter *ch_guest_panics_peek_counter(const ChGuestPanics *panics);
