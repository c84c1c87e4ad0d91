/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/downward-metrics/downward-metrics.h"

#include <pthread.h>
#include <string.h>

#include "lib/base/errors.h"
#include "lib/base/log.h"

#define DISK    (1u << 0)
#define CHANNEL (1u << 1)

struct ChDownwardMetrics {
    ChLoop *loop;
    ChWorkerPool *pool;
    const ChDownwardMetricsSeam *seam;
    gpointer seam_data;

    pthread_mutex_t lock; /* guards: */
    GHashTable *served;   /* VMI UID (owned) -> DISK, CHANNEL */

    /* The loop's thread only. */
    GHashTable *vms; /* VMI UID (the Vm's) -> Vm (owned) */
    GQueue due;      /* of Vm: whose disk is to be written */
    ChTimer *round;  /* armed while there is a disk */
    ChSerialJobs channel_jobs;
    guint n_disks;
    guint n_jobs;
    uint64_t last_id;
};

typedef struct {
    uint64_t id; /* a VMI that comes again is another one */
    char *key, *uid;
    bool has_disk;
    bool is_due, is_busy;
    bool has_failed;        /* the last time */
    ChSerialServer *server; /* owned; NULL: no channel */
} Vm;

/* --- what a VMI has */

bool
ch_downward_metrics_has_disk(const ChJson *vmi)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");

    for (gsize i = 0; i < ch_json_length(volumes); i++)
        if (ch_json_at(ch_json_item(volumes, i), "downwardMetrics") != NULL)
            return true;
    return false;
}

bool
ch_downward_metrics_has_channel(const ChJson *vmi)
{
    return ch_json_at(vmi, "spec", "domain", "devices", "downwardMetrics") != NULL;
}

/* --- disks */

/* A disk that is written by a worker. */
typedef struct {
    ChDownwardMetrics *metrics;
    uint64_t id;
    char *key, *uid;
    bool has_failed; /* before and after */
} Job;

static void
job_free(gpointer data)
{
    Job *job = data;

    g_free(job->key);
    g_free(job->uid);
    g_free(job);
}

/* What fails in each round is told once, and when it is over. */
static void
note_failure(const Job *job, const GError *error, const char *what)
{
    if (job->has_failed)
        ch_log_verbose(3, NULL, "%s: %s again: %s", job->key, what, error->message);
    else
        ch_log_error(NULL, error, "%s: %s", job->key, what);
}

/* Returns: whether it is written */
static bool
write_report(const Job *job)
{
    const ChDownwardMetricsSeam *seam = job->metrics->seam;
    gpointer data = job->metrics->seam_data;
    g_autoptr(GError) error = NULL;
    g_autofree char *report = seam->serial.report(data, job->uid, &error);
    g_autofree char *text = NULL;

    if (report == NULL) {
        note_failure(job, error, "failed to collect the metrics");
        return false;
    }
    text = g_strconcat(report, "\n", NULL);
    if (!seam->write(data, job->uid, text, strlen(text), &error)) {
        note_failure(job, error, "failed to write metrics to disk");
        return false;
    }
    if (job->has_failed)
        ch_log_info(NULL, "%s: metrics are written to disk again", job->key);
    return true;
}

static void pump(ChDownwardMetrics *metrics);

static void
on_written(gpointer data)
{
    const Job *job = data;
    Vm *vm = g_hash_table_lookup(job->metrics->vms, job->uid);

    job->metrics->n_jobs--;
    if (vm != NULL && vm->id == job->id) {
        vm->is_busy = false;
        vm->has_failed = job->has_failed;
    }
    pump(job->metrics);
}

static void
write_disk(gpointer data) /* worker */
{
    Job *job = data;

    job->has_failed = !write_report(job);
    ch_loop_post(job->metrics->loop, on_written, job, job_free);
}

/* Starts as many of the writes that are due as may run. */
static void
pump(ChDownwardMetrics *metrics)
{
    while (metrics->n_jobs < CH_DOWNWARD_METRICS_JOBS && metrics->due.length > 0) {
        Vm *vm = g_queue_pop_head(&metrics->due);
        Job *job = g_new(Job, 1);

        *job = (Job){metrics, vm->id, g_strdup(vm->key), g_strdup(vm->uid), vm->has_failed};
        vm->is_due = false;
        vm->is_busy = true;
        metrics->n_jobs++;
        ch_worker_pool_run(metrics->pool, write_disk, job, job_free);
    }
}

static void
make_due(ChDownwardMetrics *metrics, Vm *vm)
{
    if (vm->is_due || vm->is_busy) {
        ch_log_verbose(
            3, NULL, "%s: metrics are skipped, since earlier ones are not written yet", vm->key);
        return;
    }
    vm->is_due = true;
    g_queue_push_tail(&metrics->due, vm);
}

static void
on_round(gpointer data)
{
    ChDownwardMetrics *metrics = data;
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, metrics->vms);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (((Vm *)value)->has_disk)
            make_due(metrics, value);
    if (metrics->n_disks > 0)
        ch_timer_arm(metrics->round, metrics->seam->round_us);
    pump(metrics);
}

/* --- beginning and ending, on the loop's thread */

static void
vm_free(gpointer data)
{
    Vm *vm = data;

    ch_serial_server_free(vm->server);
    g_free(vm->key);
    g_free(vm->uid);
    g_free(vm);
}

static Vm *
ensure_vm(ChDownwardMetrics *metrics, const char *key, const char *uid)
{
    Vm *vm = g_hash_table_lookup(metrics->vms, uid);

    if (vm == NULL) {
        vm = g_new0(Vm, 1);
        vm->id = ++metrics->last_id;
        vm->key = g_strdup(key);
        vm->uid = g_strdup(uid);
        g_hash_table_insert(metrics->vms, vm->uid, vm);
    }
    return vm;
}

/* What a pass wants of the loop. */
typedef struct {
    ChDownwardMetrics *metrics;
    char *key, *uid; /* key: NULL: all ends */
    unsigned parts;  /* that begin */
} Order;

static void
order_free(gpointer data)
{
    Order *order = data;

    g_free(order->key);
    g_free(order->uid);
    g_free(order);
}

static void
begin_parts(gpointer data)
{
    const Order *order = data;
    ChDownwardMetrics *metrics = order->metrics;
    Vm *vm = ensure_vm(metrics, order->key, order->uid);

    if (order->parts & CHANNEL && vm->server == NULL)
        vm->server = ch_serial_server_new(metrics->loop,
                                          metrics->pool,
                                          &metrics->channel_jobs,
                                          &metrics->seam->serial,
                                          metrics->seam_data,
                                          vm->key,
                                          vm->uid);
    if (order->parts & DISK && !vm->has_disk) {
        vm->has_disk = true;
        make_due(metrics, vm);
        if (metrics->n_disks++ == 0)
            ch_timer_arm(metrics->round, metrics->seam->round_us);
        pump(metrics);
    }
}

static void
end_all(gpointer data)
{
    const Order *order = data;
    ChDownwardMetrics *metrics = order->metrics;
    Vm *vm = g_hash_table_lookup(metrics->vms, order->uid);

    if (vm == NULL)
        return;
    if (vm->is_due)
        g_queue_remove(&metrics->due, vm);
    if (vm->has_disk && --metrics->n_disks == 0)
        ch_timer_disarm(metrics->round);
    g_hash_table_remove(metrics->vms, order->uid);
}

static void
give_order(ChDownwardMetrics *metrics, ChLoopFunc func, Order order)
{
    ch_loop_post(metrics->loop, func, g_memdup2(&order, sizeof(order)), order_free);
}

/* --- for passes */

/* Notes that @parts are served. Returns: those that were not */
static unsigned
claim(ChDownwardMetrics *metrics, const char *uid, unsigned parts)
{
    unsigned before;

    pthread_mutex_lock(&metrics->lock);
    before = GPOINTER_TO_UINT(g_hash_table_lookup(metrics->served, uid));
    if (parts & ~before)
        g_hash_table_replace(metrics->served, g_strdup(uid), GUINT_TO_POINTER(before | parts));
    pthread_mutex_unlock(&metrics->lock);
    return parts & ~before;
}

static bool
is_served(ChDownwardMetrics *metrics, const char *uid, unsigned parts)
{
    unsigned served;

    pthread_mutex_lock(&metrics->lock);
    served = GPOINTER_TO_UINT(g_hash_table_lookup(metrics->served, uid));
    pthread_mutex_unlock(&metrics->lock);
    return (served & parts) == parts;
}

static bool
check_launcher(const ChDownwardMetrics *metrics, const char *name, const char *uid, GError **error)
{
    g_autoptr(GError) reason = NULL;

    if (metrics->seam->has_launcher(metrics->seam_data, uid, &reason))
        return true;
    if (g_error_matches(reason, CH_ERROR, CH_ERROR_NOT_FOUND))
        return ch_fail(error,
                       CH_ERROR_FAILED,
                       "failed to start the DownwardMetrics stopServer for VMI [%s], error: %s",
                       name,
                       reason->message);
    return ch_fail(error,
                   CH_ERROR_FAILED,
                   "failed to get the launcher socket for VMI [%s], error: %s",
                   name,
                   reason->message);
}

bool
ch_downward_metrics_begin(ChDownwardMetrics *metrics, const ChJson *vmi, GError **error)
{
    const char *namespace_ = ch_json_string_at(vmi, "metadata", "namespace");
    const char *name = ch_json_string_at(vmi, "metadata", "name");
    const char *uid = ch_json_string_at(vmi, "metadata", "uid");
    unsigned parts = (ch_downward_metrics_has_disk(vmi) ? DISK : 0) |
                     (ch_downward_metrics_has_channel(vmi) ? CHANNEL : 0);
    bool ok = true;

    if (metrics == NULL || parts == 0 || namespace_ == NULL || name == NULL || uid == NULL ||
        is_served(metrics, uid, parts))
        return true;
    if (parts & CHANNEL && !is_served(metrics, uid, CHANNEL) &&
        !check_launcher(metrics, name, uid, error)) {
        ok = false;
        parts &= ~CHANNEL;
    }
    parts = claim(metrics, uid, parts);
    if (parts != 0)
        give_order(
            metrics,
            begin_parts,
            (Order){metrics, g_strconcat(namespace_, "/", name, NULL), g_strdup(uid), parts});
    return ok;
}

void
ch_downward_metrics_end(ChDownwardMetrics *metrics, const char *uid)
{
    bool was_served;

    if (metrics == NULL)
        return;
    pthread_mutex_lock(&metrics->lock);
    was_served = g_hash_table_remove(metrics->served, uid);
    pthread_mutex_unlock(&metrics->lock);
    if (was_served)
        give_order(metrics, end_all, (Order){metrics, NULL, g_strdup(uid), 0});
}

guint
ch_downward_metrics_n_vms(const ChDownwardMetrics *metrics)
{
    return g_hash_table_size(metrics->vms);
}

ChDownwardMetrics *
ch_downward_metrics_new(ChLoop *loop,
                        ChWorkerPool *pool,
                        const ChDownwardMetricsSeam *seam,
                        gpointer seam_data)
{
    ChDownwardMetrics *metrics = g_new0(ChDownwardMetrics, 1);

    metrics->loop = loop;
    metrics->pool = pool;
    metrics->seam = seam;
    metrics->seam_data = seam_data;
    pthread_mutex_init(&metrics->lock, NULL);
    metrics->served = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    metrics->vms = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, vm_free);
    g_queue_init(&metrics->due);
    metrics->channel_jobs = (ChSerialJobs)CH_SERIAL_JOBS_INIT;
    metrics->round = ch_timer_new(loop, on_round, metrics);
    return metrics;
}

void
ch_downward_metrics_free(ChDownwardMetrics *metrics)
{
    if (metrics == NULL)
        return;
    ch_timer_free(metrics->round);
    g_queue_clear(&metrics->due);
    g_hash_table_unref(metrics->vms);
    g_hash_table_unref(metrics->served);
    pthread_mutex_destroy(&metrics->lock);
    g_free(metrics);
}
