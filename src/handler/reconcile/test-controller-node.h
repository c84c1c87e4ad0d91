/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-controller-node: what the controller works with, in one process: an API server, a launcher,
 * the launcher's pod, the snapshots. Included by test-controller*.c and test-observe.c only.
 *
 * The loop is turned by the test's thread, which also is the API server's; passes run on the pool,
 * the launcher on a loop of its own. Everything that others would see is written down: in `trace`
 * what has an order (hooks, RPCs, writes), in `events` what was recorded.
 */

#pragma once

#include "handler/hands/test-fake-pod.h" /* lint: include, a start needs a pod */
#include "handler/launcher/test-fake-launcher.h"
#include "handler/pod/pod.h"
#include "handler/reconcile/controller.h"
#include "handler/reconcile/test-support.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/kube/test-server.h"

#define NODE_KEY    "ns/vm"
#define NODE_POD    FAKE_POD_UID
#define NODE_SOCKET "/pods/" NODE_POD "/volumes/kubernetes.io~empty-dir/sockets/launcher-sock"

typedef struct {
    ChLoop *loop;
    ChWorkerPool *pool;
    TestServer api;
    ChKubeClient *kube;
    ChRecorder *recorder;
    char *private_dir;
    ChGhostRecords *records;
    ChGuestPanics *panics;
    ChCounter *syncs;
    FakeLauncher fake;
    FakePod pod;
    ChHands *hands; /* NULL without root: no pod */
    ChLauncherClients *clients;
    ChController *controller;
    ChClusterConfig *config;

    /* Snapshots. */
    ChObject *vmi;       /* owned (nullable) */
    char *domain;        /* owned (nullable) */
    char *cluster_vmi;   /* owned (nullable): what only the API server has */
    guint n_looked_up;   /* times that the VMI was asked for: more with each pass */
    bool has_socket;     /* in the pod */
    bool has_socket_dir; /* of the pod */
    bool is_marked;      /* the launcher counts as dead */
    bool has_clean_up;   /* the domain was dropped */
    bool has_selinux;
    int64_t echo_timeout_us; /* 0: the usual one */

    int put_status;                /* 0: stored */
    const char *failing_hook;      /* (nullable) */
    char *trackers;                /* owned (nullable): items of the list; NULL: no such kind */
    int list_status, patch_status; /* of trackers; 0: answered */
    GString *events;               /* "Reason: message; " */
    char *last_put;                /* owned (nullable): body */
} Node;

/* Trace: the launcher's call log, so that hooks and writes have their place among the RPCs. */
static inline void
node_trace(Node *node, const char *prefix, const char *what)
{
    pthread_mutex_lock(&node->fake.lock);
    g_string_append_printf(node->fake.calls, " %s%s", prefix, what);
    pthread_mutex_unlock(&node->fake.lock);
}

/* (transfer full): what was done since the last look, without the documents that RPCs carry */
static inline char *
node_take_trace(Node *node)
{
    g_autofree char *calls = fake_launcher_take_calls(&node->fake);
    GString *trace = g_string_new(NULL);
    int depth = 0;

    for (const char *c = calls; *c != '\0'; c++) {
        depth -= *c == ')';
        if (depth == 0 && *c != '(' && *c != ')')
            g_string_append_c(trace, *c);
        depth += *c == '(';
    }
    return g_string_free(trace, FALSE);
}

/* --- the API server --- */

static inline void
node_serve_put(Node *node, TestRequest *request)
{
    g_autoptr(ChJson) body = ch_json_parse(request->body, -1, NULL);
    g_autofree char *refusal =
        g_strdup_printf("{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Conflict\","
                        "\"code\":%d}",
                        node->put_status);

    node_trace(node, "PUT:", ch_json_string_at(body, "status", "phase"));
    g_free(node->last_put);
    node->last_put = g_strdup(request->body);
    if (node->put_status != 0)
        test_reply(request->bev, node->put_status, NULL, refusal);
    else
        test_reply(request->bev, 200, NULL, request->body);
}

static inline void
node_serve_trackers(Node *node, TestRequest *request)
{
    const bool is_list = g_str_equal(request->method, "GET");
    const int status = is_list ? node->list_status : node->patch_status;
    g_autofree char *list =
        g_strdup_printf("{\"kind\":\"VirtualMachineBackupTrackerList\",\"items\":[%s]}",
                        node->trackers != NULL ? node->trackers : "");
    g_auto(GStrv) parts = g_strsplit(request->target, "/", -1);

    if (!is_list) {
        g_assert_cmpuint(g_strv_length(parts), ==, 9); /* .../NAME/status */
        g_assert_cmpstr(parts[8], ==, "status");
        g_assert_nonnull(strstr(request->headers, "content-type: application/merge-patch+json"));
        g_assert_cmpstr(
            request->body, ==, "{\"status\":{\"checkpointRedefinitionRequired\":true}}");
        node_trace(node, "PATCH:", parts[7]);
    }
    if (node->trackers == NULL)
        test_reply(request->bev, 404, NULL, "404 page not found\n");
    else if (status != 0)
        test_reply(request->bev, status, NULL, "{\"kind\":\"Status\",\"status\":\"Failure\"}");
    else
        test_reply(request->bev, 200, NULL, is_list ? list : "{}");
}

static inline void
node_serve(gpointer data, TestRequest *request)
{
    Node *node = data;
    g_autoptr(ChJson) body =
        request->body[0] != '\0' ? ch_json_parse(request->body, -1, NULL) : NULL;

    if (strstr(request->target, "/virtualmachinebackuptrackers") != NULL) {
        node_serve_trackers(node, request);
    } else if (g_str_equal(request->method, "PUT")) {
        node_serve_put(node, request);
    } else if (g_str_equal(request->method, "POST")) {
        g_string_append_printf(node->events,
                               "%s: %s; ",
                               ch_json_string_at(body, "reason"),
                               ch_json_string_at(body, "message"));
        test_reply(request->bev, 201, NULL, request->body);
    } else if (g_str_equal(request->method, "GET")) {
        g_autofree char *list =
            g_strdup_printf("{\"kind\":\"VirtualMachineInstanceList\",\"items\":[%s]}",
                            node->cluster_vmi != NULL ? node->cluster_vmi : "");

        test_reply(request->bev, 200, NULL, list);
    } else { /* an event that was there before */
        g_string_append(node->events, "again; ");
        test_reply(request->bev, 200, NULL, "{\"kind\":\"Event\",\"apiVersion\":\"v1\"}");
    }
}

/* --- the seam to launchers and pods --- */

static inline char *
node_find_socket(gpointer data, const char *pod_uid, bool *out_is_unresponsive)
{
    const Node *node = data;

    *out_is_unresponsive = node->is_marked;
    return node->has_socket ? g_strdup(NODE_SOCKET) : NULL;
}

static inline bool
node_has_socket_dir(gpointer data, const char *pod_uid)
{
    return ((Node *)data)->has_socket_dir;
}

static inline bool
node_is_unresponsive(gpointer data, const char *socket_path)
{
    const Node *node = data;

    return node->is_marked || !node->has_socket;
}

static inline bool
node_is_live(gpointer data, const char *socket_path)
{
    return !((Node *)data)->is_marked;
}

static inline bool
node_record(
    gpointer data, const ChLauncherVmi *vmi, const char *path, bool *out_is_new, GError **error)
{
    Node *node = data;
    g_autoptr(ChGhostRecord) found =
        ch_ghost_records_find(node->records, vmi->namespace_, vmi->name);

    *out_is_new = found == NULL;
    return ch_ghost_records_add(node->records, vmi->namespace_, vmi->name, path, vmi->uid, error);
}

static inline void
node_forget_record(gpointer data, const char *namespace_, const char *name, const char *uid)
{
    Node *node = data;
    g_autoptr(ChGhostRecord) found = ch_ghost_records_find(node->records, namespace_, name);

    if (found != NULL && g_str_equal(found->uid, uid))
        g_assert_true(ch_ghost_records_remove(node->records, namespace_, name, NULL));
}

/* The pod is a real one where there is root, the launcher the fake one. */
static inline bool
node_connect(gpointer data, const char *path, int *out_fd, gpointer *out_pod, GError **error)
{
    Node *node = data;
    ch_autofd int fd = -EBADF;

    if (!node->has_socket)
        return ch_fail(error, CH_ERROR_TIMEOUT, "context deadline exceeded");
    *out_pod = NULL;
    if (node->hands != NULL) {
        *out_pod = ch_pod_connect(node->hands, NODE_POD, &fd, error);
        g_assert_nonnull(*out_pod);
    }
    *out_fd = fake_launcher_connect(&node->fake);
    return true;
}

static inline bool
node_reconnect(gpointer data, gpointer pod, int *out_fd, GError **error)
{
    Node *node = data;
    bool has_left;

    pthread_mutex_lock(&node->fake.lock);
    has_left = node->fake.has_left;
    pthread_mutex_unlock(&node->fake.lock);
    if (has_left)
        return ch_fail_errno(error, ECONNREFUSED, "cannot connect");
    *out_fd = fake_launcher_connect(&node->fake);
    return true;
}

static inline gpointer
node_open_pipe(gpointer data, gpointer pod, const ChLauncherVmi *vmi, GError **error)
{
    return data;
}

static inline void
node_close_pipe(gpointer data, gpointer pipe)
{
}

static inline void
node_release(gpointer data, gpointer pod)
{
    ch_pod_free(pod);
}

static const ChLauncherSeam node_launcher_seam = {
    .find_socket = node_find_socket,
    .has_socket_dir = node_has_socket_dir,
    .is_unresponsive = node_is_unresponsive,
    .is_live = node_is_live,
    .record = node_record,
    .forget = node_forget_record,
    .connect = node_connect,
    .reconnect = node_reconnect,
    .open_pipe = node_open_pipe,
    .close_pipe = node_close_pipe,
    .release = node_release,
};

/* --- the seam to the controller's snapshots --- */

static inline ChObject *
node_lookup_vmi(gpointer data, const char *key)
{
    Node *node = data;

    node->n_looked_up++;
    return g_str_equal(key, NODE_KEY) ? node->vmi : NULL;
}

static inline ChDomain *
node_lookup_domain(gpointer data, const char *key)
{
    const Node *node = data;

    return node->domain != NULL ? ch_domain_parse(node->domain, -1, NULL) : NULL;
}

static inline void
node_forget_domain(gpointer data, const char *key, const char *uid)
{
    Node *node = data;

    node->has_clean_up = true;
    g_clear_pointer(&node->domain, g_free);
}

static inline ChClusterConfig *
node_peek_config(gpointer data)
{
    return ((Node *)data)->config;
}

static inline bool
node_knows_uid(gpointer data, const char *uid)
{
    const Node *node = data;

    return node->vmi != NULL && g_str_equal(node->vmi->uid, uid);
}

static inline bool
node_run_hooks(gpointer data, ChHook hook, const char *vmi_json, GError **error)
{
    Node *node = data;
    g_autoptr(ChJson) vmi = ch_json_parse(vmi_json, -1, NULL);

    g_assert_cmpstr(ch_json_string_at(vmi, "metadata", "name"), ==, "vm");
    node_trace(node, "hook:", ch_hook_text(hook));
    return g_strcmp0(node->failing_hook, ch_hook_text(hook)) != 0 ||
           ch_fail(error, CH_ERROR_FAILED, "node hook %s failed", ch_hook_text(hook));
}

/* --- life --- */

static inline void
node_init_pod(Node *node)
{
    g_autoptr(GError) error = NULL;

    if (geteuid() != 0)
        return;
    fake_pod_init(&node->pod);
    node->hands =
        ch_hands_start(NULL, &(ChHandsPlaces){node->pod.pods_dir, "/nonexistent", NULL, 0}, &error);
    g_assert_no_error(error);
    fake_pod_start_launcher(&node->pod, false);
}

static inline void
node_begin_controller(Node *node)
{
    node->pool = ch_worker_pool_new(1, 4);
    node->controller = ch_controller_new(&(ChReconcileEnv){
        .loop = node->loop,
        .pool = node->pool,
        .kube = node->kube,
        .recorder = node->recorder,
        .clients = node->clients,
        .hands = node->hands,
        .records = node->records,
        .panics = node->panics,
        .syncs = node->syncs,
        .echo_timeout_us = node->echo_timeout_us,
        .node_name = "node01",
        .architecture = "amd64",
        .cpu_model = "kvm64",
        .selinux_context = node->has_selinux ? NULL : "none",
        .private_dir = node->private_dir,
        .pods_dir = node->pod.pods_dir != NULL ? node->pod.pods_dir : "/nonexistent",
        .seam = {.lookup_vmi = node_lookup_vmi,
                 .lookup_domain = node_lookup_domain,
                 .forget_domain = node_forget_domain,
                 .peek_config = node_peek_config,
                 .knows_uid = node_knows_uid,
                 .run_hooks = node_run_hooks},
        .seam_data = node,
    });
}

/* As the agent ends: no pass runs any more, what is on disk stays. */
static inline void
node_end_controller(Node *node)
{
    ch_controller_stop(node->controller);
    ch_worker_pool_free(node->pool);
    ch_controller_free(node->controller);
}

/* The node has SELinux after all; before the first pass. */
static inline void
node_use_selinux(Node *node)
{
    node_end_controller(node);
    node->has_selinux = true;
    node_begin_controller(node);
}

static inline ChClusterConfig *
node_config(bool use_emulation)
{
    g_autofree char *text =
        g_strdup_printf("{'spec':{'configuration':{'developerConfiguration':{'useEmulation':%s}}}}",
                        use_emulation ? "true" : "false");
    g_autoptr(ChJson) kubevirt = parse_json(text);
    g_autoptr(GError) error = NULL;
    ChClusterConfig *config = ch_cluster_config_parse(kubevirt, "node01", &error);

    g_assert_no_error(error);
    return config;
}

static inline void
node_set_up(Node *node, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    node_init_pod(node); /* forks: before there are threads */
    node->loop = ch_loop_new();
    test_server_init(&node->api, node->loop, node_serve, node);
    node->kube = test_client_new(node->loop, &node->api, NULL);
    node->recorder = ch_recorder_new(node->kube, "virt-handler", "node01");
    node->private_dir = g_dir_make_tmp("controller-XXXXXX", &error);
    node->records = ch_ghost_records_load(node->private_dir, &error);
    g_assert_no_error(error);
    fake_launcher_start(&node->fake);
    node->config = node_config(true);
    node->events = g_string_new(NULL);
    node->has_socket = node->has_socket_dir = true;
    node->clients = ch_launcher_clients_new(node->loop, "node01", &node_launcher_seam, node);
    node->panics = ch_guest_panics_new();
    node->syncs = ch_controller_sync_counter_new();
    node_begin_controller(node);
}

static inline void
node_tear_down(Node *node, gconstpointer data)
{
    node_end_controller(node);
    ch_guest_panics_free(node->panics);
    ch_counter_free(node->syncs);
    ch_launcher_clients_free(node->clients);
    ch_recorder_free(node->recorder);
    ch_kube_client_free(node->kube);
    test_server_clear(&node->api);
    ch_loop_free(node->loop);
    fake_launcher_stop(&node->fake);
    ch_ghost_records_free(node->records);
    test_tree_remove(node->private_dir);
    g_free(node->private_dir);
    if (node->hands != NULL) {
        fake_pod_kill_launcher(&node->pod); /* it holds copies of the channels */
        ch_hands_stop(node->hands);
        fake_pod_clear(&node->pod);
    }
    ch_cluster_config_unref(node->config);
    ch_object_unref(node->vmi);
    g_free(node->domain);
    g_free(node->cluster_vmi);
    g_free(node->trackers);
    g_free(node->last_put);
    g_string_free(node->events, TRUE);
}

/* --- what a test does --- */

/* @text: a VMI in single quotes; NULL: the watch does not have it */
static inline void
node_set_vmi(Node *node, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChJson) json = text != NULL ? parse_json(text) : NULL;

    g_clear_pointer(&node->vmi, ch_object_unref);
    if (json == NULL)
        return;
    node->vmi = ch_object_new(json, "kubevirt.io/v1", "VirtualMachineInstance", &error);
    g_assert_no_error(error);
}

static inline void
node_set_domain(Node *node, const char *text /* (nullable) in single quotes */)
{
    g_free(node->domain);
    node->domain = text != NULL ? double_quoted(text) : NULL;
}

/* What was written comes back over the watch. */
static inline void
node_echo(Node *node)
{
    g_assert_nonnull(node->last_put);
    node_set_vmi(node, node->last_put);
    ch_controller_vmi_changed(node->controller, node->vmi);
}

/* Lets what runs end. Nothing else begins, however slow the machine and short a back-off. */
static inline void
node_finish(Node *node)
{
    ch_controller_stop(node->controller);
    test_wait_until(node->loop, ch_controller_n_running(node->controller) == 0);
}

/* Runs the passes that are due now, and no later one. */
static inline void
node_run(Node *node)
{
    ch_controller_start(node->controller);
    node_finish(node);
}

static inline void
node_pass(Node *node)
{
    ch_controller_enqueue(node->controller, NODE_KEY);
    node_run(node);
}

/* Lets the pass run that is due next by itself: a delayed add, a back-off. */
static inline void
node_wait_for_pass(Node *node)
{
    const guint before = node->n_looked_up;

    ch_controller_start(node->controller);
    test_wait_until(node->loop, node->n_looked_up > before);
    node_finish(node);
}

/* (transfer full): the events since the last look; one more is sent behind them to know that all
 * are there */
static inline char *
node_take_events(Node *node)
{
    static const ChObjectRef nobody = {"Node", "v1", "", "node01", "", ""};
    static guint n_calls;
    g_autofree char *message = g_strdup_printf("%u", n_calls++ % 8);
    g_autofree char *name = g_strdup_printf("end-%u", n_calls);
    ChObjectRef end = nobody;
    char *mark, *events;

    end.name = name;
    ch_recorder_event(node->recorder, &end, "Normal", "End", message);
    test_wait_until(node->loop, strstr(node->events->str, "End: ") != NULL);
    mark = strstr(node->events->str, "End: ");
    events = g_strndup(node->events->str, (gsize)(mark - node->events->str));
    g_string_truncate(node->events, 0);
    return events;
}

static inline void
node_assert_trace(Node *node, const char *expect)
{
    g_autofree char *trace = node_take_trace(node);

    g_assert_cmpstr(trace, ==, expect);
}

static inline void
node_assert_events(Node *node, const char *expect)
{
    g_autofree char *events = node_take_events(node);

    g_assert_cmpstr(events, ==, expect);
}
