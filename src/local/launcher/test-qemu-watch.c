/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/qemu-watch.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct PidCase {
    const char *path;
    const char *text;
    int pid; /* 0: refused */
} pid_cases[] = {
    {"/qemu-watch/pid/digits", "1234", 1234},
    {"/qemu-watch/pid/newline-is-no-number", "1234\n", 0},
    {"/qemu-watch/pid/empty", "", 0},
    {"/qemu-watch/pid/sign", "-5", 0},
    {"/qemu-watch/pid/zero", "0", 0},
    {"/qemu-watch/pid/too-large", "9999999999", 0},
    {"/qemu-watch/pid/too-long", "00000000001", 0},
};

static void
test_pid(gconstpointer data)
{
    const struct PidCase *c = data;
    int pid = 0;

    g_assert_cmpint(ch_qemu_watch_parse_pid(c->text, strlen(c->text), &pid), ==, c->pid != 0);
    g_assert_cmpint(pid, ==, c->pid);
}

static void
on_end(gpointer data)
{
    ch_loop_stop(data);
}

static void
test_end_is_noticed(void)
{
    g_autofree char *dir = g_dir_make_tmp("qemu-watch-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "vm.pid", NULL);
    g_autoptr(ChLoop) loop = ch_loop_new();
    g_autoptr(ChQemuWatch) watch = ch_qemu_watch_new(loop, path, on_end, loop);

    g_assert_false(ch_qemu_watch_look(watch));
    const pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    g_autofree char *text = g_strdup_printf("%d", (int)child);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    g_assert_true(ch_qemu_watch_look(watch));
    g_assert_true(ch_qemu_watch_is_running(watch));

    kill(child, SIGKILL);
    ch_loop_run(loop); /* until on_end */
    g_assert_false(ch_qemu_watch_is_running(watch));
    g_assert_true(ch_qemu_watch_look(watch));
    waitpid(child, NULL, 0);
    g_unlink(path);
    g_rmdir(dir);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(pid_cases); i++)
        g_test_add_data_func(pid_cases[i].path, &pid_cases[i], test_pid);
    g_test_add_func("/qemu-watch/end-is-noticed", test_end_is_noticed);
    return g_test_run();
}
