/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/flags.h"

#include "lib/base/errors.h"
#include "lib/base/time.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    FLAG_STRING,
    FLAG_INT,
    FLAG_BOOL,
    FLAG_DURATION,
    FLAG_STRING_ARRAY,
} FlagType;

typedef struct {
    const char *name;
    FlagType type;
    gsize offset;
    const char *fallback; /* of an array: comma-separated, for this table only */
    bool is_built;        /* something in this program reads it */
    const char *help;
} Flag;

#define FIELD(member) offsetof(ChFlags, member)
#define CERTS         "/etc/virt-handler/"

/* clang-format off */
static const Flag flag_table[] = {
    {"v",                            FLAG_INT,          FIELD(verbosity),                    "2",                           true,  "log verbosity"},
    {"kubeconfig",                   FLAG_STRING,       FIELD(kubeconfig),                   "",                            true,  "path of a kubeconfig file"},
    {"master",                       FLAG_STRING,       FIELD(master),                       "",                            true,  "URL of the API server, overrides the kubeconfig's"},
    {"listen",                       FLAG_STRING,       FIELD(listen),                       "0.0.0.0",                     false, "address on which the servers listen"},
    {"port",                         FLAG_INT,          FIELD(port),                         "8185",                        false, "port of metrics and health"},
    {"console-server-port",          FLAG_INT,          FIELD(console_server_port),          "8186",                        false, "port of console and lifecycle requests"},
    {"vmstats-server-port",          FLAG_INT,          FIELD(vmstats_server_port),          "8187",                        false, "port of VM statistics"},
    {"hostname-override",            FLAG_STRING,       FIELD(hostname_override),            "",                            true,  "node name; default: the kernel's host name"},
    {"pod-ip-address",               FLAG_STRING,       FIELD(pod_ip_address),               "",                            true,  "IP address of this pod"},
    {"kubevirt-share-dir",           FLAG_STRING,       FIELD(kubevirt_share_dir),           "/var/run/kubevirt",           true,  "directory shared with the launchers"},
    {"kubevirt-private-dir",         FLAG_STRING,       FIELD(kubevirt_private_dir),         "/var/run/kubevirt-private",   true,  "directory of this agent's records"},
    {"kubelet-pods-dir",             FLAG_STRING,       FIELD(kubelet_pods_dir),             "/var/lib/kubelet/pods",       true,  "kubelet's pods directory"},
    {"kubelet-root",                 FLAG_STRING,       FIELD(kubelet_root),                 "/var/lib/kubelet",            true,  "kubelet's root directory"},
    {"ca-configmap-name",            FLAG_STRING,       FIELD(ca_configmap_name),            "kubevirt-ca",                 false, "config map with the CA bundle"},
    {"client-cert-file",             FLAG_STRING,       FIELD(client_cert_file),             CERTS "clientcertificates/tls.crt", false, "client certificate"},
    {"client-key-file",              FLAG_STRING,       FIELD(client_key_file),              CERTS "clientcertificates/tls.key", false, "key of the client certificate"},
    {"migration-client-cert-file",   FLAG_STRING,       FIELD(migration_client_cert_file),   CERTS "migrationservercertificates/tls.crt", false, "client certificate for migrations"},
    {"migration-client-key-file",    FLAG_STRING,       FIELD(migration_client_key_file),    CERTS "migrationservercertificates/tls.key", false, "key of the client certificate for migrations"},
    {"vsock-client-cert-file",       FLAG_STRING,       FIELD(vsock_client_cert_file),       CERTS "vsockclientcertificates/tls.crt", false, "client certificate for vsock agents"},
    {"vsock-client-key-file",        FLAG_STRING,       FIELD(vsock_client_key_file),        CERTS "vsockclientcertificates/tls.key", false, "key of the client certificate for vsock agents"},
    {"tls-cert-file",                FLAG_STRING,       FIELD(tls_cert_file),                CERTS "servercertificates/tls.crt", false, "certificate of the servers"},
    {"tls-key-file",                 FLAG_STRING,       FIELD(tls_key_file),                 CERTS "servercertificates/tls.key", false, "key of the servers' certificate"},
    {"externally-managed",           FLAG_BOOL,         FIELD(externally_managed),           "false",                       false, "certificates are managed externally"},
    {"watchdog-timeout",             FLAG_DURATION,     FIELD(watchdog_timeout_us),          "30s",                         true,  "a launcher that refuses connections for longer is dead"},
    {"max-devices",                  FLAG_INT,          FIELD(max_devices),                  "1000",                        false, "devices offered per device plugin"},
    {"max-metric-requests",          FLAG_INT,          FIELD(max_metric_requests),          "3",                           false, "metrics requests served at once"},
    {"domain-resync-period-seconds", FLAG_INT,          FIELD(domain_resync_period_seconds), "300",                         true,  "seconds between two looks at every domain"},
    {"graceful-shutdown-seconds",    FLAG_INT,          FIELD(graceful_shutdown_seconds),    "300",                         false, "seconds to wait for migrations when stopping"},
    {"enable-node-labeller",         FLAG_BOOL,         FIELD(enable_node_labeller),         "true",                        false, "keep the node's CPU labels"},
    {"migration-cn-types",           FLAG_STRING_ARRAY, FIELD(migration_cn_types),           "virt-handler,migration",      false, "certificate names accepted for migrations; repeat the flag for more"},
};
/* clang-format on */

static const char *const type_names[] = {
    [FLAG_STRING] = "string",
    [FLAG_INT] = "int",
    [FLAG_BOOL] = "",
    [FLAG_DURATION] = "duration",
    [FLAG_STRING_ARRAY] = "stringArray",
};

static gpointer
flag_field(ChFlags *flags, const Flag *flag)
{
    return G_STRUCT_MEMBER_P(flags, flag->offset);
}

static bool
parse_int(const char *text, int *out_value, GError **error)
{
    gint64 value;

    if (!g_ascii_string_to_signed(text, 10, G_MININT, G_MAXINT, &value, NULL))
        return ch_fail(error, CH_ERROR_INVALID, "\"%s\" is no integer", text);
    *out_value = (int)value;
    return true;
}

static bool
parse_bool(const char *text, bool *out_value, GError **error)
{
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True", NULL};
    static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False", NULL};

    if (!g_strv_contains(yes, text) && !g_strv_contains(no, text))
        return ch_fail(error, CH_ERROR_INVALID, "\"%s\" is neither true nor false", text);
    *out_value = g_strv_contains(yes, text);
    return true;
}

/* @given: the flag was used on the command line before, so that an array grows instead of being
 * replaced */
static bool
flag_set(ChFlags *flags, const Flag *flag, const char *text, bool given, GError **error)
{
    gpointer field = flag_field(flags, flag);

    switch (flag->type) {
    case FLAG_STRING: {
        char **string = field;

        g_free(*string);
        *string = g_strdup(text);
        return true;
    }
    case FLAG_INT:
        return parse_int(text, field, error);
    case FLAG_BOOL:
        return parse_bool(text, field, error);
    case FLAG_DURATION:
        return ch_duration_parse(text, field, error);
    case FLAG_STRING_ARRAY: {
        GPtrArray *array = *(GPtrArray **)field;

        if (!given)
            g_ptr_array_set_size(array, 0);
        g_ptr_array_add(array, g_strdup(text));
        return true;
    }
    }
    g_assert_not_reached();
}

static ChFlags *
flags_new(void)
{
    ChFlags *flags = g_new0(ChFlags, 1);

    flags->not_built = g_ptr_array_new();
    for (gsize i = 0; i < G_N_ELEMENTS(flag_table); i++) {
        const Flag *flag = &flag_table[i];

        if (flag->type == FLAG_STRING_ARRAY) {
            g_auto(GStrv) items = g_strsplit(flag->fallback, ",", -1);
            GPtrArray *array = g_ptr_array_new_with_free_func(g_free);

            for (char **item = items; *item != NULL; item++)
                g_ptr_array_add(array, g_strdup(*item));
            *(GPtrArray **)flag_field(flags, flag) = array;
        } else {
            bool is_valid = flag_set(flags, flag, flag->fallback, false, NULL);

            g_assert(is_valid);
        }
    }
    return flags;
}

void
ch_flags_free(ChFlags *flags)
{
    if (flags == NULL)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(flag_table); i++) {
        gpointer field = flag_field(flags, &flag_table[i]);

        if (flag_table[i].type == FLAG_STRING)
            g_free(*(char **)field);
        else if (flag_table[i].type == FLAG_STRING_ARRAY)
            g_ptr_array_unref(*(GPtrArray **)field);
    }
    g_ptr_array_unref(flags->not_built);
    g_free(flags);
}

static const Flag *
flag_find(const char *name, gsize length)
{
    for (gsize i = 0; i < G_N_ELEMENTS(flag_table); i++) {
        if (strlen(flag_table[i].name) == length && strncmp(flag_table[i].name, name, length) == 0)
            return &flag_table[i];
    }
    return NULL;
}

/* One argument that begins with '-', taken apart. */
typedef struct {
    const Flag *flag;
    const char *value; /* NULL: in the next argument, if the flag wants one */
} Argument;

static bool
argument_parse(const char *text, Argument *out_argument, GError **error)
{
    const char *name = text + (text[1] == '-' ? 2 : 1);
    const char *equals = strchr(name, '=');
    gsize length = equals != NULL ? (gsize)(equals - name) : strlen(name);
    const Flag *flag;

    if (text[1] != '-') { /* short: only -v, its value may stick to it */
        if (name[0] != 'v')
            return ch_fail(
                error, CH_ERROR_INVALID, "unknown shorthand flag: '%c' in %s", name[0], text);
        *out_argument =
            (Argument){&flag_table[0], name[1] == '\0' ? NULL : name + (name[1] == '=' ? 2 : 1)};
        return true;
    }
    flag = flag_find(name, length);
    if (flag == NULL)
        return ch_fail(error, CH_ERROR_INVALID, "unknown flag: --%.*s", (int)length, name);
    *out_argument = (Argument){flag, equals != NULL ? equals + 1 : NULL};
    if (out_argument->value == NULL && flag->type == FLAG_BOOL)
        out_argument->value = "true";
    return true;
}

static void
flag_note_not_built(ChFlags *flags, const Flag *flag)
{
    if (!flag->is_built && !g_ptr_array_find(flags->not_built, flag->name, NULL))
        g_ptr_array_add(flags->not_built, (gpointer)flag->name);
}

ChFlagsOutcome
ch_flags_parse(const char *const *argv, ChFlags **out_flags, GError **error)
{
    g_autoptr(ChFlags) flags = flags_new();
    bool given[G_N_ELEMENTS(flag_table)] = {false};

    for (const char *const *arg = argv + 1; *arg != NULL; arg++) {
        Argument argument = {NULL, NULL};
        g_autoptr(GError) reason = NULL;

        if ((*arg)[0] != '-' || (*arg)[1] == '\0')
            continue;
        if (g_str_equal(*arg, "--"))
            break;
        if (g_str_equal(*arg, "--help") || g_str_equal(*arg, "-h"))
            return CH_FLAGS_HELP;
        if (!argument_parse(*arg, &argument, error))
            return CH_FLAGS_ERROR;
        if (argument.value == NULL && *++arg == NULL) {
            ch_fail(error, CH_ERROR_INVALID, "flag needs an argument: --%s", argument.flag->name);
            return CH_FLAGS_ERROR;
        }
        if (argument.value == NULL)
            argument.value = *arg;
        if (!flag_set(
                flags, argument.flag, argument.value, given[argument.flag - flag_table], &reason)) {
            ch_fail(error,
                    CH_ERROR_INVALID,
                    "invalid argument \"%s\" for \"--%s\" flag: %s",
                    argument.value,
                    argument.flag->name,
                    reason->message);
            return CH_FLAGS_ERROR;
        }
        given[argument.flag - flag_table] = true;
        flag_note_not_built(flags, argument.flag);
    }
    *out_flags = g_steal_pointer(&flags);
    return CH_FLAGS_OK;
}

/* (transfer full): "      --name type", the left column */
static char *
usage_of(const Flag *flag)
{
    const char *type = type_names[flag->type];

    return g_strdup_printf("%s--%s%s%s",
                           flag->name[1] == '\0' ? "  -v, " : "      ",
                           flag->name,
                           type[0] != '\0' ? " " : "",
                           type);
}

char *
ch_flags_usage(const char *program)
{
    GString *text = g_string_new(NULL);
    int width = 0;

    for (gsize i = 0; i < G_N_ELEMENTS(flag_table); i++) {
        g_autofree char *left = usage_of(&flag_table[i]);

        width = MAX(width, (int)strlen(left));
    }
    g_string_append_printf(text, "Usage of %s:\n", program);
    for (gsize i = 0; i < G_N_ELEMENTS(flag_table); i++) {
        const Flag *flag = &flag_table[i];
        g_autofree char *left = usage_of(flag);

        g_string_append_printf(text, "%-*s   %s", width, left, flag->help);
        if (flag->fallback[0] != '\0')
            g_string_append_printf(text, " (default %s)", flag->fallback);
        g_string_append_c(text, '\n');
    }
    return g_string_free(text, FALSE);
}
