/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/guest-agent.h"

#include "handler/reconcile/test-support.h"
#include "lib/base/errors.h"

#define ON(name)  "{'name':'" name "','enabled':true}"
#define OFF(name) "{'name':'" name "','enabled':false}"
#define BASIC                                                                                                 \
    ON("guest-ping")                                                                                          \
    "," ON("guest-get-time") "," ON("guest-info") "," ON("guest-shutdown") "," ON(                            \
        "guest-network-"                                                                                      \
        "get-"                                                                                                \
        "interfaces") "," ON("guest-get-fsinfo") "," ON("guest-get-host-name") "," ON("guest-get-"            \
                                                                                      "users") "," ON("guest" \
                                                                                                      "-get-" \
                                                                                                      "timez" \
                                                                                                      "one") "," ON("guest-get-osinfo")
#define SSH                                                                                        \
    ON("guest-ssh-get-authorized-keys")                                                            \
    "," ON("guest-ssh-add-authorized-keys") "," ON("guest-ssh-remove-authorized-keys")
#define FILES                                                                                      \
    ON("guest-exec-status")                                                                        \
    "," ON("guest-exec") "," ON("guest-file-open") "," ON("guest-file-close") "," ON(              \
        "guest-file-read") "," ON("guest-file-write")
#define PASSWORD         ON("guest-set-user-password")
#define COMMANDS(list)   "{'supportedCommands':[" list "]}"
#define VERSION(version) "{'guestAgentVersion':'" version "'}"

#define CREDENTIAL(kind)                                                                           \
    "{'spec':{'accessCredentials':[{'" kind "':{'propagationMethod':{'qemuGuestAgent':{}}}}]}}"

/* Numbers of spec 01 §30.6. */
static const struct AgentCase {
    const char *path, *info, *vmi;
    const char *expect; /* NULL: supported */
} cases[] = {
    /* clang-format off */
    /* spec:02-14.2#7 spec:01#50 */
    {"/guest-agent/50-basic", COMMANDS(BASIC), "{}", NULL},
    /* spec:02-14.2#8 spec:01#50 */
    {"/guest-agent/50-all", COMMANDS(BASIC "," SSH "," PASSWORD), "{}", NULL},
    {"/guest-agent/one-is-disabled", COMMANDS(BASIC "," OFF("guest-ping")), "{}", "This guest agent doesn't support required basic commands"},
    {"/guest-agent/one-is-missing", COMMANDS(ON("guest-ping")), "{}", "This guest agent doesn't support required basic commands"},
    /* spec:02-14.2#9 spec:01#51 */
    {"/guest-agent/51-password-without-command", COMMANDS(BASIC), CREDENTIAL("userPassword"), "This guest agent doesn't support required password commands"},
    /* spec:02-14.2#10 spec:01#51 */
    {"/guest-agent/51-password", COMMANDS(BASIC "," PASSWORD), CREDENTIAL("userPassword"), NULL},
    /* spec:02-14.2#11 spec:01#52 */
    {"/guest-agent/52-ssh-without-commands", COMMANDS(BASIC), CREDENTIAL("sshPublicKey"), "This guest agent doesn't support required public key commands"},
    /* spec:02-14.2#12 spec:01#52 */
    {"/guest-agent/52-ssh-with-the-new-set", COMMANDS(BASIC "," SSH), CREDENTIAL("sshPublicKey"), NULL},
    /* spec:02-14.2#13 spec:01#52 */
    {"/guest-agent/52-ssh-with-the-old-set", COMMANDS(BASIC "," FILES), CREDENTIAL("sshPublicKey"), NULL},
    {"/guest-agent/version", VERSION("4.2.0"), "{}", NULL},
    {"/guest-agent/version-is-matched-anywhere", VERSION("12.0"), "{}", NULL},
    {"/guest-agent/old-version", VERSION("1.0"), "{}", "Guest agent version '1.0' is not supported"},
    {"/guest-agent/nothing", "{}", "{}", "Guest agent version '' is not supported"},
    {"/guest-agent/empty-text", "", "{}", "Guest agent version '' is not supported"},
    {"/guest-agent/null-list", "{'supportedCommands':null,'guestAgentVersion':null}", "{}", "Guest agent version '' is not supported"},
    {"/guest-agent/texts-with-nul", "{'guestAgentVersion':'4\\u0000','supportedCommands':[{'name':'\\u0000'}]}", "{}", "This guest agent doesn't support required basic commands"},
    {"/guest-agent/version-with-nul", VERSION("4\\u0000"), "{}", "Guest agent version '' is not supported"},
    {"/guest-agent/keys-are-case-sensitive", "{'GuestAgentVersion':'4.2'}", "{}", "Guest agent version '' is not supported"},
    /* clang-format on */
};

static void
test_agent(gconstpointer data)
{
    const struct AgentCase *c = data;
    g_autofree char *text = double_quoted(c->info);
    g_autoptr(ChJson) vmi = parse_json(c->vmi);
    g_autoptr(GError) error = NULL;
    g_autoptr(ChGuestInfo) info = ch_guest_info_parse(text, -1, &error);
    g_autofree char *reason = NULL;

    g_assert_no_error(error);
    reason = ch_guest_agent_unsupported_reason(info, vmi, NULL);
    g_assert_cmpstr(reason, ==, c->expect);
}

/* A pattern that is none matches nothing, and stops nothing. */
static void
test_configured_versions(void)
{
    static const char *const patterns[] = {"(", "^7", NULL};
    g_autoptr(ChJson) vmi = ch_json_new_object();
    g_autoptr(ChGuestInfo) seven = ch_guest_info_parse("{\"guestAgentVersion\":\"7.1\"}", -1, NULL);
    g_autoptr(ChGuestInfo) four = ch_guest_info_parse("{\"guestAgentVersion\":\"4.7\"}", -1, NULL);
    g_autofree char *seven_reason = ch_guest_agent_unsupported_reason(seven, vmi, patterns);
    g_autofree char *four_reason = ch_guest_agent_unsupported_reason(four, vmi, patterns);

    g_assert_null(seven_reason);
    g_assert_nonnull(four_reason);
}

static void
test_wrong_types_are_refused(void)
{
    static const char *const texts[] = {
        "[]",
        "{'guestAgentVersion':1}",
        "{'supportedCommands':{}}",
        "{'supportedCommands':['x']}",
        "{'supportedCommands':[{'name':1}]}",
        "{'supportedCommands':[{'name':'x','enabled':'yes'}]}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autofree char *text = double_quoted(texts[i]);
        g_autoptr(GError) error = NULL;
        g_autoptr(ChGuestInfo) info = ch_guest_info_parse(text, -1, &error);

        g_assert_null(info);
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

/* A launcher chooses the names: these have one g_str_hash(), and would take minutes if each were
 * compared with all before. */
static void
test_names_with_one_hash(void)
{
    const guint n_bits = 16;
    g_autoptr(GString) text = g_string_new("{\"supportedCommands\":[");
    g_autoptr(ChGuestInfo) info = NULL;

    for (guint i = 0; i < 1u << n_bits; i++) {
        g_string_append(text, i > 0 ? ",{\"name\":\"" : "{\"name\":\"");
        for (guint bit = 0; bit < n_bits; bit++)
            g_string_append(text, i >> bit & 1 ? "Ez" : "FY");
        g_string_append(text, "\"}");
    }
    g_string_append(text, "]}");
    info = ch_guest_info_parse(text->str, (gssize)text->len, NULL);
    g_assert_cmpint(g_tree_nnodes(info->is_enabled), ==, 1 << n_bits);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_agent);
    g_test_add_func("/guest-agent/configured-versions", test_configured_versions);
    g_test_add_func("/guest-agent/wrong-types-are-refused", test_wrong_types_are_refused);
    g_test_add_func("/guest-agent/names-with-one-hash", test_names_with_one_hash);
    return g_test_run();
}
