/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/downward-metrics/launcher-metrics.h"

#include <string.h>

#include "handler/hands/test-vhostmd.h"
#include "handler/launcher/rpc.h"
#include "handler/launcher/test-fake-launcher.h"
#include "lib/base/errors.h"

typedef struct {
    FakeLauncher fake;
    ChGrpcChannel *channel;
    ChLauncherMetrics *source;
    const char *version, *stats; /* guarded by the fake's lock; version NULL: an old launcher */
} Fixture;

static void
handle_version(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    Fixture *f = data;
    Kubevirt__Cmd__V1__Response inner = KUBEVIRT__CMD__V1__RESPONSE__INIT;
    Kubevirt__Cmd__V1__QemuVersionResponse response =
        KUBEVIRT__CMD__V1__QEMU_VERSION_RESPONSE__INIT;

    pthread_mutex_lock(&f->fake.lock);
    inner.success = true;
    response.response = &inner;
    response.version = (char *)f->version;
    if (f->version == NULL)
        ch_grpc_server_call_fail(call, CH_GRPC_UNIMPLEMENTED, "unknown method GetQemuVersion");
    else if (!fake_misbehave(&f->fake, call))
        ch_grpc_server_call_reply(call, &response.base);
    pthread_mutex_unlock(&f->fake.lock);
}

static void
handle_stats(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    Fixture *f = data;
    Kubevirt__Cmd__V1__Response inner = KUBEVIRT__CMD__V1__RESPONSE__INIT;
    Kubevirt__Cmd__V1__DomainStatsResponse response =
        KUBEVIRT__CMD__V1__DOMAIN_STATS_RESPONSE__INIT;

    pthread_mutex_lock(&f->fake.lock);
    inner.success = true;
    response.response = &inner;
    response.domain_stats = (char *)f->stats;
    ch_grpc_server_call_reply(call, &response.base);
    pthread_mutex_unlock(&f->fake.lock);
}

static const ChGrpcMethod methods[] = {
    {"/kubevirt.cmd.v1.Cmd/GetQemuVersion",
     &kubevirt__cmd__v1__empty_request__descriptor,
     handle_version},
    {"/kubevirt.cmd.v1.Cmd/GetDomainStats",
     &kubevirt__cmd__v1__empty_request__descriptor,
     handle_stats},
};

static void
set_up(Fixture *f, gconstpointer data)
{
    f->version = "7.2.0 <&>";
    f->stats =
        "{\"Name\":\"default_vm\",\"Vcpu\":[{\"StateSet\":true,\"State\":1,\"Time\":12340000000}"
        "],\"Memory\":{\"ActualBalloonSet\":true,\"ActualBalloon\":65536}}";
    fake_launcher_open(&f->fake);
    ch_grpc_server_add(f->fake.server, methods, G_N_ELEMENTS(methods), f);
    ch_loop_start(f->fake.loop, "fake-launcher");
    f->channel = ch_grpc_channel_new(f->fake.loop, fake_launcher_connect(&f->fake), "localhost");
    f->source = ch_launcher_metrics_new(f->fake.loop, NULL, NULL, "node01");
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_grpc_channel_close(f->channel);
    ch_grpc_channel_unref(f->channel);
    fake_launcher_stop(&f->fake);
    ch_launcher_metrics_free(f->source);
}

static const struct {
    const char *context, *name, *type, *unit;
} expected[] = {
    {"host", "HostName", "string", NULL},
    {"host", "HostSystemInfo", "string", NULL},
    {"host", "VirtualizationVendor", "string", NULL},
    {"host", "VirtProductInfo", "string", NULL},
    {"vm", "TotalCPUTime", "real64", "s"},
    {"vm", "ResourceProcessorLimit", "int64", NULL},
    {"vm", "PhysicalMemoryAllocatedToVirtualSystem", "uint64", "KiB"},
    {"vm", "ResourceMemoryLimit", "uint64", "KiB"},
};

/* (transfer full) of VhostmdMetric */
static GPtrArray *
collect(Fixture *f)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = ch_launcher_metrics_report(f->source, f->channel, &error);

    g_assert_no_error(error);
    return vhostmd_read_body(text, strlen(text));
}

/* What the launcher and the cluster say comes first, then what this machine's kernel does. */
static void
test_report(Fixture *f, gconstpointer data)
{
    static const char *const values[] = {
        "node01", "linux", "kubevirt.io", "7.2.0 <&>", "12.340000", "1", "65536", "65536"};

    for (int round = 0; round < 2; round++) { /* the second has the first one's host metrics */
        g_autoptr(GPtrArray) metrics = collect(f);

        g_assert_cmpuint(metrics->len, >, G_N_ELEMENTS(expected));
        for (guint i = 0; i < G_N_ELEMENTS(expected); i++) {
            const VhostmdMetric *metric = metrics->pdata[i];

            g_assert_cmpstr(metric->context, ==, expected[i].context);
            g_assert_cmpstr(metric->name, ==, expected[i].name);
            g_assert_cmpstr(metric->type, ==, expected[i].type);
            g_assert_cmpstr(metric->unit, ==, expected[i].unit);
            g_assert_cmpstr(metric->value, ==, values[i]);
        }
        g_assert_cmpstr(
            ((const VhostmdMetric *)metrics->pdata[metrics->len - 1])->name, ==, "Time");
    }
}

static void
test_old_launcher(Fixture *f, gconstpointer data)
{
    g_autoptr(GPtrArray) metrics = NULL;

    f->version = NULL;
    metrics = collect(f);
    g_assert_cmpstr(((const VhostmdMetric *)metrics->pdata[3])->value, ==, "qemu-unknown");
}

static void
expect_failure(Fixture *f, GQuark domain, int code)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_launcher_metrics_report(f->source, f->channel, &error));
    g_assert_error(error, domain, code);
}

static void
test_failures(Fixture *f, gconstpointer data)
{
    g_autofree char *longish = g_strnfill(5000, 'v');
    const char *version = f->version;

    f->version = longish;
    expect_failure(f, CH_ERROR, CH_ERROR_LIMIT);
    f->version = version;
    f->stats = "";
    expect_failure(f, CH_ERROR, CH_ERROR_NOT_FOUND);
    f->stats = "{\"Name\":\"\"}";
    expect_failure(f, CH_ERROR, CH_ERROR_NOT_FOUND);
    fake_launcher_answer(&f->fake, CH_GRPC_INTERNAL, "broken");
    expect_failure(f, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_CALL);
}

/* A VM whose launcher was never connected to is not looked for. */
static void
test_not_connected(Fixture *f, gconstpointer data)
{
    ChLauncherClients *clients =
        ch_launcher_clients_new(f->fake.loop, NULL, &(ChLauncherSeam){0}, NULL);
    ChLauncherMetrics *source = ch_launcher_metrics_new(f->fake.loop, clients, NULL, "node01");
    const ChDownwardMetricsSeam *seam = &ch_launcher_metrics_seam;
    GError *error = NULL;
    int fd;

    g_assert_null(seam->serial.report(source, "uid", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_CLOSED);
    g_clear_error(&error);
    g_assert_false(seam->serial.connect(source, "uid", &fd, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_CLOSED);
    g_clear_error(&error);
    g_assert_false(seam->write(source, "uid", "x", 1, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_CLOSED);
    g_clear_error(&error);
    g_assert_false(seam->has_launcher(source, "uid", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_CLOSED);
    g_clear_error(&error);
    ch_launcher_metrics_free(source);
    ch_launcher_clients_free(clients);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, func) g_test_add(path, Fixture, NULL, set_up, func, tear_down)
    ADD("/launcher-metrics/report", test_report);
    ADD("/launcher-metrics/old-launcher", test_old_launcher);
    ADD("/launcher-metrics/failures", test_failures);
    ADD("/launcher-metrics/not-connected", test_not_connected);
#undef ADD
    return g_test_run();
}
