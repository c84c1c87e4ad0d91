/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/pod-attach.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "lib/base/errors.h"
#include "lib/base/small-file.h"
#include "lib/linux/link-names.h"
#include "local/podrunner/cni-call.h"
#include "local/podrunner/multus.h"

#define BOOT_ID        "/proc/sys/kernel/random/boot_id"
#define MAX_BOOT_ID    128
#define DEFAULT_BRIDGE "cni0" /* the plugin's own */

/* --- bridges that plugins make ---------------------------------------------------------------- */

/* (nullable): the bridge on this machine that the plugin makes where there is none. */
static const char *
bridge_of(const ChJson *plugin)
{
    const char *bridge = ch_json_string_at(plugin, "bridge");

    if (g_strcmp0(ch_json_string_at(plugin, "type"), "bridge") != 0)
        return NULL;
    if (bridge == NULL || *bridge == '\0')
        return DEFAULT_BRIDGE;
    return strlen(bridge) < IFNAMSIZ && strchr(bridge, '/') == NULL && *bridge != '.' ? bridge
                                                                                      : NULL;
}

/* "INDEX BOOT-ID": with both it is the very link. 0: about to be made. */
static bool
note_bridge(const ChPodNetworkEnv *env, const char *bridge, unsigned index, GError **error)
{
    g_autofree char *dir = g_build_filename(env->state_dir, "bridges", NULL);
    g_autofree char *path = g_build_filename(dir, bridge, NULL);
    g_autofree char *boot = ch_small_file_read(BOOT_ID, MAX_BOOT_ID, NULL, NULL);
    g_autofree char *text = g_strdup_printf("%u %s\n", index, boot != NULL ? g_strchomp(boot) : "");

    if (g_mkdir_with_parents(dir, 0755) < 0)
        return ch_fail_errno(error, errno, "create directory '%s'", dir);
    return g_file_set_contents(path, text, -1, error);
}

/* --- one network ------------------------------------------------------------------------------ */

static char *
make_args(const ChRecord *record, const ChJson *attachment)
{
    const char *mac = ch_json_string_at(attachment, "mac");

    return g_strdup_printf("IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;"
                           "K8S_POD_INFRA_CONTAINER_ID=%s;K8S_POD_UID=%s%s%s",
                           record->namespace_,
                           record->name,
                           record->uid,
                           record->uid,
                           mac != NULL ? ";MAC=" : "",
                           mac != NULL ? mac : "");
}

/* Plugin number @i of the attachment. */
typedef struct {
    const char *command;
    const ChJson *attachment;
    gsize i;
    const ChJson *previous; /* (nullable): a result */
    const char *link;       /* NULL: the attachment's */
} Call;

static bool
run_call(const ChPodNetworkEnv *env,
         const ChRecord *record,
         const Call *call,
         char **out_text,
         GError **error)
{
    const ChJson *plugin = ch_json_item(ch_json_at(call->attachment, "plugins"), call->i);
    g_autofree char *args = make_args(record, call->attachment);
    g_autofree char *config = ch_multus_config(call->attachment, call->i, call->previous);
    const char *link =
        call->link != NULL ? call->link : ch_json_string_at(call->attachment, "link");

    return ch_cni_call(env->cni_path,
                       record,
                       &(ChCniCall){.command = call->command,
                                    .plugin = ch_json_string_at(plugin, "type"),
                                    .link = link,
                                    .config = config,
                                    .args = args},
                       out_text,
                       error);
}

static bool
add_plugin(
    const ChPodNetworkEnv *env, const ChRecord *record, ChJson *attachment, gsize i, GError **error)
{
    const ChJson *plugin = ch_json_item(ch_json_at(attachment, "plugins"), i);
    const char *bridge = bridge_of(plugin);
    const bool is_new = bridge != NULL && if_nametoindex(bridge) == 0;
    g_autofree char *text = NULL;
    ChJson *result;

    if (is_new && !note_bridge(env, bridge, 0, error))
        return false;
    if (!run_call(env,
                  record,
                  &(Call){.command = "ADD",
                          .attachment = attachment,
                          .i = i,
                          .previous = i > 0 ? ch_json_at(attachment, "result") : NULL},
                  &text,
                  error))
        return false;
    if (is_new && !note_bridge(env, bridge, if_nametoindex(bridge), error))
        return false;
    result = strlen(text) <= CH_CNI_MAX_RESULT_BYTES ? ch_json_parse(text, -1, NULL) : NULL;
    if (!ch_json_is_object(result)) {
        ch_json_unref(result);
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "the CNI plugin '%s' answered with something that is no result",
                       ch_json_string_at(plugin, "type"));
    }
    ch_json_set(attachment, "result", result);
    return true;
}

bool
ch_pod_attach_check(const ChPodNetworkEnv *env, const ChJson *attachment, GError **error)
{
    const ChJson *plugins = ch_json_at(attachment, "plugins");

    for (gsize i = 0; i < ch_json_length(plugins); i++) {
        const ChJson *plugin = ch_json_item(plugins, i);
        const char *ipam = ch_json_string_at(plugin, "ipam", "type");

        if (!ch_cni_check_plugin(env->cni_path, ch_json_string_at(plugin, "type"), error) ||
            (ipam != NULL && !ch_cni_check_plugin(env->cni_path, ipam, error)))
            return false;
    }
    return true;
}

bool
ch_pod_attach_one(const ChPodNetworkEnv *env,
                  const ChRecord *record,
                  ChJson *attachment,
                  GError **error)
{
    for (gsize i = 0; i < ch_json_length(ch_json_at(attachment, "plugins")); i++) {
        if (!add_plugin(env, record, attachment, i, error))
            return false;
    }
    return true;
}

bool
ch_pod_attach(const ChPodNetworkEnv *env,
              const ChRecord *record,
              ChJson *attachments,
              GError **error)
{
    for (gsize i = 0; i < ch_json_length(attachments); i++) {
        ChJson *attachment = ch_json_item(attachments, i);

        if (ch_pod_attach_one(env, record, attachment, error))
            continue;
        g_prefix_error(error, "network '%s': ", ch_json_string_at(attachment, "network"));
        return false;
    }
    return true;
}

static bool
delete_plugins(const ChPodNetworkEnv *env,
               const ChRecord *record,
               const ChJson *attachment,
               GError **error)
{
    bool is_gone = true;

    for (gsize n = ch_json_length(ch_json_at(attachment, "plugins")); n > 0; n--) {
        const Call call = {"DEL", attachment, n - 1, ch_json_at(attachment, "result"), NULL};

        if (!run_call(env, record, &call, NULL, is_gone ? error : NULL))
            is_gone = false;
    }
    return is_gone;
}

bool
ch_pod_detach(const ChPodNetworkEnv *env, const ChRecord *record, GError **error)
{
    g_autoptr(ChJson) attachments = ch_record_list(record->attachments);
    bool is_gone = true;

    for (gsize i = ch_json_length(attachments); i > 0; i--) {
        const ChJson *attachment = ch_json_item(attachments, i - 1);

        if (!delete_plugins(env, record, attachment, is_gone ? error : NULL))
            is_gone = false;
    }
    return is_gone;
}

bool
ch_pod_detach_one(const ChPodNetworkEnv *env,
                  const ChRecord *record,
                  const ChJson *attachment,
                  GError **error)
{
    const char *link = ch_json_string_at(attachment, "link");
    ChLinkNames names = {0};
    bool is_gone;

    g_strlcpy(names.pod_link, link != NULL ? link : "", sizeof(names.pod_link));
    ch_link_names_derive(&names, false);
    is_gone = run_call(env,
                       record,
                       &(Call){"DEL", attachment, 0, ch_json_at(attachment, "result"), names.nic},
                       NULL,
                       error);
    return delete_plugins(env, record, attachment, is_gone ? error : NULL) && is_gone;
}
