/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/record.h"

#include <glib/gstdio.h>

#include "lib/base/errors.h"
#include "lib/linux/command.h"

static const ChRecord sample = {
    .uid = (char *)"p-1",
    .name = (char *)"virt-launcher-vm-abcde",
    .namespace_ = (char *)"lab",
    .vmi_name = (char *)"vm",
    .vmi_uid = (char *)"u-1",
    .pid = 42,
    .start_time = 9000000000,
    .grace_s = 60,
    .network = (char *)CH_RECORD_NETWORK_UP,
    .ips = (char *)"10.213.0.2,fd00::2",
    .cni_result = (char *)"{\"ips\":[]}",
    .attachments = (char *)"[{\"network\":\"blue\"}]",
    .hotplugs = (char *)"[{\"volume\":\"v\"}]",
    .uses = (char *)"[{\"what\":\"port 1/tcp\"}]",
    .troubles = (char *)"[{\"of\":\"red\"}]",
    .volume_troubles = (char *)"[{\"of\":\"v\"}]",
    .has_host_ports = true,
    .n_failed_dels = 2,
};

static void
assert_sample(const ChRecord *record)
{
    g_assert_cmpstr(record->uid, ==, "p-1");
    g_assert_cmpstr(record->vmi_uid, ==, "u-1");
    g_assert_cmpint(record->pid, ==, 42);
    g_assert_cmpint(record->start_time, ==, 9000000000);
    g_assert_false(record->is_tidied);
    g_assert_cmpstr(record->network, ==, CH_RECORD_NETWORK_UP);
    g_assert_cmpstr(record->ips, ==, "10.213.0.2,fd00::2");
    g_assert_cmpstr(record->cni_result, ==, "{\"ips\":[]}");
    g_assert_cmpstr(record->attachments, ==, "[{\"network\":\"blue\"}]");
    g_assert_cmpstr(record->hotplugs, ==, "[{\"volume\":\"v\"}]");
    g_assert_cmpstr(record->uses, ==, "[{\"what\":\"port 1/tcp\"}]");
    g_assert_cmpstr(record->troubles, ==, "[{\"of\":\"red\"}]");
    g_assert_cmpstr(record->volume_troubles, ==, "[{\"of\":\"v\"}]");
    g_assert_true(record->has_host_ports);
    g_assert_cmpint(record->n_failed_dels, ==, 2);
}

static void
test_lists(void)
{
    g_autofree char *member = g_strdup("[{\"a\":1}]");
    g_autoptr(ChJson) list = ch_record_list(member);
    g_autoptr(ChJson) none = ch_record_list(NULL);

    g_assert_cmpuint(ch_json_length(list), ==, 1);
    g_assert_cmpuint(ch_json_length(none), ==, 0);
    g_assert_true(ch_json_is_array(none));
    ch_record_set_list(&member, none);
    g_assert_null(member);
    ch_record_set_list(&member, list);
    g_assert_cmpstr(member, ==, "[{\"a\":1}]");
}

static void
test_record_of_before_there_was_a_network(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChRecord) record = ch_record_parse(
        "{\"uid\":\"p\",\"name\":\"n\",\"namespace\":\"s\",\"vmiName\":\"v\",\"vmiUID\":\"u\","
        "\"pid\":7,\"startTime\":0,\"stopped\":0,\"graceSeconds\":0}",
        &error);

    g_assert_no_error(error);
    g_assert_null(record->network);
    g_assert_null(record->ips);
}

static void
test_round_trip(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = ch_record_print(&sample);
    g_autoptr(ChRecord) record = ch_record_parse(text, &error);
    g_autoptr(ChRecord) copy = ch_record_dup(record);

    g_assert_no_error(error);
    assert_sample(copy);
}

static void
test_bad_records(void)
{
    static const char *const texts[] = {
        "",
        "{}",
        "[]",
        "{\"uid\":\"\"}",
        "{\"uid\":\"p\",\"name\":\"n\",\"namespace\":\"s\",\"vmiName\":\"v\",\"vmiUID\":\"u\","
        "\"pid\":-1,\"startTime\":0,\"stopped\":0,\"graceSeconds\":0}"};

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(ch_record_parse(texts[i], &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

static void
test_on_disk(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *dir = g_dir_make_tmp("record-XXXXXX", NULL);
    g_autofree char *stray = g_build_filename(dir, "run", "stray", NULL);
    g_autoptr(GPtrArray) none = ch_record_load_all(dir);
    g_autoptr(GPtrArray) all = NULL;
    const char *const rm[] = {"rm", "-r", dir, NULL};

    g_assert_cmpuint(none->len, ==, 0);
    g_assert_true(ch_record_save(&sample, dir, &error));
    g_assert_no_error(error);
    g_assert_cmpint(g_mkdir(stray, 0700), ==, 0); /* without a record: ignored */
    all = ch_record_load_all(dir);
    g_assert_cmpuint(all->len, ==, 1);
    assert_sample(all->pdata[0]);
    g_assert_true(ch_command_run(&(ChCommand){rm, 5000000, 0, 0}, NULL, NULL));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/record/round-trip", test_round_trip);
    g_test_add_func("/record/lists", test_lists);
    g_test_add_func("/record/bad-records", test_bad_records);
    g_test_add_func("/record/on-disk", test_on_disk);
    g_test_add_func("/record/of-before-there-was-a-network",
                    test_record_of_before_there_was_a_network);
    return g_test_run();
}
