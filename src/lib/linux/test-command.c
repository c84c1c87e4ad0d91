/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/command.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/time.h"

static bool
run(const char *script, int64_t timeout_us, char **out_text, GError **error)
{
    const char *const argv[] = {"sh", "-c", script, NULL};

    return ch_command_run(&(ChCommand){argv, timeout_us, 0, 0}, out_text, error);
}

static void
test_output(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;

    g_assert_true(run("echo one; echo two >&2", 60 * CH_SECOND_US, &text, &error));
    g_assert_no_error(error);
    g_assert_cmpstr(text, ==, "one\n");
}

static void
test_failure_says_why(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_false(run("echo 'no such thing' >&2; exit 3", 60 * CH_SECOND_US, NULL, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_FAILED);
    g_assert_nonnull(strstr(error->message, "no such thing"));
}

static void
test_deadline(void)
{
    g_autoptr(GError) error = NULL;
    const int64_t begin_us = ch_time_now_us();

    g_assert_false(run("exec sleep 300", 100 * CH_MS_US, NULL, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_TIMEOUT);
    g_assert_cmpint(ch_time_now_us() - begin_us, <, 200 * CH_SECOND_US);
}

/* crun leaves a container behind that holds the pipes. */
static void
test_one_that_closes_its_outputs_is_ended_too(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_false(run("exec sleep 300 >&- 2>&-", CH_SECOND_US / 20, NULL, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_TIMEOUT);
}

static void
test_hostile_input_is_bounded(void)
{
    const char *const argv[] = {"sh", "-c", "ulimit -v; ulimit -t", NULL};
    const ChCommand command = {argv, 60 * CH_SECOND_US, .reads_hostile_input = true};
    g_autofree char *text = NULL;

    g_assert_true(ch_command_run(&command, &text, NULL));
    g_assert_cmpstr(text, ==, "1048576\n30\n");
}

static void
test_missing_program(void)
{
    const char *const argv[] = {"/no/such/program", NULL};
    const ChCommand command = {argv, 60 * CH_SECOND_US, 0, 0};
    g_autoptr(GError) error = NULL;

    g_assert_false(ch_command_run(&command, NULL, &error));
    g_assert_nonnull(error);
}

static void
test_background_is_not_waited_for(void)
{
    g_autoptr(GError) error = NULL;
    const int64_t begin_us = ch_time_now_us();

    g_assert_true(run("sleep 60 & echo done", 300 * CH_SECOND_US, NULL, &error));
    g_assert_no_error(error);
    g_assert_cmpint(ch_time_now_us() - begin_us, <, 50 * CH_SECOND_US);
}

static void
test_too_much(void)
{
    g_autoptr(GError) error = NULL;

    /* killed at the limit: it would not end by itself */
    g_assert_false(run("exec cat /dev/zero", 600 * CH_SECOND_US, NULL, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
}

static void
test_input_and_environment(void)
{
    const char *const argv[] = {"/bin/sh", "-c", "cat; echo $ONE; env | grep -c .", NULL};
    const char *const environment[] = {"ONE=1", "PATH=/usr/bin:/bin", NULL};
    g_autoptr(GString) input = g_string_new(NULL);
    g_autofree char *text = NULL;

    for (int i = 0; i < 20000; i++) /* more than a pipe takes */
        g_string_append(input, "0123456789");
    g_string_append_c(input, '\n');
    const ChCommand command = {
        argv, 20 * CH_SECOND_US, .input = input->str, .environment = environment};
    g_assert_true(ch_command_run(&command, &text, NULL));
    g_assert_true(g_str_has_prefix(text, input->str));
    g_assert_true(g_str_has_prefix(text + input->len, "1\n")); /* the shell adds variables itself */
}

static void
test_bad_end_is_told_whole(void)
{
    const char *const argv[] = {"sh", "-c", "echo out; echo err >&2; exit 7", NULL};
    g_auto(ChCommandEnd) end = {0};

    g_assert_true(ch_command_run_to_end(&(ChCommand){argv, 20 * CH_SECOND_US, 0, 0}, &end, NULL));
    g_assert_cmpint(end.status, ==, 7);
    g_assert_cmpstr(end.out, ==, "out\n");
    g_assert_cmpstr(end.err, ==, "err\n");
}

/* The grandchild holds the write end; its death is what ends the read. */
static void
test_group_is_killed_at_the_deadline(void)
{
    g_autoptr(GError) error = NULL;
    int ends[2];
    char byte;

    g_assert_cmpint(pipe2(ends, O_CLOEXEC), ==, 0);
    const char *const argv[] = {"sh", "-c", "sleep 600 & wait", NULL};
    const ChCommand command = {argv, 300 * CH_MS_US, ends[1], ends[1], .is_group = true};
    g_assert_false(ch_command_run(&command, NULL, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_TIMEOUT);
    close(ends[1]);
    g_assert_cmpint(read(ends[0], &byte, 1), ==, 0);
    close(ends[0]);
}

/* Orphans come to podrunner, which asks for no child but those that it knows. */
static void
test_killed_group_leaves_no_zombie(void)
{
    const char *const argv[] = {
        "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do (sleep 600 & wait) & done; wait", NULL};
    const ChCommand command = {argv, 300 * CH_MS_US, 0, 0, .is_group = true};
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(prctl(PR_SET_CHILD_SUBREAPER, 1), ==, 0);
    g_assert_false(ch_command_run(&command, NULL, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_TIMEOUT);
    g_assert_cmpint(waitpid(-1, NULL, WNOHANG), ==, -1);
    g_assert_cmpint(errno, ==, ECHILD);
    g_assert_cmpint(prctl(PR_SET_CHILD_SUBREAPER, 0), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/command/output", test_output);
    g_test_add_func("/command/failure-says-why", test_failure_says_why);
    g_test_add_func("/command/deadline", test_deadline);
    g_test_add_func("/command/background-is-not-waited-for", test_background_is_not_waited_for);
    g_test_add_func("/command/too-much", test_too_much);
    g_test_add_func("/command/one-that-closes-its-outputs-is-ended-too",
                    test_one_that_closes_its_outputs_is_ended_too);
    g_test_add_func("/command/hostile-input-is-bounded", test_hostile_input_is_bounded);
    g_test_add_func("/command/missing-program", test_missing_program);
    g_test_add_func("/command/input-and-environment", test_input_and_environment);
    g_test_add_func("/command/bad-end-is-told-whole", test_bad_end_is_told_whole);
    g_test_add_func("/command/group-is-killed-at-the-deadline",
                    test_group_is_killed_at_the_deadline);
    g_test_add_func("/command/killed-group-leaves-no-zombie", test_killed_group_leaves_no_zombie);
    return g_test_run();
}
