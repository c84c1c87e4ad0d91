/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/log.h"

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

/* Stderr goes to a memory file from begin() to end(). */
static int real_stderr = -EBADF;

static void
begin(void)
{
    ch_autofd int fd = memfd_create("stderr", MFD_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    real_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    g_assert_cmpint(dup2(fd, STDERR_FILENO), ==, STDERR_FILENO);
    g_assert_cmpint(fcntl(STDERR_FILENO, F_SETFL, O_APPEND), ==, 0);
}

/* (transfer full): what was written, with the time of each line replaced by T and the line numbers
 * by N, after checking their form. */
static char *
end(void)
{
    const off_t size = lseek(STDERR_FILENO, 0, SEEK_END);
    g_autofree char *text = g_malloc0((gsize)size + 1);
    g_autoptr(GRegex) time = g_regex_new(
        "\"timestamp\":\"\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z\"", 0, 0, NULL);
    g_autoptr(GRegex) line = g_regex_new("\\.c:\\d+\"", 0, 0, NULL);
    g_autofree char *without_time = NULL;

    g_assert_cmpint(pread(STDERR_FILENO, text, (gsize)size, 0), ==, size);
    g_assert_cmpint(dup2(real_stderr, STDERR_FILENO), ==, STDERR_FILENO);
    ch_close_fd(&real_stderr);
    if (!g_utf8_validate(text, -1, NULL))
        g_error("not UTF-8: %s", text);
    without_time = g_regex_replace_literal(time, text, -1, 0, "\"timestamp\":\"T\"", 0, NULL);
    return g_regex_replace_literal(line, without_time, -1, 0, ".c:N\"", 0, NULL);
}

static void
test_object_is_attached(void)
{
    const ChLogContext context = {
        .controller = "vm",
        .namespace_ = "default",
        .name = "testvmi",
        .kind = "VirtualMachineInstance",
        .uid = "1234-5678",
    };
    g_autofree char *text = NULL;

    begin();
    ch_log_info(&context, "Synchronization loop %s.", "succeeded");
    text = end();
    g_assert_cmpstr(text,
                    ==,
                    "{\"component\":\"unit\",\"controller\":\"vm\",\"kind\":"
                    "\"VirtualMachineInstance\",\"level\":\"info\",\"msg\":\"Synchronization loop "
                    "succeeded.\",\"name\":\"testvmi\",\"namespace\":\"default\",\"pos\":"
                    "\"test-log.c:N\",\"timestamp\":\"T\",\"uid\":\"1234-5678\"}\n");
}

static void
test_object_without_kind_and_namespace(void)
{
    const ChLogContext context = {.namespace_ = "", .name = "node01"};
    g_autofree char *text = NULL;

    begin();
    ch_log_warning(&context, NULL, "w");
    text = end();
    g_assert_cmpstr(text,
                    ==,
                    "{\"component\":\"unit\",\"kind\":\"\",\"level\":\"warning\",\"msg\":\"w\","
                    "\"name\":\"node01\",\"pos\":\"test-log.c:N\",\"timestamp\":\"T\",\"uid\":"
                    "\"\"}\n");
}

static void
test_fields_are_merged_in_order(void)
{
    const ChLogField fields[] = {
        {"stage", "sync", 0},
        {"elapsedMs", NULL, -12},
        {"zone", "z", 0},
        {"apple", "a", 0},
        {"stage", "define", 0},
        {"msg", "never", 0},
    };
    const ChLogContext context = {.fields = fields, .n_fields = G_N_ELEMENTS(fields)};
    g_autofree char *text = NULL;

    begin();
    ch_log_info(&context, "m");
    text = end();
    g_assert_cmpstr(text,
                    ==,
                    "{\"apple\":\"a\",\"component\":\"unit\",\"elapsedMs\":-12,\"level\":\"info\","
                    "\"msg\":\"m\",\"pos\":\"test-log.c:N\",\"stage\":\"define\",\"timestamp\":"
                    "\"T\",\"zone\":\"z\"}\n");
}

static void
test_hostile_bytes_stay_in_one_line(void)
{
    g_autoptr(GError) reason = NULL;
    g_autofree char *text = NULL;

    ch_fail(&reason, CH_ERROR_FAILED, "bad \xff\n{\"level\":\"fatal\"}");
    begin();
    ch_log_error(NULL, reason, "a\x1b[2J\r\n</b>");
    text = end();
    g_assert_cmpstr(text,
                    ==,
                    "{\"component\":\"unit\",\"level\":\"error\",\"msg\":\"a\\u001b[2J\\r\\n</b>\","
                    "\"pos\":\"test-log.c:N\",\"reason\":\"bad "
                    "\\ufffd\\n{\\\"level\\\":\\\"fatal\\\"}\",\"timestamp\":\"T\"}\n");
}

static void
test_long_text_is_cut_between_characters(void)
{
    g_autofree char *fill = g_strnfill(CH_LOG_MAX_TEXT - 1, 'x');
    g_autofree char *text = NULL;

    begin();
    ch_log_info(NULL, "%s\u20acyz", fill);
    text = end();
    g_assert_nonnull(strstr(text, "xxx... (5 more bytes)\",\"pos\""));
    g_assert_cmpuint(strlen(text), <, CH_LOG_MAX_TEXT + 200);
}

static void
test_verbosity_silences_info_only(void)
{
    g_autofree char *text = NULL;
    int evaluated = 0;

    begin();
    ch_log_verbose(3, NULL, "not at two %d", ++evaluated);
    ch_log_set_verbosity(1);
    ch_log_set_verbosity(-1);
    ch_log_info(NULL, "not at one %d", ++evaluated);
    ch_log_info_reason(NULL, NULL, "nor this");
    ch_log_warning(NULL, NULL, "one");
    ch_log_fatal(NULL, NULL, "two");
    ch_log_set_verbosity(4);
    ch_log_verbose(4, NULL, "three");
    ch_log_set_verbosity(2);
    text = end();

    g_assert_cmpint(evaluated, ==, 0);
    g_assert_null(strstr(text, "nor this"));
    g_assert_nonnull(strstr(text, "\"level\":\"warning\",\"msg\":\"one\""));
    g_assert_nonnull(strstr(text, "\"level\":\"fatal\",\"msg\":\"two\""));
    g_assert_nonnull(strstr(text, "\"level\":\"info\",\"msg\":\"three\""));
}

static void
test_glib_is_routed(void)
{
    g_autofree char *text = NULL;

    begin();
    g_log_structured(
        "Foo", G_LOG_LEVEL_MESSAGE, "CODE_FILE", "a/b.c", "CODE_LINE", "7", "MESSAGE", "hi");
    g_log_structured("Foo", G_LOG_LEVEL_DEBUG, "MESSAGE", "silent at two");
    g_log_structured("Foo", G_LOG_LEVEL_WARNING, "MESSAGE", "careful");
    text = end();
    g_assert_cmpstr(text,
                    ==,
                    "{\"component\":\"unit\",\"level\":\"info\",\"msg\":\"hi\",\"pos\":\"b.c:N\","
                    "\"subcomponent\":\"Foo\",\"timestamp\":\"T\"}\n"
                    "{\"component\":\"unit\",\"level\":\"warning\",\"msg\":\"careful\",\"pos\":"
                    "\"glib.c:N\",\"subcomponent\":\"Foo\",\"timestamp\":\"T\"}\n");
}

static void
test_errno_is_kept(void)
{
    g_autofree char *text = NULL;

    begin();
    errno = EXDEV;
    ch_log_info(NULL, "m");
    g_assert_cmpint(errno, ==, EXDEV);
    text = end();
}

#define N_THREADS 4
#define N_LINES   200

static gpointer
log_a_lot(gpointer data)
{
    for (int i = 0; i < N_LINES; i++)
        ch_log_info(NULL, "line of %s", (const char *)data);
    return NULL;
}

static void
test_lines_of_threads_do_not_mix(void)
{
    GThread *threads[N_THREADS];
    g_autofree char *fill = g_strnfill(3000, 'f');
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    begin();
    for (int i = 0; i < N_THREADS; i++)
        threads[i] = g_thread_new("log", log_a_lot, fill);
    for (int i = 0; i < N_THREADS; i++)
        g_thread_join(threads[i]);
    text = end();

    lines = g_strsplit(text, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, N_THREADS * N_LINES + 1);
    for (int i = 0; i < N_THREADS * N_LINES; i++)
        g_assert_cmpstr(lines[i], ==, lines[0]);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ch_log_init("not-yet");
    ch_log_init("unit");
    /* A warning that the tests want to see must not end them. */
    g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL | G_LOG_FATAL_MASK);
    g_test_add_func("/log/object-is-attached", test_object_is_attached);
    g_test_add_func("/log/object-without-kind-and-namespace",
                    test_object_without_kind_and_namespace);
    g_test_add_func("/log/fields-are-merged-in-order", test_fields_are_merged_in_order);
    g_test_add_func("/log/hostile-bytes-stay-in-one-line", test_hostile_bytes_stay_in_one_line);
    g_test_add_func("/log/long-text-is-cut-between-characters",
                    test_long_text_is_cut_between_characters);
    g_test_add_func("/log/verbosity-silences-info-only", test_verbosity_silences_info_only);
    g_test_add_func("/log/glib-is-routed", test_glib_is_routed);
    g_test_add_func("/log/errno-is-kept", test_errno_is_kept);
    g_test_add_func("/log/lines-of-threads-do-not-mix", test_lines_of_threads_do_not_mix);
    return g_test_run();
}
