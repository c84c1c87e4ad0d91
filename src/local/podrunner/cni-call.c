/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/cni-call.h"

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"
#include "lib/linux/command.h"
#include "local/podrunner/cni.h"
#include "local/podrunner/container.h"

/* (transfer full) */
static char *
find_plugin(const char *cni_path, const char *plugin, GError **error)
{
    g_auto(GStrv) dirs = g_strsplit(cni_path, ":", -1);
    g_autofree char *unusable = NULL;

    for (gsize i = 0; dirs[i] != NULL; i++) {
        g_autofree char *path = g_build_filename(dirs[i], plugin, NULL);

        if (!g_path_is_absolute(path) || !g_file_test(path, G_FILE_TEST_EXISTS))
            continue;
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR) &&
            g_file_test(path, G_FILE_TEST_IS_EXECUTABLE))
            return g_steal_pointer(&path);
        g_free(unusable);
        unusable = g_steal_pointer(&path);
    }
    if (unusable != NULL) {
        ch_fail(error,
                CH_ERROR_INVALID,
                "the CNI plugin '%s' cannot be used: '%s' is not executable",
                plugin,
                unusable);
        return NULL;
    }
    ch_fail(error,
            CH_ERROR_NOT_FOUND,
            "the CNI plugin '%s' is missing (looked in %s): try 'apt-get install "
            "containernetworking-plugins'",
            plugin,
            cni_path);
    return NULL;
}

bool
ch_cni_check_plugin(const char *cni_path, const char *plugin, GError **error)
{
    g_autofree char *path = find_plugin(cni_path, plugin, error);

    return path != NULL;
}

/* (transfer full): the pod's namespace; empty when it is gone, as DEL may be told. */
static char *
namespace_path(const ChRecord *record)
{
    ch_autofd int pidfd = ch_container_open(record);

    return pidfd < 0 ? g_strdup("")
                     : g_strdup_printf("/proc/%" G_GINT64_FORMAT "/ns/net", record->pid);
}

/* (transfer full): NULL-terminated */
static char **
make_environment(const char *cni_path, const ChRecord *record, const ChCniCall *call)
{
    g_autofree char *namespace_ = namespace_path(record);
    char **environment = g_new0(char *, 8);

    environment[0] = g_strconcat("CNI_COMMAND=", call->command, NULL);
    environment[1] = g_strconcat("CNI_CONTAINERID=", record->uid, NULL);
    environment[2] = g_strconcat("CNI_NETNS=", namespace_, NULL);
    environment[3] = g_strconcat("CNI_IFNAME=", call->link, NULL);
    environment[4] = g_strconcat("CNI_PATH=", cni_path, NULL);
    environment[5] = g_strdup("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    if (call->args != NULL)
        environment[6] = g_strconcat("CNI_ARGS=", call->args, NULL);
    return environment;
}

bool
ch_cni_call(const char *cni_path,
            const ChRecord *record,
            const ChCniCall *call,
            char **out_text,
            GError **error)
{
    g_autofree char *path = find_plugin(cni_path, call->plugin, error);
    g_auto(GStrv) environment = make_environment(cni_path, record, call);
    g_auto(ChCommandEnd) end = {0};
    g_autofree char *words = NULL;
    const char *const argv[] = {path, NULL};

    if (path == NULL)
        return false;
    if (!ch_command_run_to_end(&(ChCommand){.argv = argv,
                                            .timeout_us = CH_CNI_TIMEOUT_US,
                                            .input = call->config,
                                            .environment = (const char *const *)environment,
                                            .is_group = true},
                               &end,
                               error)) {
        g_prefix_error(error, "the CNI plugin '%s' failed: ", call->plugin);
        return false;
    }
    if (end.status == 0) {
        if (out_text != NULL)
            *out_text = g_steal_pointer(&end.out);
        return true;
    }
    words = ch_cni_failure_text(call->plugin, end.status, end.out, end.err);
    return ch_fail(error, CH_ERROR_FAILED, "%s", words);
}
