/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/virt.h"

#include <libvirt/virterror.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "lib/base/errors.h"

G_DEFINE_QUARK(ch - virt - error, ch_virt_error)

#define LIBVIRT_PREFIX "virError("

/* A daemon that answers none of so many probes is as good as dead. */
#define PROBE_INTERVAL_S 5
#define MAX_PROBES       5

/* A connection with what is registered on it. Registrations keep a connection alive. */
typedef struct {
    virConnectPtr connection; /* (nullable) */
    int callbacks[4];         /* ids; negative: not registered */
} Link;

struct ChVirt {
    char *uri;
    ChVirtListener listener;
    gpointer data;
    pthread_t event_thread;
    bool is_started;
    int stop_timer; /* only wakes the event thread up */
    gint is_ending; /* atomic */

    pthread_mutex_t lock; /* guards the link itself, not the use of its connection */
    Link link;
    guint n_links; /* so far */
};

bool
ch_virt_fail(GError **error)
{
    const virErrorPtr last = virGetLastError();

    if (last == NULL) {
        g_set_error_literal(error, CH_VIRT_ERROR, 0, "libvirt failed without an error");
        return false;
    }
    g_autofree char *text = g_utf8_make_valid(last->message == NULL ? "" : last->message, -1);
    g_set_error(error,
                CH_VIRT_ERROR,
                last->code,
                LIBVIRT_PREFIX "Code=%d, Domain=%d, Message='%s')",
                last->code,
                last->domain,
                text);
    return false;
}

char *
ch_virt_error_text(const GError *error)
{
    if (error->domain == CH_VIRT_ERROR && g_str_has_prefix(error->message, LIBVIRT_PREFIX))
        return g_strconcat("LibvirtError(", error->message + strlen(LIBVIRT_PREFIX), NULL);
    return g_strdup(error->message);
}

static void
ignore_error(void *data, virErrorPtr error)
{
}

static void
ignore_timer(int timer, void *data)
{
}

static void *
run_events(void *data)
{
    ChVirt *virt = data;

    while (!g_atomic_int_get(&virt->is_ending))
        if (virEventRunDefaultImpl() < 0)
            g_error("libvirt's event loop failed: %s", virGetLastErrorMessage());
    return NULL;
}

static int
on_lifecycle(virConnectPtr connection, virDomainPtr domain, int event, int detail, void *data)
{
    ChVirt *virt = data;
    ChVirtEvent meaning = CH_VIRT_CHANGED;

    if ((event == VIR_DOMAIN_EVENT_DEFINED && detail == VIR_DOMAIN_EVENT_DEFINED_ADDED) ||
        (event == VIR_DOMAIN_EVENT_STARTED && detail == VIR_DOMAIN_EVENT_STARTED_MIGRATED))
        meaning = CH_VIRT_DEFINED;
    else if (event == VIR_DOMAIN_EVENT_RESUMED)
        meaning = CH_VIRT_RESUMED;
    else if (event == VIR_DOMAIN_EVENT_SUSPENDED)
        meaning = CH_VIRT_SUSPENDED;
    virt->listener(virt->data, meaning);
    return 0;
}

static void
on_agent(virConnectPtr connection, virDomainPtr domain, int state, int reason, void *data)
{
    ChVirt *virt = data;

    virt->listener(virt->data,
                   state == VIR_CONNECT_DOMAIN_EVENT_AGENT_LIFECYCLE_STATE_CONNECTED
                       ? CH_VIRT_AGENT_CONNECTED
                       : CH_VIRT_AGENT_DISCONNECTED);
}

/* A device that was plugged in, or that the guest let go of. */
static void
on_device(virConnectPtr connection, virDomainPtr domain, const char *alias, void *data)
{
    ChVirt *virt = data;

    virt->listener(virt->data, CH_VIRT_CHANGED);
}

void
ch_virt_tell_change(ChVirt *virt)
{
    virt->listener(virt->data, CH_VIRT_CHANGED);
}

ChVirt *
ch_virt_new(const char *uri, ChVirtListener listener, gpointer data)
{
    ChVirt *virt = g_new0(ChVirt, 1);

    virt->uri = g_strdup(uri);
    virt->listener = listener;
    virt->data = data;
    pthread_mutex_init(&virt->lock, NULL);
    if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0)
        g_error("libvirt does not initialize: %s", virGetLastErrorMessage());
    virSetErrorFunc(NULL, ignore_error);
    virt->stop_timer = virEventAddTimeout(-1, ignore_timer, NULL, NULL);
    return virt;
}

void
ch_virt_start(ChVirt *virt)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&virt->event_thread, NULL, run_events, virt) != 0)
        g_error("no thread for libvirt's events");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_setname_np(virt->event_thread, "virt-events");
    virt->is_started = true;
}

static void
link_close(const Link *link)
{
    if (link->connection == NULL)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(link->callbacks); i++)
        if (link->callbacks[i] >= 0) /* a dead daemon does not hear it; libvirt forgets it anyway */
            (void)virConnectDomainEventDeregisterAny(link->connection, link->callbacks[i]);
    virConnectClose(link->connection);
}

void
ch_virt_stop(ChVirt *virt)
{
    if (virt == NULL || !virt->is_started)
        return;
    g_atomic_int_set(&virt->is_ending, 1);
    virEventUpdateTimeout(virt->stop_timer, 0);
    pthread_join(virt->event_thread, NULL);
    virt->is_started = false;
}

void
ch_virt_free(ChVirt *virt)
{
    if (virt == NULL)
        return;
    ch_virt_stop(virt);
    link_close(&virt->link);
    pthread_mutex_destroy(&virt->lock);
    g_free(virt->uri);
    g_free(virt);
}

/* (transfer full) (nullable): a reference to the connection if it lives */
static virConnectPtr
ref_living(ChVirt *virt, guint *out_n_links)
{
    virConnectPtr connection = NULL;

    pthread_mutex_lock(&virt->lock);
    if (virt->link.connection != NULL && virConnectRef(virt->link.connection) == 0)
        connection = virt->link.connection;
    *out_n_links = virt->n_links;
    pthread_mutex_unlock(&virt->lock);
    if (connection != NULL && virConnectIsAlive(connection) != 1)
        g_clear_pointer(&connection, virConnectClose);
    return connection;
}

static bool
link_open(ChVirt *virt, Link *out_link, GError **error)
{
    Link link = {virConnectOpen(virt->uri), {-1, -1, -1, -1}};

    if (link.connection == NULL)
        return ch_virt_fail(error);
    /* libvirt declares every callback as the generic one and casts back by the event's number. */
    const struct {
        int event;
        virConnectDomainEventGenericCallback callback;
    } events[] = {
        {VIR_DOMAIN_EVENT_ID_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle)},
        {VIR_DOMAIN_EVENT_ID_AGENT_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(on_agent)},
        {VIR_DOMAIN_EVENT_ID_DEVICE_ADDED, VIR_DOMAIN_EVENT_CALLBACK(on_device)},
        {VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, VIR_DOMAIN_EVENT_CALLBACK(on_device)},
    };
    bool is_complete = true;

    G_STATIC_ASSERT(G_N_ELEMENTS(events) == G_N_ELEMENTS(link.callbacks));
    for (gsize i = 0; i < G_N_ELEMENTS(events); i++) {
        link.callbacks[i] = virConnectDomainEventRegisterAny(
            link.connection, NULL, events[i].event, events[i].callback, virt, NULL);
        is_complete = is_complete && link.callbacks[i] >= 0;
    }
    if (!is_complete || virConnectSetKeepAlive(link.connection, PROBE_INTERVAL_S, MAX_PROBES) < 0) {
        ch_virt_fail(error);
        link_close(&link);
        return false;
    }
    *out_link = link;
    return true;
}

/* Two threads may open at once: the second to come takes the first one's connection, or every event
 * would be heard twice. @n_seen: links when this one was found missing */
static virConnectPtr
install(ChVirt *virt, const Link *opened, guint n_seen)
{
    Link unneeded = *opened;

    pthread_mutex_lock(&virt->lock);
    const bool is_first = virt->n_links == n_seen;
    if (is_first) {
        unneeded = virt->link;
        virt->link = *opened;
        virt->n_links++;
    }
    virConnectPtr connection = virt->link.connection;
    virConnectRef(connection);
    pthread_mutex_unlock(&virt->lock);
    link_close(&unneeded);
    if (is_first && n_seen > 0)
        virt->listener(virt->data, CH_VIRT_RECONNECTED);
    return connection;
}

virConnectPtr
ch_virt_connect(ChVirt *virt, GError **error)
{
    guint n_links = 0;
    Link link;
    virConnectPtr connection = ref_living(virt, &n_links);

    if (connection != NULL)
        return connection;
    return link_open(virt, &link, error) ? install(virt, &link, n_links) : NULL;
}

bool
ch_virt_check(ChVirt *virt, GError **error)
{
    g_autoptr(virConnect) connection = ch_virt_connect(virt, error);

    return connection != NULL;
}

ChVirtLookup
ch_virt_lookup(ChVirt *virt, const char *name, virDomainPtr *out_domain, GError **error)
{
    g_autoptr(virConnect) connection = ch_virt_connect(virt, error);

    if (connection == NULL)
        return CH_VIRT_LOOKUP_FAILED;
    virDomainPtr domain = virDomainLookupByName(connection, name);
    if (domain != NULL) {
        *out_domain = domain;
        return CH_VIRT_LOOKUP_FOUND;
    }
    if (virGetLastErrorCode() == VIR_ERR_NO_DOMAIN)
        return CH_VIRT_LOOKUP_MISSING;
    ch_virt_fail(error);
    return CH_VIRT_LOOKUP_FAILED;
}
