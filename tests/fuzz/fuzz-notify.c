/* SPDX-License-Identifier: Apache-2.0 */

/* What launchers report: the bytes of HandleDomainEvent's and HandleK8sEvent's requests, through
 * protobuf and JSON to the handlers. The first byte says which call, and whether it came through
 * the pipe of a VM: nothing else is told of, and only of that VM. */

#include "handler/watch/notify-calls.h"
#include "lib/grpc/message.h"
#include "notify.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEY "default/vm"
#define UID "u1"

enum { IS_K8S_EVENT = 1, IS_FROM_PIPE = 2 };

typedef struct {
    guint n_told;
} World;

static void
on_domain(gpointer data, ChKnownDomain *domain, bool is_deleted)
{
    World *world = data;

    g_assert_nonnull(domain->key);
    g_assert_nonnull(domain->uid);
    g_assert_nonnull(domain->status);
    g_assert_true(domain->uid == domain->domain->uid);
    g_assert_true(ch_known_domain_is_of(domain, KEY, UID));
    world->n_told++;
}

static void
on_relist(gpointer data, const char *key)
{
    World *world = data;

    g_assert_cmpstr(key, ==, KEY);
    world->n_told++;
}

static const char *
on_event(gpointer data, const ChLauncherEvent *event)
{
    World *world = data;

    g_assert_cmpstr(event->uid, ==, UID);
    g_assert_nonnull(event->namespace_);
    g_assert_nonnull(event->name);
    g_assert_nonnull(event->type);
    g_assert_nonnull(event->reason);
    g_assert_nonnull(event->message);
    world->n_told++;
    return NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ChNotifyHandlers handlers = {
        .on_domain = on_domain, .on_relist = on_relist, .on_event = on_event};
    g_autoptr(ChNotifyOrigin) origin = ch_notify_origin_new("default", "vm", UID);
    const uint8_t flags = size > 0 ? data[0] : 0;
    const bool is_k8s_event = flags & IS_K8S_EVENT;
    const bool is_from_pipe = flags & IS_FROM_PIPE;
    World world = {0};
    g_autoptr(GBytes) bytes = g_bytes_new(data + 1, size > 0 ? size - 1 : 0);
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *message;
    bool ok;

    if (size == 0)
        return 0;
    message = ch_grpc_message_unpack(is_k8s_event
                                         ? &kubevirt__notify__v1__k8s_event_request__descriptor
                                         : &kubevirt__notify__v1__domain_event_request__descriptor,
                                     bytes,
                                     &error);
    if (message == NULL) {
        g_assert_nonnull(error);
        return 0;
    }
    ok = (is_k8s_event ? ch_notify_k8s_event : ch_notify_domain_event)(
        &handlers, &world, is_from_pipe ? origin : NULL, message, &error);
    g_assert_true(ok == (error == NULL) && (is_from_pipe || !ok));
    g_assert_cmpuint(world.n_told, <=, ok ? 1 : 0);
    g_assert_true(!is_k8s_event || !ok || world.n_told == 1);
    protobuf_c_message_free_unpacked(message, NULL);
    return 0;
}
