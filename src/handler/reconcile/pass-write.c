/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pass-write: the one place from which a VMI is written. Spec 01 §2.3, §7.
 */

#include "handler/reconcile/pass.h"
#include "lib/base/crash-point.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

#define PUT_TIMEOUT_US (60 * CH_SECOND_US)

void
ch_pass_start_write(ChPass *pass, ChKubeDone done)
{
    g_autofree char *path =
        g_strdup_printf("/apis/kubevirt.io/v1/namespaces/%s/virtualmachineinstances/%s",
                        pass->namespace_,
                        pass->name);
    const ChKubeRequest request = {
        .method = "PUT", .path = path, .body = pass->write.body, .timeout_us = PUT_TIMEOUT_US};

    /* Only the watch meets an expectation: a VMI that it does not bring (no label) gets none. */
    if (pass->object != NULL)
        ch_controller_expect_write(pass->controller, pass->key);
    pass->write.call = ch_kube_client_start(pass->env->kube, &request, done, pass);
    g_clear_pointer(&pass->write.body, g_free); /* the call has its own */
    CH_CRASH_POINT("pass/writing");
}

static void
note_written(ChPass *pass)
{
    const ChPassWrite *write = &pass->write;

    ch_controller_forget_phase(pass->controller, pass->vmi.uid);
    (void)ch_counter_increment(pass->env->syncs,
                               (const char *const[]){pass->namespace_, pass->name, NULL});
    if (write->phase_event != NULL)
        ch_pass_record(pass, g_steal_pointer(&pass->write.phase_event));
    if (write->phase == CH_PHASE_RUNNING)
        ch_controller_stage(pass->controller, pass, CH_STAGE_RUNNING);
    if (write->has_agent)
        ch_controller_stage(pass->controller, pass, CH_STAGE_AGENT);
}

static void
note_not_written(ChPass *pass, const GError *error)
{
    const ChLogContext context = ch_pass_log_context(pass);

    ch_controller_drop_expectations(pass->controller, pass->key);
    ch_log_error(&context, error, "Updating the VirtualMachineInstance status failed.");
    g_clear_error(&pass->error);
    pass->error = g_error_copy(error);
}

/* Success is what the API server returns: the VMI. Something between us may answer anything. */
static bool
is_stored(const ChPass *pass, GBytes *answer, GError **error)
{
    static const ChJsonPart metadata[] = {{"uid", NULL}, {NULL, NULL}};
    static const ChJsonPart parts[] = {{"metadata", metadata}, {NULL, NULL}};
    gsize length;
    const char *text = g_bytes_get_data(answer, &length);
    g_autoptr(ChJson) stored = ch_json_parse_parts(text, (gssize)length, parts, error);

    if (stored == NULL) {
        g_prefix_error(error, "answer to the write of %s: ", pass->key);
        return false;
    }
    return g_strcmp0(ch_json_string_at(stored, "metadata", "uid"), pass->vmi.uid) == 0 ||
           ch_fail(error, CH_ERROR_INVALID, "the answer to the write of %s is not it", pass->key);
}

/* Only the pass that stored the change runs the hooks: an error of theirs cannot take it back. */
static bool
wants_post_start(const ChPass *pass)
{
    return pass->env->seam.run_hooks != NULL && pass->write.phase == CH_PHASE_RUNNING &&
           pass->vmi.phase != CH_PHASE_RUNNING && !pass->vmi.is_migration_target;
}

bool
ch_pass_written(ChPass *pass, GBytes *answer, const GError *error)
{
    g_autoptr(GError) doubt = NULL;

    CH_CRASH_POINT("pass/written");
    pass->write.call = NULL;
    if (error != NULL || !is_stored(pass, answer, &doubt)) {
        note_not_written(pass, error != NULL ? error : doubt);
    } else {
        note_written(pass);
        if (wants_post_start(pass)) {
            gsize length;
            const char *text = g_bytes_get_data(answer, &length);

            pass->write.stored = g_strndup(text, length);
            return true;
        }
    }
    ch_pass_log_failure(pass);
    return false;
}

void
ch_pass_run_post_start(ChPass *pass)
{
    const ChReconcileEnv *env = pass->env;
    GError *error = NULL;

    if (!env->seam.run_hooks(env->seam_data, CH_HOOK_POST_VM_START, pass->write.stored, &error)) {
        g_clear_error(&pass->error);
        pass->error = error;
    }
    ch_pass_log_failure(pass);
}
