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
#include "lib/linux/block-device.h"
#include "local/cli/attach-wait.h"
#include "local/cli/cli.h"
#include "local/cli/network-edit.h"
#include "local/cli/nic-plug.h"
#include "local/cli/resource.h"
#include "local/cli/vm-edit.h"
#include "local/cli/vms.h"
#include "local/cli/volume-edit.h"

#define MAX_LIMIT_S       86400
#define TAKE_BACK_LIMIT_S 15

typedef struct {
    ChClient *client;
    const ChCli *cli;
    const char *vm;
    const char *volume;
    int limit_s; /* of waiting; 0: do not wait */
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

/* --- claims ----------------------------------------------------------------------------------- */

static char *
claim_path(const Context *context, const char *name)
{
    return ch_cli_resource_path(ch_cli_resource_by_name("pvc"), context->cli->namespace_, name);
}

static bool
check_idle(const char *path, GError **error)
{
    return ch_block_device_is_idle(path) ||
           ch_fail(error,
                   CH_ERROR_INVALID,
                   "the device '%s' is in use: mounted, or part of another device",
                   path);
}

/* A guest would see the container instead of the disk in it, and write over it. */
static bool
is_raw(int fd, const char *path, GError **error)
{
    static const char magic[] = {'Q', 'F', 'I', (char)0xfb};
    char start[sizeof(magic)];

    return pread(fd, start, sizeof(start), 0) != (ssize_t)sizeof(start) ||
           memcmp(start, magic, sizeof(magic)) != 0 ||
           ch_fail(error,
                   CH_ERROR_INVALID,
                   "'%s' is a qcow2 image, and only raw ones can be attached: 'qemu-img convert -O "
                   "raw %s disk.img' makes one",
                   path,
                   path);
}

/* A directory stands for its disk.img. */
static bool
measure(const char *path, bool *out_is_block, guint64 *out_n_bytes, GError **error)
{
    ch_autofd int dir = g_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    g_autofree char *data = dir >= 0 ? g_build_filename(path, "disk.img", NULL) : g_strdup(path);
    ch_autofd int fd = dir >= 0
                           ? openat(dir, "disk.img", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
                           : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    off_t end;

    if (dir >= 0 && (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
        return ch_fail(error, CH_ERROR_INVALID, "the directory '%s' has no file disk.img", path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return ch_fail_errno(error, errno, "open '%s'", path);
    if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "'%s' is neither a file, nor a block device, nor a directory with a file "
                       "disk.img",
                       path);
    if (S_ISBLK(st.st_mode) ? !check_idle(path, error) : !is_raw(fd, data, error))
        return false;
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

/* The names of VM "a-b" and volume "c" make the same claim's as those of "a" and "b-c". */
static bool
is_unused(const Context *context, const char *name, GError **error)
{
    g_autofree char *path = ch_cli_resource_path(ch_cli_vmis, context->cli->namespace_, NULL);
    g_autoptr(ChJson) vmis = ch_client_get(context->client, path, error);
    const char *user = ch_vmis_find_claim_user(vmis, name);

    return vmis != NULL &&
           (user == NULL || ch_fail(error,
                                    CH_ERROR_EXISTS,
                                    "the claim '%s' is in use by the VM '%s': choose another name "
                                    "by --name",
                                    name,
                                    user));
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
    if (old != NULL && !is_unused(context, name, error))
        return false;
    stored = ch_client_apply(context->client, collection, path, claim, NULL, error);
    return stored != NULL;
}

/* Somebody who names a claim that is not there may mean a file. */
static bool
check_claim(const Context *context, const char *name, GError **error)
{
    g_autofree char *path = claim_path(context, name);
    g_autoptr(GError) failure = NULL;
    g_autoptr(ChJson) claim = ch_client_get(context->client, path, &failure);

    if (claim != NULL)
        return true;
    if (!ch_client_is_not_found(failure)) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    return ch_fail(error,
                   CH_ERROR_NOT_FOUND,
                   "there is no claim '%s' in namespace '%s' ('chandler get pvc' lists them); a "
                   "file or device of this machine is named by a path with a '/' in it%s%s",
                   name,
                   context->cli->namespace_,
                   g_file_test(name, G_FILE_TEST_EXISTS) ? ": ./" : "",
                   g_file_test(name, G_FILE_TEST_EXISTS) ? name : "");
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

/* Others are somebody's; so is one of ours that another VM was given by its name. */
static bool
remove_claim_of_ours(const Context *context, const char *name, GError **error)
{
    g_autofree char *path = claim_path(context, name);
    g_autoptr(ChJson) claim = ch_client_get(context->client, path, NULL);
    g_autoptr(ChJson) answer = NULL;

    if (claim == NULL || !is_ours(claim) || !is_unused(context, name, NULL))
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
wait_detached(const Context *context, int limit_s, GError **error)
{
    return ch_attach_wait(
               &(ChAttachWait){
                   context->client, context->cli, context->vm, context->volume, false, limit_s},
               NULL,
               error) == CH_ATTACH_DONE;
}

/* What was refused leaves nothing; the status forgets it, so that the next attempt is a new one. */
static void
take_back(const Context *context, bool is_path, const char *claim)
{
    Removal removal = {.volume = context->volume};

    if (ch_vm_edit(context->client, context->cli, context->vm, remove_volume, &removal, NULL))
        (void)wait_detached(context, TAKE_BACK_LIMIT_S, NULL);
    g_free(removal.claim);
    if (is_path)
        (void)remove_claim_of_ours(context, claim, NULL);
}

static bool
wait_attached(const Context *context, bool is_path, const char *claim, GError **error)
{
    g_autofree char *target = NULL;
    const ChAttachOutcome outcome = ch_attach_wait(
        &(ChAttachWait){
            context->client, context->cli, context->vm, context->volume, true, context->limit_s},
        &target,
        error);

    if (outcome == CH_ATTACH_REFUSED)
        take_back(context, is_path, claim);
    if (outcome == CH_ATTACH_DONE)
        printf("volume \"%s\" attached as %s\n", context->volume, target);
    return outcome == CH_ATTACH_DONE;
}

static bool
attach(const Context *context, const char *source, ChVolumeEdit *edit, GError **error)
{
    const bool is_path = strchr(source, '/') != NULL;
    g_autofree char *claim = NULL;

    if (!is_path && !check_claim(context, source, error))
        return false;
    ch_attach_defer_interrupt();
    claim = is_path ? make_claim(context, source, error) : g_strdup(source);
    if (claim == NULL)
        return false;
    edit->name = context->volume;
    edit->claim = claim;
    if (!ch_vm_edit(context->client, context->cli, context->vm, add_volume, edit, error)) {
        if (is_path && !g_error_matches(*error, CH_ERROR, CH_ERROR_EXISTS))
            (void)remove_claim_of_ours(context, claim, NULL);
        return false;
    }
    if (context->limit_s > 0)
        return wait_attached(context, is_path, claim, error);
    printf("volume \"%s\" is being attached\n", context->volume);
    return true;
}

static bool
check_limit(int limit_s, GError **error)
{
    return (limit_s >= 1 && limit_s <= MAX_LIMIT_S) ||
           ch_fail(error,
                   CH_ERROR_INVALID,
                   "--timeout is a number of seconds from 1 to %d, not %d",
                   MAX_LIMIT_S,
                   limit_s);
}

/* Of `attach`. */
typedef struct {
    char **arguments;
    const char *name, *bus, *network, *mac; /* (nullable) */
    bool is_read_only, is_shareable;
    bool no_wait;
    int limit_s;
} Options;

static bool
attach_volume(ChClient *client, const ChCli *cli, const Options *options, GError **error)
{
    const char *vm = options->arguments[0];
    const char *source = options->arguments[1];
    g_autoptr(ChJson) vmi = ch_vm_get(client, cli, vm, error);
    g_autofree char *name =
        options->name != NULL ? g_strdup(options->name) : ch_volume_name_of_path(source);
    ChVolumeEdit edit = {.bus = options->bus != NULL ? options->bus : "virtio",
                         .is_read_only = options->is_read_only,
                         .is_shareable = options->is_shareable};

    /* Before a claim is made: of the same name is the claim of the volume that is there. */
    if (vmi == NULL || !ch_volume_check_name(name, error) ||
        !ch_vmi_check_name_free(vmi, name, error))
        return false;
    return attach(&(Context){client, cli, vm, name, options->no_wait ? 0 : options->limit_s},
                  source,
                  &edit,
                  error);
}

static bool
attach_network(ChClient *client, const ChCli *cli, const Options *options, GError **error)
{
    g_autofree char *name = options->name != NULL ? g_strdup(options->name)
                                                  : ch_network_name_of_definition(options->network);

    return ch_nic_plug(
        &(ChNicPlug){client, cli, options->arguments[0], options->no_wait ? 0 : options->limit_s},
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
    if (options->network != NULL &&
        (options->bus != NULL || options->is_read_only || options->is_shareable))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "--bus, --read-only and --shareable are for volumes, not for networks");
    if (options->network == NULL && options->mac != NULL)
        return ch_fail(error, CH_ERROR_INVALID, "--mac is for networks: see --network");
    return check_limit(options->limit_s, error) &&
           (options->bus == NULL || is_bus(options->bus, error));
}

bool
ch_cmd_attach(ChCli *cli, int argc, char **argv, GError **error)
{
    g_autofree char *name = NULL;
    g_autofree char *bus = NULL;
    g_autofree char *network = NULL;
    g_autofree char *mac = NULL;
    gboolean no_wait = FALSE;
    gboolean is_read_only = FALSE;
    gboolean is_shareable = FALSE;
    int limit_s = CH_ATTACH_LIMIT_S;
    const GOptionEntry entries[] = {
        {"name", 0, 0, G_OPTION_ARG_STRING, &name, NULL, NULL},
        {"bus", 0, 0, G_OPTION_ARG_STRING, &bus, NULL, NULL},
        {"network", 0, 0, G_OPTION_ARG_STRING, &network, NULL, NULL},
        {"mac", 0, 0, G_OPTION_ARG_STRING, &mac, NULL, NULL},
        {"no-wait", 0, 0, G_OPTION_ARG_NONE, &no_wait, NULL, NULL},
        {"read-only", 0, 0, G_OPTION_ARG_NONE, &is_read_only, NULL, NULL},
        {"shareable", 0, 0, G_OPTION_ARG_NONE, &is_shareable, NULL, NULL},
        {"timeout", 0, 0, G_OPTION_ARG_INT, &limit_s, NULL, NULL},
        G_OPTION_ENTRY_NULL};
    g_auto(GStrv) arguments = NULL;
    g_autoptr(ChClient) client = NULL;

    if (!ch_cli_parse(cli, argc, argv, entries, 1, 2, &arguments, error))
        return false;
    const Options options = {
        arguments, name, bus, network, mac, is_read_only, is_shareable, no_wait, limit_s};
    if (!check_options(&options, error))
        return false;
    client = ch_client_new(cli, error);
    if (client == NULL)
        return false;
    return network != NULL ? attach_network(client, cli, &options, error)
                           : attach_volume(client, cli, &options, error);
}

static bool
detach_volume(const Context *context, GError **error)
{
    Removal removal = {.volume = context->volume};
    g_autofree char *claim = NULL;
    bool is_edited;

    ch_attach_defer_interrupt();
    is_edited =
        ch_vm_edit(context->client, context->cli, context->vm, remove_volume, &removal, error);
    claim = removal.claim;
    if (!is_edited || (claim != NULL && !remove_claim_of_ours(context, claim, error)) ||
        (context->limit_s > 0 && !wait_detached(context, context->limit_s, error)))
        return false;
    printf("volume \"%s\" %s\n",
           context->volume,
           context->limit_s > 0 ? "detached" : "is being detached");
    return true;
}

/* What has that name; --network decides for a VM that was made with both. */
static bool
choose(const ChJson *vmi, const char *name, bool is_network, bool *out_is_network, GError **error)
{
    /* An earlier detach may have left one that is still going. */
    const bool has_volume =
        ch_json_find(ch_json_at(vmi, "spec", "volumes"), "name", name) != NULL ||
        ch_vmi_volume_status(vmi, name) != NULL;

    if (!is_network && !has_volume && !ch_vmi_has_network(vmi, name))
        return ch_fail(error,
                       CH_ERROR_NOT_FOUND,
                       "the VM has no volume or network '%s' ('chandler get vmi %s -o json' shows "
                       "what it has)",
                       name,
                       ch_json_string_at(vmi, "metadata", "name"));
    *out_is_network = is_network || !has_volume;
    return true;
}

bool
ch_cmd_detach(ChCli *cli, int argc, char **argv, GError **error)
{
    gboolean no_wait = FALSE;
    int limit_s = CH_ATTACH_LIMIT_S;
    gboolean network = FALSE;
    const GOptionEntry entries[] = {{"network", 0, 0, G_OPTION_ARG_NONE, &network, NULL, NULL},
                                    {"no-wait", 0, 0, G_OPTION_ARG_NONE, &no_wait, NULL, NULL},
                                    {"timeout", 0, 0, G_OPTION_ARG_INT, &limit_s, NULL, NULL},
                                    G_OPTION_ENTRY_NULL};
    g_auto(GStrv) arguments = NULL;
    g_autoptr(ChClient) client = NULL;
    g_autoptr(ChJson) vmi = NULL;
    bool is_network = false;

    if (!ch_cli_parse(cli, argc, argv, entries, 2, 2, &arguments, error) ||
        !check_limit(limit_s, error))
        return false;
    client = ch_client_new(cli, error);
    vmi = client != NULL ? ch_vm_get(client, cli, arguments[0], error) : NULL;
    if (vmi == NULL || !choose(vmi, arguments[1], network, &is_network, error))
        return false;
    if (no_wait)
        limit_s = 0;
    return is_network
               ? ch_nic_unplug(
                     &(ChNicPlug){client, cli, arguments[0], limit_s}, arguments[1], error)
               : detach_volume(&(Context){client, cli, arguments[0], arguments[1], limit_s}, error);
}
