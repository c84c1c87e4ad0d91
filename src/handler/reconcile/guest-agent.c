/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/guest-agent.h"

#include "lib/base/errors.h"

#include <string.h>

static const char *const basic_commands[] = {
    "guest-ping",
    "guest-get-time",
    "guest-info",
    "guest-shutdown",
    "guest-network-get-interfaces",
    "guest-get-fsinfo",
    "guest-get-host-name",
    "guest-get-users",
    "guest-get-timezone",
    "guest-get-osinfo",
    NULL,
};

static const char *const ssh_commands[] = {
    "guest-ssh-get-authorized-keys",
    "guest-ssh-add-authorized-keys",
    "guest-ssh-remove-authorized-keys",
    NULL,
};

/* What older agents set keys with. */
static const char *const file_commands[] = {
    "guest-exec-status",
    "guest-exec",
    "guest-file-open",
    "guest-file-close",
    "guest-file-read",
    "guest-file-write",
    NULL,
};

static const char *const password_commands[] = {"guest-set-user-password", NULL};

static const char *const default_versions[] = {"2.*", "3.*", "4.*", "5.*", NULL};

static bool
refuse(const char *key, GError **error)
{
    return ch_fail(error, CH_ERROR_INVALID, "guest info: '%s' has the wrong type", key);
}

/* "" when absent, and for a text with a NUL in it, which names no command and no version. */
static const char *
text_of(const ChJson *value)
{
    const char *text = ch_json_as_string(value);

    return text != NULL ? text : "";
}

static gint
compare_names(gconstpointer a, gconstpointer b, gpointer unused)
{
    return strcmp(a, b);
}

static bool
read_commands(ChGuestInfo *info, const ChJson *list, GError **error)
{
    if (list != NULL && !ch_json_is_array(list))
        return refuse("supportedCommands", error);
    for (gsize i = 0; i < ch_json_length(list); i++) {
        const ChJson *item = ch_json_item(list, i);
        const ChJson *name = ch_json_at(item, "name");
        const ChJson *enabled = ch_json_at(item, "enabled");

        if ((item != NULL && !ch_json_is_object(item)) ||
            (name != NULL && !ch_json_is_string(name)) ||
            (enabled != NULL && !ch_json_is_bool(enabled)))
            return refuse("supportedCommands", error);
        g_tree_replace(info->is_enabled,
                       g_strdup(text_of(name)),
                       GINT_TO_POINTER(ch_json_as_bool(enabled, false)));
    }
    return true;
}

ChGuestInfo *
ch_guest_info_parse(const char *text, gssize length, GError **error)
{
    const bool is_empty = length < 0 ? text[0] == '\0' : length == 0;
    g_autoptr(ChJson) document = NULL;
    g_autoptr(ChGuestInfo) info = g_new0(ChGuestInfo, 1);
    const ChJson *version;

    info->is_enabled = g_tree_new_full(compare_names, NULL, g_free, NULL);
    document = is_empty ? ch_json_new_object() : ch_json_parse(text, length, error);
    if (document == NULL)
        return NULL;
    if (!ch_json_is_object(document)) {
        refuse("document", error);
        return NULL;
    }
    version = ch_json_at(document, "guestAgentVersion");
    if (version != NULL && !ch_json_is_string(version)) {
        refuse("guestAgentVersion", error);
        return NULL;
    }
    info->version = g_strdup(text_of(version));
    if (!read_commands(info, ch_json_at(document, "supportedCommands"), error))
        return NULL;
    return g_steal_pointer(&info);
}

void
ch_guest_info_free(ChGuestInfo *info)
{
    if (info == NULL)
        return;
    g_free(info->version);
    g_tree_unref(info->is_enabled);
    g_free(info);
}

static bool
has_all(const ChGuestInfo *info, const char *const *commands)
{
    for (; *commands != NULL; commands++)
        if (!GPOINTER_TO_INT(g_tree_lookup(info->is_enabled, *commands)))
            return false;
    return true;
}

/* Does any access credential of @kind reach the guest through its agent? */
static bool
propagates_by_agent(const ChJson *vmi, const char *kind)
{
    const ChJson *credentials = ch_json_at(vmi, "spec", "accessCredentials");

    for (gsize i = 0; i < ch_json_length(credentials); i++)
        if (ch_json_at(ch_json_item(credentials, i), kind, "propagationMethod", "qemuGuestAgent") !=
            NULL)
            return true;
    return false;
}

static const char *
missing_commands(const ChGuestInfo *info, const ChJson *vmi)
{
    if (!has_all(info, basic_commands))
        return "This guest agent doesn't support required basic commands";
    if (propagates_by_agent(vmi, "sshPublicKey") && !has_all(info, ssh_commands) &&
        !has_all(info, file_commands))
        return "This guest agent doesn't support required public key commands";
    if (propagates_by_agent(vmi, "userPassword") && !has_all(info, password_commands))
        return "This guest agent doesn't support required password commands";
    return NULL;
}

/* Patterns match anywhere: "2.*" matches "12.0" (02 trap 24). */
static bool
matches_any(const char *version, const char *const *patterns)
{
    for (; *patterns != NULL; patterns++) {
        g_autoptr(GRegex) regex = g_regex_new(*patterns, 0, 0, NULL);

        if (regex != NULL && g_regex_match(regex, version, 0, NULL))
            return true;
    }
    return false;
}

char *
ch_guest_agent_unsupported_reason(const ChGuestInfo *info,
                                  const ChJson *vmi,
                                  const char *const *version_patterns)
{
    if (g_tree_nnodes(info->is_enabled) > 0)
        return g_strdup(missing_commands(info, vmi));
    if (matches_any(info->version, version_patterns != NULL ? version_patterns : default_versions))
        return NULL;
    return g_strdup_printf("Guest agent version '%s' is not supported", info->version);
}
