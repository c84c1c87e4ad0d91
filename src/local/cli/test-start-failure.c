/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/start-failure.h"

#define REFUSED  "server error. command SyncVMI failed: \"Cannot allocate memory\""
#define SILENT   "unable to create virt-launcher client connection: context deadline exceeded"
#define NO_IMAGE "there is no image 'x'"

#define EVENT(when, type, reason, uid, message)                                                    \
    "{\"firstTimestamp\":\"2026-01-01T00:00:" when "Z\",\"type\":\"" type                          \
    "\",\"reason\":\"" reason "\",\"involvedObject\":{\"uid\":\"" uid "\"},\"message\":\"" message \
    "\"}"
#define WARNING(when, uid, message) EVENT(when, "Warning", "SyncFailed", uid, message)
#define JSON_REFUSED                "server error. command SyncVMI failed: \\\"Cannot allocate memory\\\""

#define VMI(status) "{\"metadata\":{\"uid\":\"u\"},\"status\":" status "}"
#define FAILING(message)                                                                           \
    VMI("{\"conditions\":[{\"type\":\"Synchronized\",\"status\":\"False\",\"message\":\"" message  \
        "\"}]}")

static const struct {
    const char *vmi;
    const char *events; /* NULL: no list */
    const char *reason;
} cases[] = {
    {VMI("{}"), NULL, NULL},
    {VMI("{}"), "", NULL},
    {FAILING(NO_IMAGE), "", NO_IMAGE},
    {VMI("{\"conditions\":[{\"type\":\"Synchronized\",\"status\":\"True\",\"message\":\"m\"}]}"),
     "",
     NULL},
    /* the launcher's own words, whatever was warned of before and after, and is the case now */
    {FAILING(SILENT),
     WARNING("05", "u", SILENT) "," WARNING("03", "u", JSON_REFUSED) "," WARNING("01", "u", SILENT),
     REFUSED},
    {FAILING(NO_IMAGE), WARNING("01", "u", SILENT), NO_IMAGE},
    {VMI("{}"), WARNING("02", "u", SILENT) "," WARNING("01", "u", NO_IMAGE), NO_IMAGE},
    {VMI("{}"), WARNING("01", "u", NO_IMAGE) "," WARNING("01", "u", SILENT), NO_IMAGE},
    /* not these */
    {VMI("{}"), WARNING("01", "v", JSON_REFUSED), NULL},
    {VMI("{}"), EVENT("01", "Normal", "Created", "u", "created"), NULL},
    {VMI("{}"), EVENT("01", "Warning", "Stopped", "u", "it ended"), NULL},
    {VMI("{}"), "{},7,{\"type\":\"Warning\",\"involvedObject\":{\"uid\":\"u\"}}", NULL},
};

static void
test_reason(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text =
            cases[i].events != NULL ? g_strdup_printf("{\"items\":[%s]}", cases[i].events) : NULL;
        g_autoptr(ChJson) vmi = ch_json_parse(cases[i].vmi, -1, NULL);
        g_autoptr(ChJson) events = text != NULL ? ch_json_parse(text, -1, NULL) : NULL;

        g_assert_nonnull(vmi);
        g_assert_true(text == NULL || events != NULL);
        g_assert_cmpstr(ch_start_failure_reason(vmi, events), ==, cases[i].reason);
    }
}

static void
test_final(void)
{
    g_assert_true(
        ch_start_failure_is_final("spec.domain.cpu.numa is not supported by this launcher"));
    g_assert_true(
        ch_start_failure_is_final("volume d: this launcher does not support the source hostDisk"));
    g_assert_false(ch_start_failure_is_final(NO_IMAGE));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/start-failure/the-launchers-word-counts-most", test_reason);
    g_test_add_func("/start-failure/final", test_final);
    return g_test_run();
}
