/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/runner.h"

#include <string.h>

#include "lib/base/log.h"
#include "lib/base/time.h"
#include "lib/kube/informer.h"
#include "lib/kube/workqueue.h"
#include "local/podrunner/leases.h"
#include "local/podrunner/pod-watch.h"
#include "local/podrunner/retry.h"

#define MAX_BUSY 8

/* One VMI's pod. */
typedef struct {
    ChRunner *runner;
    char *key;
    ChRecord *record;  /* owned (nullable) */
    ChObject *pod;     /* owned (nullable): as written here; until is_pod_seen */
    bool is_pod_seen;  /* the watch brought it once: now its word counts */
    ChPodWatch *watch; /* of the record's process; NULL: none was started */
    ChRetry retry;
} Entry;

struct ChRunner {
    ChLoop *loop;
    ChWorkerPool *pool;
    const ChPassEnv *env;
    ChInformer *vmis, *pods;
    ChWorkqueue *queue;
    ChTimer *timer;
    ChLoopFunc on_stopped; /* NULL: not asked to stop */
    gpointer data;
    GHashTable *entries; /* key -> Entry */
};

static void turn(ChRunner *runner);

/* --- entries ---------------------------------------------------------------------------------- */

static char *
make_key(const char *namespace_, const char *name, const char *uid)
{
    return g_strjoin("/", namespace_, name, uid, NULL);
}

static void
entry_free(gpointer data)
{
    Entry *entry = data;

    ch_pod_watch_free(entry->watch);
    ch_object_unref(entry->pod);
    ch_record_free(entry->record);
    g_free(entry->key);
    g_free(entry);
}

static Entry *
ensure_entry(ChRunner *runner, const char *key)
{
    Entry *entry = g_hash_table_lookup(runner->entries, key);

    if (entry != NULL)
        return entry;
    entry = g_new0(Entry, 1);
    entry->runner = runner;
    entry->key = g_strdup(key);
    ch_retry_init(&entry->retry);
    g_hash_table_insert(runner->entries, entry->key, entry);
    return entry;
}

/* Something about it has changed. */
static void
enqueue(ChRunner *runner, const char *key)
{
    Entry *entry = g_hash_table_lookup(runner->entries, key);

    if (entry != NULL)
        ch_retry_note_change(&entry->retry);
    ch_workqueue_add(runner->queue, key);
    ch_timer_arm(runner->timer, 0);
}

static void
on_container_change(gpointer data)
{
    Entry *entry = data;

    enqueue(entry->runner, entry->key);
}

static void
watch_container(Entry *entry)
{
    g_clear_pointer(&entry->watch, ch_pod_watch_free);
    if (entry->record != NULL && entry->record->pid > 0)
        entry->watch = ch_pod_watch_new(entry->runner->loop,
                                        entry->record,
                                        entry->runner->env->container.state_dir,
                                        on_container_change,
                                        entry);
}

static ChContainerPhase
container_phase(const Entry *entry)
{
    if (entry->watch == NULL)
        return CH_CONTAINER_NONE;
    if (ch_pod_watch_has_ended(entry->watch))
        return CH_CONTAINER_ENDED;
    return ch_pod_watch_is_ready(entry->watch) ? CH_CONTAINER_READY : CH_CONTAINER_STARTING;
}

/* --- one pass --------------------------------------------------------------------------------- */

typedef struct {
    ChRunner *runner;
    char *key;
    ChPassInput *input;
    ChPassResult result;
} Task;

static void
task_free(gpointer data)
{
    Task *task = data;

    if (task == NULL)
        return;
    ch_pass_input_free(task->input);
    ch_record_free(task->result.record);
    ch_object_unref(task->result.pod);
    g_free(task->key);
    g_free(task);
}

typedef struct {
    const char *uid;
    ChObject *found;
} PodSearch;

/* A pod of the VMI with this UID, whose record was lost. */
static void
match_pod(gpointer data, ChObject *object)
{
    PodSearch *search = data;
    g_autoptr(ChJson) pod = NULL;

    if (search->found != NULL || strstr(object->text, search->uid) == NULL)
        return;
    pod = ch_json_parse(object->text, (gssize)object->length, NULL);
    if (g_strcmp0(ch_json_string_at(pod, "metadata", "labels", "kubevirt.io/created-by"),
                  search->uid) == 0)
        search->found = object;
}

static ChObject *
find_pod(const ChRunner *runner, Entry *entry, const char *uid)
{
    g_autofree char *key = NULL;
    ChObject *pod;
    PodSearch search = {.uid = uid};

    if (entry->record == NULL) {
        ch_informer_foreach(runner->pods, match_pod, &search);
        return search.found;
    }
    key = g_strjoin("/", entry->record->namespace_, entry->record->name, NULL);
    pod = ch_informer_lookup(runner->pods, key);
    entry->is_pod_seen |= pod != NULL;
    return pod != NULL || entry->is_pod_seen ? pod : entry->pod;
}

static ChPassInput *
snapshot(ChRunner *runner, Entry *entry)
{
    g_auto(GStrv) parts = g_strsplit(entry->key, "/", 3);
    g_autofree char *vmi_key = g_strjoin("/", parts[0], parts[1], NULL);
    ChObject *vmi = ch_informer_lookup(runner->vmis, vmi_key);
    ChObject *pod = find_pod(runner, entry, parts[2]);
    ChPassInput *input = g_new0(ChPassInput, 1);

    *input = (ChPassInput){
        .namespace_ = g_strdup(parts[0]),
        .name = g_strdup(parts[1]),
        .uid = g_strdup(parts[2]),
        .vmi = vmi != NULL ? ch_object_ref(vmi) : NULL,
        .pod = pod != NULL ? ch_object_ref(pod) : NULL,
        .record = entry->record != NULL ? ch_record_dup(entry->record) : NULL,
        .container = container_phase(entry),
        .exit_code = entry->watch != NULL ? ch_pod_watch_exit_code(entry->watch) : -1,
        .is_poll = ch_retry_begin(&entry->retry, ch_time_now_us()),
    };
    return input;
}

/* Also whether the VMI that the entry is for is still there. */
static bool
is_wanted(const ChRunner *runner, const Entry *entry)
{
    g_auto(GStrv) parts = g_strsplit(entry->key, "/", 3);
    g_autofree char *vmi_key = g_strjoin("/", parts[0], parts[1], NULL);
    const ChObject *vmi = ch_informer_lookup(runner->vmis, vmi_key);

    return entry->record != NULL || (vmi != NULL && g_str_equal(vmi->uid, parts[2]));
}

static void
apply(ChRunner *runner, Entry *entry, ChPassResult *result)
{
    const int64_t old_pid = entry->record != NULL ? entry->record->pid : 0;
    const int64_t new_pid = result->record != NULL ? result->record->pid : 0;

    ch_record_free(entry->record);
    entry->record = g_steal_pointer(&result->record);
    ch_object_unref(entry->pod);
    entry->pod = g_steal_pointer(&result->pod);
    if (old_pid != new_pid) {
        watch_container(entry);
        enqueue(runner, entry->key); /* it may have ended or be ready already */
    }
}

static void
schedule(ChRunner *runner, Entry *entry, const ChPassResult *result)
{
    const int64_t now_us = ch_time_now_us();
    int64_t delay_us;

    if (result->outcome == CH_PASS_CONFLICT) {
        ch_retry_note_change(&entry->retry);
        ch_workqueue_add_rate_limited(runner->queue, entry->key, now_us);
        return;
    }
    if (result->outcome == CH_PASS_DONE)
        ch_workqueue_forget(runner->queue, entry->key);
    delay_us = ch_retry_end(&entry->retry,
                            result->outcome == CH_PASS_FAILED,
                            result->delay_us,
                            now_us,
                            g_random_double());
    if (delay_us >= 0)
        ch_workqueue_add_after(runner->queue, entry->key, delay_us, now_us);
}

static void
end_if_idle(ChRunner *runner)
{
    if (runner->on_stopped != NULL && ch_workqueue_n_processing(runner->queue) == 0)
        runner->on_stopped(runner->data);
}

static void
deliver(gpointer data)
{
    Task *task = data;
    ChRunner *runner = task->runner;
    Entry *entry = ensure_entry(runner, task->key);

    apply(runner, entry, &task->result);
    schedule(runner, entry, &task->result);
    ch_workqueue_done(runner->queue, task->key);
    if (!is_wanted(runner, entry))
        g_hash_table_remove(runner->entries, task->key);
    turn(runner);
    end_if_idle(runner);
}

static void
work(gpointer data)
{
    Task *task = data;

    ch_pass_run(task->runner->env, task->input, &task->result);
    ch_loop_post(task->runner->loop, deliver, task, task_free);
}

static void
start_task(ChRunner *runner, const char *key)
{
    Task *task = g_new0(Task, 1);

    task->runner = runner;
    task->key = g_strdup(key);
    task->input = snapshot(runner, ensure_entry(runner, key));
    ch_worker_pool_run(runner->pool, work, task, task_free);
}

/* Gives out what is due, and sets the timer for what is not. */
static void
turn(ChRunner *runner)
{
    int64_t next_us;

    if (!ch_informer_has_synced(runner->vmis) || !ch_informer_has_synced(runner->pods) ||
        runner->on_stopped != NULL)
        return;
    next_us = ch_workqueue_advance(runner->queue, ch_time_now_us());
    while (ch_workqueue_n_processing(runner->queue) < MAX_BUSY) {
        g_autofree char *key = ch_workqueue_get(runner->queue);

        if (key == NULL)
            break;
        start_task(runner, key);
    }
    if (next_us >= 0)
        ch_timer_arm(runner->timer, next_us - ch_time_now_us());
}

static void
on_timer(gpointer data)
{
    turn(data);
}

/* --- watches ---------------------------------------------------------------------------------- */

static void
on_vmi(gpointer data, ChObject *vmi)
{
    g_auto(GStrv) parts = g_strsplit(vmi->key, "/", 2);
    g_autofree char *key = make_key(parts[0], parts[1], vmi->uid);

    enqueue(data, key);
}

static void
on_vmi_update(gpointer data, ChObject *old_vmi, ChObject *vmi)
{
    if (!g_str_equal(old_vmi->uid, vmi->uid))
        on_vmi(data, old_vmi);
    on_vmi(data, vmi);
}

static void
on_pod(gpointer data, ChObject *object)
{
    ChRunner *runner = data;
    g_autoptr(ChJson) pod = ch_json_parse(object->text, (gssize)object->length, NULL);
    const char *uid = ch_json_string_at(pod, "metadata", "labels", "kubevirt.io/created-by");
    const char *name = ch_json_string_at(pod, "metadata", "annotations", "kubevirt.io/domain");
    g_autofree char *key = NULL;
    Entry *entry;

    if (uid == NULL || name == NULL)
        return;
    key = make_key(ch_json_string_at(pod, "metadata", "namespace"), name, uid);
    entry = g_hash_table_lookup(runner->entries, key);
    if (entry != NULL)
        entry->is_pod_seen = true;
    enqueue(runner, key);
}

static void
on_pod_update(gpointer data, ChObject *old_pod, ChObject *pod)
{
    on_pod(data, pod);
}

static void
on_synced(gpointer data)
{
    turn(data);
}

static const ChInformerHandlers vmi_handlers = {on_vmi, on_vmi_update, on_vmi, on_synced};
static const ChInformerHandlers pod_handlers = {on_pod, on_pod_update, on_pod, on_synced};

/* --- life ------------------------------------------------------------------------------------- */

/* The containers of an earlier pod runner; those that ended meanwhile are noticed now. */
static void
adopt(ChRunner *runner)
{
    g_autoptr(GPtrArray) records = ch_record_load_all(runner->env->container.state_dir);

    ch_leases_sweep(runner->env->network.lease_dir, records);
    for (guint i = 0; i < records->len; i++) {
        ChRecord *record = records->pdata[i];
        g_autofree char *key = make_key(record->namespace_, record->vmi_name, record->vmi_uid);
        Entry *entry = ensure_entry(runner, key);

        ch_record_free(entry->record);
        entry->record = ch_record_dup(record);
        ch_uses_adopt(runner->env->uses, record);
        entry->is_pod_seen = true;
        watch_container(entry);
        ch_workqueue_add(runner->queue, key);
        ch_log_info(NULL, "Found the pod %s of an earlier run", record->name);
    }
}

ChRunner *
ch_runner_new(ChLoop *loop, ChWorkerPool *pool, const ChPassEnv *env)
{
    ChRunner *runner = g_new0(ChRunner, 1);

    runner->loop = loop;
    runner->pool = pool;
    runner->env = env;
    runner->queue = ch_workqueue_new();
    runner->timer = ch_timer_new(loop, on_timer, runner);
    runner->entries = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, entry_free);
    runner->vmis =
        ch_informer_new(env->kube,
                        &(ChInformerSpec){.name = "vmiInformer",
                                          .path = "/apis/kubevirt.io/v1/virtualmachineinstances",
                                          .api_version = "kubevirt.io/v1",
                                          .kind = "VirtualMachineInstance"},
                        &vmi_handlers,
                        runner);
    runner->pods = ch_informer_new(env->kube,
                                   &(ChInformerSpec){.name = "podInformer",
                                                     .path = "/api/v1/pods",
                                                     .api_version = "v1",
                                                     .kind = "Pod",
                                                     .label_selector = "kubevirt.io=virt-launcher"},
                                   &pod_handlers,
                                   runner);
    adopt(runner);
    return runner;
}

void
ch_runner_start(ChRunner *runner)
{
    ch_informer_start(runner->vmis);
    ch_informer_start(runner->pods);
}

void
ch_runner_stop(ChRunner *runner, ChLoopFunc on_stopped, gpointer data)
{
    runner->on_stopped = on_stopped;
    runner->data = data;
    end_if_idle(runner);
}

void
ch_runner_free(ChRunner *runner)
{
    if (runner == NULL)
        return;
    ch_informer_free(runner->vmis);
    ch_informer_free(runner->pods);
    g_hash_table_unref(runner->entries);
    ch_timer_free(runner->timer);
    ch_workqueue_free(runner->queue);
    g_free(runner);
}
