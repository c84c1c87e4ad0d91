/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/watch/notify-calls.h"

#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/json/json.h"
#include "notify.pb-c.h"

typedef Kubevirt__Notify__V1__DomainEventRequest DomainEventRequest;
typedef Kubevirt__Notify__V1__K8sEventRequest K8sEventRequest;

/* The documents of a domain event, both optional. */
typedef struct {
    ChKnownDomain *domain;
    ChJson *status;
} DomainEvent;

static void
domain_event_clear(DomainEvent *event)
{
    ch_known_domain_unref(event->domain);
    ch_json_unref(event->status);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DomainEvent, domain_event_clear)

static bool
parse_domain_event(const DomainEventRequest *request, DomainEvent *out_event, GError **error)
{
    const ProtobufCBinaryData *domain = &request->domain_json;
    const ProtobufCBinaryData *status = &request->status_json;

    if (domain->len > 0) {
        out_event->domain = ch_known_domain_new((const char *)domain->data, domain->len, error);
        if (out_event->domain == NULL) {
            ch_log_error(NULL, *error, "Failed to unmarshal domain json object");
            return false;
        }
    }
    if (status->len > 0) {
        out_event->status = ch_json_parse((const char *)status->data, (gssize)status->len, error);
        if (out_event->status == NULL) {
            ch_log_error(NULL, *error, "Failed to unmarshal status json object");
            return false;
        }
    }
    return true;
}

/* What came straight to the shared socket could be anybody's. */
static bool
has_origin(const ChNotifyOrigin *origin, GError **error)
{
    if (origin != NULL)
        return true;
    ch_fail(error, CH_ERROR_INVALID, "reports are taken through the pipe of the VMI's pod only");
    ch_log_error(NULL, *error, "ignoring a report that came straight to the notify socket");
    return false;
}

static bool
check_origin(const ChNotifyOrigin *origin, const ChKnownDomain *domain, GError **error)
{
    if (domain == NULL || ch_known_domain_is_of(domain, origin->key, origin->uid))
        return true;
    ch_fail(error,
            CH_ERROR_INVALID,
            "domain %s (UID %.64s) is not that of this pipe, %s (UID %s)",
            domain->key,
            domain->uid,
            origin->key,
            origin->uid);
    ch_log_error(NULL, *error, "ignoring a launcher's report about another VM");
    return false;
}

static void
dispatch_domain_event(const ChNotifyHandlers *handlers,
                      gpointer data,
                      const ChNotifyOrigin *origin,
                      const char *type,
                      const DomainEvent *event)
{
    bool is_deleted = g_str_equal(type, "DELETED");

    if (g_str_equal(type, "ERROR")) {
        const char *message = ch_json_string_at(event->status, "message");

        ch_log_info(NULL, "Domain error event with message: %s", message != NULL ? message : "");
        handlers->on_relist(data, origin->key);
    } else if (event->domain != NULL &&
               (is_deleted || g_str_equal(type, "ADDED") || g_str_equal(type, "MODIFIED"))) {
        handlers->on_domain(data, event->domain, is_deleted);
    }
}

bool
ch_notify_domain_event(const ChNotifyHandlers *handlers,
                       gpointer data,
                       const ChNotifyOrigin *origin,
                       const ProtobufCMessage *message,
                       GError **error)
{
    const DomainEventRequest *request = (const DomainEventRequest *)message;
    g_auto(DomainEvent) event = {NULL, NULL};

    if (!has_origin(origin, error) || !parse_domain_event(request, &event, error) ||
        !check_origin(origin, event.domain, error))
        return false;
    dispatch_domain_event(handlers, data, origin, request->event_type, &event);
    return true;
}

static const char *
text_at(const ChJson *object, const char *key)
{
    const char *text = ch_json_string_at(object, key);

    return text != NULL ? text : "";
}

/* Returns: NULL when the event was recorded */
static const char *
record_event(const ChNotifyHandlers *handlers,
             gpointer data,
             const ChNotifyOrigin *origin,
             const ChJson *event)
{
    const ChJson *object = ch_json_at(event, "involvedObject");
    const ChLauncherEvent launcher_event = {
        .namespace_ = text_at(object, "namespace"),
        .name = text_at(object, "name"),
        .uid = text_at(object, "uid"),
        .type = text_at(event, "type"),
        .reason = text_at(event, "reason"),
        .message = text_at(event, "message"),
    };

    if (!g_str_equal(origin->uid, launcher_event.uid))
        return "VMI not found";
    return handlers->on_event(data, &launcher_event);
}

bool
ch_notify_k8s_event(const ChNotifyHandlers *handlers,
                    gpointer data,
                    const ChNotifyOrigin *origin,
                    const ProtobufCMessage *message,
                    GError **error)
{
    const ProtobufCBinaryData *json = &((const K8sEventRequest *)message)->event_json;
    g_autoptr(ChJson) event = NULL;
    const char *problem;

    if (!has_origin(origin, error))
        return false;
    event = ch_json_parse((const char *)json->data, (gssize)json->len, error);
    if (event == NULL) {
        g_prefix_error(error, "Error unmarshalling k8s event: ");
        return false;
    }
    problem = record_event(handlers, data, origin, event);
    return problem == NULL || ch_fail(error, CH_ERROR_INVALID, "%s", problem);
}
