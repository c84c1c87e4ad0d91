/* SPDX-License-Identifier: Apache-2.0 */

/*
 * attach, detach: a volume or a network for a VM that runs. The commands change the VM's
 * specification, as virtctl's addvolume and removevolume do, and wait until the guest has the disk
 * or NIC, or lost it.
 */

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"
#include "local/cli/cli.h"
#include "local/cli/network-edit.h"
#include "local/cli/nic-plug.h"
#include "local/cli/resource.h"
#include "local/cli/vm-edit.h"
#include "local/cli/vms.h"
#include "local/cli/volume-edit.h"

#define LIMIT_US (180 * CH_SECOND_US)
#define POLL_MS  100

typedef struct {
    ChClient *client;
    const ChCli *cli;
    const char *vm;
    const char *volume;
} Context;

/* --- the VM's specification ------------------------------------------------------------------- */

static bool
add_volume(ChJson *vmi, gpointer edit, GError **error)
{
    return ch_vmi_add_volume(vmi, edit, error);
}

typedef struct {
    const char *volume;
    char *claim; /* owned: out */
} Removal;

static bool
remove_volume(ChJson *vmi, gpointer data, GError **error)
{
    Removal *removal = data;

    g_clear_pointer(&removal->claim, g_free);
    return ch_vmi_remove_volume(vmi, removal->volume, &removal->claim, error);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static bool
is_attached(const ChJson *status)
{
    const char *target = ch_json_string_at(status, "target");

    return g_strcmp0(ch_json_string_at(status, "phase"), "Ready") == 0 && target != NULL &&
           *target != '\0';
}

static bool
fail_late(const Context *context, bool attaches, const ChJson *status, GError **error)
{
    const char *message = ch_json_string_at(status, "message");

    return ch_fail(error,
                   CH_ERROR_TIMEOUT,
                   "volume '%s' is not %s after %" G_GINT64_FORMAT " s%s%s; it goes on trying",
                   context->volume,
                   attaches ? "attached" : "detached",
                   (int64_t)(LIMIT_US / CH_SECOND_US),
                   message != NULL ? ": " : "",
                   message != NULL ? message : "");
}

/* @out_target: (out) (optional) (transfer full): what the guest's disk is called */
static bool
wait_for(const Context *context, bool attaches, char **out_target, GError **error)
{
    const int64_t deadline_us = ch_time_now_us() + LIMIT_US;

    for (;;) {
        g_autoptr(ChJson) vmi = ch_vm_get(context->client, context->cli, context->vm, error);
        const ChJson *status = ch_vmi_volume_status(vmi, context->volume);

        if (vmi == NULL)
            return false;
        if (ch_vm_is_final(vmi))
            return ch_fail(error, CH_ERROR_INVALID, "the VM '%s' has ended", context->vm);
        if (attaches ? is_attached(status) : status == NULL) {
            if (out_target != NULL)
                *out_target = g_strdup(ch_json_string_at(status, "target"));
            return true;
        }
        if (ch_time_now_us() > deadline_us)
            return fail_late(context, attaches, status, error);
        ch_cli_wait_ms(POLL_MS);
    }
}

/* --- claims ----------------------------------------------------------------------------------- */

static char *
claim_path(const Context *context, const char *name)
{
    return ch_cli_resource_path(ch_cli_resource_by_name("pvc"), context->cli->namespace_, name);
}

/* The kernel lets nobody have it alone while it is mounted, or part of another device. */
static bool
is_idle(const char *path, GError **error)
{
    ch_autofd int fd = g_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_EXCL, 0);

    return fd >= 0 || errno != EBUSY ||
           ch_fail(error,
                   CH_ERROR_INVALID,
                   "the device '%s' is in use: mounted, or part of another device",
                   path);
}

static bool
measure(const char *path, bool *out_is_block, guint64 *out_n_bytes, GError **error)
{
    ch_autofd int fd = g_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    struct stat st;
    struct stat image;
    off_t end = 0;

    if (fd < 0 || fstat(fd, &st) < 0)
        return ch_fail_errno(error, errno, "open '%s'", path);
    if (S_ISDIR(st.st_mode) &&
        (fstatat(fd, "disk.img", &image, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(image.st_mode)))
        return ch_fail(error, CH_ERROR_INVALID, "the directory '%s' has no file disk.img", path);
    if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode) && !S_ISDIR(st.st_mode))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "'%s' is neither a file, nor a block device, nor a directory with a file "
                       "disk.img",
                       path);
    if (S_ISBLK(st.st_mode) && !is_idle(path, error))
        return false;
    if (!S_ISDIR(st.st_mode))
        end = lseek(fd, 0, SEEK_END);
    *out_is_block = S_ISBLK(st.st_mode);
    *out_n_bytes = end > 0 ? (guint64)end : 0;
    return true;
}

static bool
is_ours(const ChJson *claim)
{
    return g_strcmp0(ch_json_string_at(claim, "metadata", "labels", CH_CLAIM_MAKER_LABEL),
                     CH_CLAIM_MAKER) == 0;
}

/* One that an earlier attach left, of a VM that is gone, is used again. */
static bool
store_claim(const Context *context, const char *name, const ChJson *claim, GError **error)
{
    g_autofree char *collection = claim_path(context, NULL);
    g_autofree char *path = claim_path(context, name);
    g_autoptr(ChJson) old = ch_client_get(context->client, path, NULL);
    g_autoptr(ChJson) stored = NULL;

    if (old != NULL && !is_ours(old))
        return ch_fail(error,
                       CH_ERROR_EXISTS,
                       "there is a claim '%s' already: choose another name by --name",
                       name);
    stored = ch_client_apply(context->client, collection, path, claim, NULL, error);
    return stored != NULL;
}

/* (transfer full): the name of a claim for what lies at @path */
static char *
make_claim(const Context *context, const char *path, GError **error)
{
    g_autofree char *absolute = g_canonicalize_filename(path, NULL);
    g_autofree char *name = g_strconcat(context->vm, "-", context->volume, NULL);
    g_autoptr(ChJson) claim = NULL;
    bool is_block = false;
    guint64 n_bytes = 0;

    if (!measure(absolute, &is_block, &n_bytes, error))
        return NULL;
    claim = ch_claim_new(context->cli->namespace_, name, absolute, is_block, n_bytes);
    return store_claim(context, name, claim, error) ? g_steal_pointer(&name) : NULL;
}

/* Others are somebody's. */
static bool
remove_claim_of_ours(const Context *context, const char *name, GError **error)
{
    g_autofree char *path = claim_path(context, name);
    g_autoptr(ChJson) claim = ch_client_get(context->client, path, NULL);
    g_autoptr(ChJson) answer = NULL;

    if (claim == NULL || !is_ours(claim))
        return true;
    answer = ch_client_request(
        context->client, &(ChClientRequest){.method = "DELETE", .path = path}, error);
    return answer != NULL;
}

/* --- the commands ----------------------------------------------------------------------------- */

static bool
is_bus(const char *bus, GError **error)
{
    return g_str_equal(bus, "virtio") || g_str_equal(bus, "scsi") ||
           ch_fail(error, CH_ERROR_INVALID, "--bus is virtio or scsi, not '%s'", bus);
}

static bool
attach(const Context *context, const char *source, const char *bus, bool waits, GError **error)
{
    const bool is_path = strchr(source, '/') != NULL;
    g_autofree char *claim = is_path ? make_claim(context, source, error) : g_strdup(source);
    g_autofree char *target = NULL;
    ChVolumeEdit edit = {context->volume, claim, bus};

    if (claim == NULL)
        return false;
    if (!ch_vm_edit(context->client, context->cli, context->vm, add_volume, &edit, error)) {
        if (is_path && !g_error_matches(*error, CH_ERROR, CH_ERROR_EXISTS))
            (void)remove_claim_of_ours(context, claim, NULL);
        return false;
    }
    if (!waits) {
        printf("volume \"%s\" is being attached\n", context->volume);
        return true;
    }
    if (!wait_for(context, true, &target, error))
        return false;
    printf("volume \"%s\" attached as %s\n", context->volume, target);
    return true;
}

/* Of `attach`. */
typedef struct {
    char **arguments;
    const char *name, *bus, *network, *mac; /* (nullable) */
    bool no_wait;
} Options;

static bool
attach_volume(ChClient *client, const ChCli *cli, const Options *options, GError **error)
{
    const char *vm = options->arguments[0];
    const char *source = options->arguments[1];
    const char *bus = options->bus != NULL ? options->bus : "virtio";
    g_autoptr(ChJson) vmi = ch_vm_get(client, cli, vm, error);
    g_autofree char *name =
        options->name != NULL ? g_strdup(options->name) : ch_volume_name_of_path(source);

    /* Before a claim is made: of the same name is the claim of the volume that is there. */
    if (vmi == NULL || !ch_vmi_check_name_free(vmi, name, error))
        return false;
    return attach(&(Context){client, cli, vm, name}, source, bus, !options->no_wait, error);
}

static bool
attach_network(ChClient *client, const ChCli *cli, const Options *options, GError **error)
{
    g_autofree char *name = options->name != NULL ? g_strdup(options->name)
                                                  : ch_network_name_of_definition(options->network);

    return ch_nic_plug(&(ChNicPlug){client, cli, options->arguments[0], !options->no_wait},
                       &(ChNetworkEdit){name, options->network, options->mac},
                       error);
}

static bool
check_options(const Options *options, GError **error)
{
    const bool has_source = options->arguments[1] != NULL;

    if (options->network == NULL && !has_source)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "say what to attach: a claim, a path, or --network DEFINITION");
    if (options->network != NULL && has_source)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "'%s' and --network are two things to attach: one at a time",
                       options->arguments[1]);
    if (options->network != NULL && options->bus != NULL)
        return ch_fail(error, CH_ERROR_INVALID, "--bus is for volumes, not for networks");
    if (options->network == NULL && options->mac != NULL)
        return ch_fail(error, CH_ERROR_INVALID, "--mac is for networks: see --network");
    return options->bus == NULL || is_bus(options->bus, error);
}

bool
ch_cmd_attach(ChCli *cli, int argc, char **argv, GError **error)
{
    g_autofree char *name = NULL;
    g_autofree char *bus = NULL;
    g_autofree char *network = NULL;
    g_autofree char *mac = NULL;
    gboolean no_wait = FALSE;
    const GOptionEntry entries[] = {{"name", 0, 0, G_OPTION_ARG_STRING, &name, NULL, NULL},
                                    {"bus", 0, 0, G_OPTION_ARG_STRING, &bus, NULL, NULL},
                                    {"network", 0, 0, G_OPTION_ARG_STRING, &network, NULL, NULL},
                                    {"mac", 0, 0, G_OPTION_ARG_STRING, &mac, NULL, NULL},
                                    {"no-wait", 0, 0, G_OPTION_ARG_NONE, &no_wait, NULL, NULL},
                                    G_OPTION_ENTRY_NULL};
    g_auto(GStrv) arguments = NULL;
    g_autoptr(ChClient) client = NULL;

    if (!ch_cli_parse(cli, argc, argv, entries, 1, 2, &arguments, error))
        return false;
    const Options options = {arguments, name, bus, network, mac, no_wait};
    if (!check_options(&options, error))
        return false;
    client = ch_client_new(cli, error);
    if (client == NULL)
        return false;
    return network != NULL ? attach_network(client, cli, &options, error)
                           : attach_volume(client, cli, &options, error);
}

static bool
detach_volume(const Context *context, bool waits, GError **error)
{
    Removal removal = {.volume = context->volume};
    g_autofree char *claim = NULL;
    const bool is_edited =
        ch_vm_edit(context->client, context->cli, context->vm, remove_volume, &removal, error);

    claim = removal.claim;
    if (!is_edited || (waits && !wait_for(context, false, NULL, error)) ||
        !remove_claim_of_ours(context, claim, error))
        return false;
    printf("volume \"%s\" %s\n", context->volume, waits ? "detached" : "is being detached");
    return true;
}

/* What has that name. */
static bool
choose(const ChJson *vmi, const char *name, bool is_network, bool *out_is_network, GError **error)
{
    const bool has_volume = ch_json_find(ch_json_at(vmi, "spec", "volumes"), "name", name) != NULL;
    const bool has_network = ch_vmi_has_network(vmi, name);

    if (!is_network && has_volume && has_network)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "the VM has both a volume and a network '%s': --network is for the network; "
                       "the volume can be detached when that is gone",
                       name);
    if (!is_network && !has_volume && !has_network)
        return ch_fail(error,
                       CH_ERROR_NOT_FOUND,
                       "the VM has no volume or network '%s' ('chandler get vmi %s -o json' shows "
                       "what it has)",
                       name,
                       ch_json_string_at(vmi, "metadata", "name"));
    *out_is_network = is_network || has_network;
    return true;
}

bool
ch_cmd_detach(ChCli *cli, int argc, char **argv, GError **error)
{
    gboolean no_wait = FALSE;
    gboolean network = FALSE;
    const GOptionEntry entries[] = {{"network", 0, 0, G_OPTION_ARG_NONE, &network, NULL, NULL},
                                    {"no-wait", 0, 0, G_OPTION_ARG_NONE, &no_wait, NULL, NULL},
                                    G_OPTION_ENTRY_NULL};
    g_auto(GStrv) arguments = NULL;
    g_autoptr(ChClient) client = NULL;
    g_autoptr(ChJson) vmi = NULL;
    bool is_network = false;

    if (!ch_cli_parse(cli, argc, argv, entries, 2, 2, &arguments, error))
        return false;
    client = ch_client_new(cli, error);
    vmi = client != NULL ? ch_vm_get(client, cli, arguments[0], error) : NULL;
    if (vmi == NULL || !choose(vmi, arguments[1], network, &is_network, error))
        return false;
    return is_network ? ch_nic_unplug(
                            &(ChNicPlug){client, cli, arguments[0], !no_wait}, arguments[1], error)
                      : detach_volume(
                            &(Context){client, cli, arguments[0], arguments[1]}, !no_wait, error);
}
