/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/options.h"

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "local/launcher/volume.h"

/* As typed; what is a duration is parsed afterwards. */
typedef struct {
    char *qemu_timeout;
    char *intervals[5];
    char *emulation;
    int grace_seconds;
    gboolean probes_kvm;
    gboolean ignored;
} Typed;

static void
typed_clear(Typed *typed)
{
    g_free(typed->qemu_timeout);
    for (gsize i = 0; i < G_N_ELEMENTS(typed->intervals); i++)
        g_free(typed->intervals[i]);
    g_free(typed->emulation);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Typed, typed_clear)

void
ch_launcher_options_clear(ChLauncherOptions *options)
{
    g_free(options->name);
    g_free(options->uid);
    g_free(options->namespace_);
    g_free(options->share_dir);
    g_free(options->private_dir);
    g_free(options->ephemeral_dir);
    g_free(options->container_disk_dir);
    g_free(options->hotplug_disk_dir);
}

static bool
parse(int argc, char **argv, ChLauncherOptions *options, Typed *typed, GError **error)
{
    /* clang-format off */
    const GOptionEntry entries[] = {
        {"name", 0, 0, G_OPTION_ARG_STRING, &options->name, "the VMI's name", "NAME"},
        {"uid", 0, 0, G_OPTION_ARG_STRING, &options->uid, "the VMI's uid", "UID"},
        {"namespace", 0, 0, G_OPTION_ARG_STRING, &options->namespace_, "the VMI's namespace", "NAME"},
        {"kubevirt-share-dir", 0, 0, G_OPTION_ARG_STRING, &options->share_dir, "directory shared with the agent (/var/run/kubevirt)", "DIR"},
        {"private-dir", 0, 0, G_OPTION_ARG_STRING, &options->private_dir, "directory of this launcher (/var/run/kubevirt-private)", "DIR"},
        {"ephemeral-disk-dir", 0, 0, G_OPTION_ARG_STRING, &options->ephemeral_dir, "where disks are made (/var/run/kubevirt-ephemeral-disks)", "DIR"},
        {"container-disk-dir", 0, 0, G_OPTION_ARG_STRING, &options->container_disk_dir, "where container disks appear (/var/run/kubevirt/container-disks)", "DIR"},
        {"hotplug-disk-dir", 0, 0, G_OPTION_ARG_STRING, &options->hotplug_disk_dir, "where plugged volumes appear (/var/run/kubevirt/hotplug-disks)", "DIR"},
        {"grace-period-seconds", 0, 0, G_OPTION_ARG_INT, &typed->grace_seconds, "from a signal to the guest's forced end (30)", "N"},
        {"qemu-timeout", 0, 0, G_OPTION_ARG_STRING, &typed->qemu_timeout, "how long to wait for a domain (3m)", "DURATION"},
        {"emulation", 0, 0, G_OPTION_ARG_STRING, &typed->emulation, "auto: when KVM does not work; on; off (auto)", "MODE"},
        {"probe-kvm", 0, 0, G_OPTION_ARG_NONE, &typed->probes_kvm, "tell whether KVM works here, and end", NULL},
        {"qemu-agent-version-interval", 0, 0, G_OPTION_ARG_STRING, &typed->intervals[0], "(300s)", "DURATION"},
        {"qemu-agent-file-interval", 0, 0, G_OPTION_ARG_STRING, &typed->intervals[1], "(300s)", "DURATION"},
        {"qemu-fsfreeze-status-interval", 0, 0, G_OPTION_ARG_STRING, &typed->intervals[2], "(5s)", "DURATION"},
        {"qemu-agent-sys-interval", 0, 0, G_OPTION_ARG_STRING, &typed->intervals[3], "(120s)", "DURATION"},
        {"qemu-agent-user-interval", 0, 0, G_OPTION_ARG_STRING, &typed->intervals[4], "(10s)", "DURATION"},
        {"run-as-nonroot", 0, 0, G_OPTION_ARG_NONE, &typed->ignored, "accepted: this launcher never runs as root", NULL},
        {"verbosity", 'v', 0, G_OPTION_ARG_INT, &options->verbosity, "log verbosity (2)", "N"},
        G_OPTION_ENTRY_NULL
    };
    /* clang-format on */
    g_autoptr(GOptionContext) context = g_option_context_new("- runs one virtual machine");
    g_auto(GStrv) copy = g_new0(char *, (gsize)argc + 1);

    for (int i = 0; i < argc; i++)
        copy[i] = g_strdup(argv[i]);
    g_option_context_add_main_entries(context, entries, NULL);
    return g_option_context_parse_strv(context, &copy, error);
}

static void
set_default(char **text, const char *fallback)
{
    if (*text == NULL)
        *text = g_strdup(fallback);
}

static bool
parse_emulation(const char *text, ChEmulation *out_emulation, GError **error)
{
    static const char *const modes[] = {"auto", "on", "off"};

    for (guint i = 0; i < G_N_ELEMENTS(modes); i++)
        if (text == NULL || g_str_equal(text, modes[i])) {
            *out_emulation = (ChEmulation)i;
            return true;
        }
    return ch_fail(error, CH_ERROR_INVALID, "--emulation is auto, on or off, not '%s'", text);
}

static bool
parse_durations(const Typed *typed, ChLauncherOptions *options, GError **error)
{
    const struct {
        const char *text;
        const char *fallback;
        int64_t *value;
    } durations[] = {
        {typed->qemu_timeout, "3m", &options->qemu_timeout_us},
        {typed->intervals[0], "300s", &options->agent.version_us},
        {typed->intervals[1], "300s", &options->agent.filesystems_us},
        {typed->intervals[2], "5s", &options->agent.freeze_us},
        {typed->intervals[3], "120s", &options->agent.system_us},
        {typed->intervals[4], "10s", &options->agent.users_us},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(durations); i++) {
        const char *text = durations[i].text == NULL ? durations[i].fallback : durations[i].text;

        if (!ch_duration_parse(text, durations[i].value, error))
            return false;
        if (*durations[i].value < CH_SECOND_US)
            return ch_fail(error, CH_ERROR_INVALID, "'%s' is shorter than a second", text);
    }
    return true;
}

/* They become names of files and of the domain. */
static bool
check_identity(const ChLauncherOptions *options, GError **error)
{
    const char *const names[] = {options->name, options->uid, options->namespace_};

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        if (names[i] == NULL || !ch_volume_name_is_safe(names[i]))
            return ch_fail(
                error, CH_ERROR_INVALID, "--name, --uid and --namespace must name the VMI");
    return true;
}

bool
ch_launcher_options_parse(int argc, char **argv, ChLauncherOptions *out_options, GError **error)
{
    g_auto(ChLauncherOptions) options = {.verbosity = 2};
    g_auto(Typed) typed = {.grace_seconds = 30};

    if (!parse(argc, argv, &options, &typed, error) ||
        !parse_emulation(typed.emulation, &options.emulation, error) ||
        !parse_durations(&typed, &options, error))
        return false;
    options.probes_kvm = typed.probes_kvm;
    if (!options.probes_kvm && !check_identity(&options, error))
        return false;
    if (typed.grace_seconds < 0)
        return ch_fail(error, CH_ERROR_INVALID, "--grace-period-seconds must not be negative");
    options.grace_us = typed.grace_seconds * CH_SECOND_US;
    set_default(&options.share_dir, "/var/run/kubevirt");
    set_default(&options.private_dir, "/var/run/kubevirt-private");
    set_default(&options.ephemeral_dir, "/var/run/kubevirt-ephemeral-disks");
    set_default(&options.container_disk_dir, "/var/run/kubevirt/container-disks");
    set_default(&options.hotplug_disk_dir, "/var/run/kubevirt/hotplug-disks");
    *out_options = options;
    options = (ChLauncherOptions){0};
    return true;
}
