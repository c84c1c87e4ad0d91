/* SPDX-License-Identifier: Apache-2.0 */

/*
 * virt: the connection to libvirt, its events and its errors.
 *
 * Theory of operation: libvirt's own event loop runs on a thread of its own; callbacks come there
 * and only pass on what happened. Calls are made by workers, each on a reference of the one
 * connection. A connection that died, or whose daemon is silent for half a minute, fails its calls
 * and is opened anew by whoever needs it next, or by the owner's regular ch_virt_check(); the
 * listener then hears CH_VIRT_RECONNECTED. Spec 03 §6.3, §9.3.
 */

#pragma once

#include <glib.h>
#include <libvirt/libvirt.h>
#include <stdbool.h>

/* Code is libvirt's; the message has libvirt's rendering, "virError(Code=...)". */
#define CH_VIRT_ERROR (ch_virt_error_quark())
GQuark ch_virt_error_quark(void);

/* Raises the calling thread's last libvirt error. Returns: false */
bool ch_virt_fail(GError **error);
/* (transfer full): as it is told to the agent: an error straight from libvirt reads
 * "LibvirtError(...)", one with words before it stays as it is (spec 03 §7.1) */
char *ch_virt_error_text(const GError *error);

typedef enum {
    CH_VIRT_DEFINED, /* a new domain */
    CH_VIRT_CHANGED, /* any other lifecycle change, undefining, and devices that come and go, or are
                        changed here */
    CH_VIRT_RESUMED,
    CH_VIRT_SUSPENDED,
    CH_VIRT_AGENT_CONNECTED,
    CH_VIRT_AGENT_DISCONNECTED,
    CH_VIRT_RECONNECTED,
} ChVirtEvent;

/* On libvirt's thread, or with CHANGED and RECONNECTED on any worker's: pass on, do not block. */
typedef void (*ChVirtListener)(gpointer data, ChVirtEvent event);

typedef struct ChVirt ChVirt;

/* Once per process, as libvirt's event loop is the process's. @uri: copied */
ChVirt *ch_virt_new(const char *uri, ChVirtListener listener, gpointer data);
/* Starts the event thread, when the listener can be called. */
void ch_virt_start(ChVirt *virt);
/* Ends the event thread: the listener hears no event any more. */
void ch_virt_stop(ChVirt *virt);
/* Stops, and closes the connection. No worker uses it any more. */
void ch_virt_free(ChVirt *virt);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChVirt, ch_virt_free)

/**
 * ch_virt_connect:
 *
 * Returns: (transfer full): a reference for the caller; NULL with CH_VIRT_ERROR. Blocks.
 */
virConnectPtr ch_virt_connect(ChVirt *virt, GError **error);
/* Opens the connection if there is none or it died. Blocks. */
bool ch_virt_check(ChVirt *virt, GError **error);

/* The listener hears CHANGED: libvirt has no event for what the caller did to the domain. */
void ch_virt_tell_change(ChVirt *virt);

typedef enum {
    CH_VIRT_LOOKUP_FAILED = 0,
    CH_VIRT_LOOKUP_FOUND,
    CH_VIRT_LOOKUP_MISSING,
} ChVirtLookup;

/**
 * ch_virt_lookup:
 * @out_domain: (out) (transfer full): with FOUND only
 *
 * Returns: FAILED with @error. Blocks.
 */
ChVirtLookup
ch_virt_lookup(ChVirt *virt, const char *name, virDomainPtr *out_domain, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(virDomain, virDomainFree)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(virConnect, virConnectClose)
