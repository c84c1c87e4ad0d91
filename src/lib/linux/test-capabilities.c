/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/capabilities.h"

#include <fcntl.h>
#include <glib.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const unsigned some[] = {CAP_CHOWN, CAP_SYS_PTRACE};

static const struct Case {
    const char *path;
    const unsigned *kept;
    size_t n_kept;
    uint32_t mask;
    int (*keep)(const unsigned kept[], size_t n_kept);
} cases[] = {
    {"/capabilities/keeps-none", NULL, 0, 0, ch_capabilities_keep},
    {"/capabilities/keeps-some",
     some,
     G_N_ELEMENTS(some),
     UINT32_C(1) << CAP_CHOWN | UINT32_C(1) << CAP_SYS_PTRACE,
     ch_capabilities_keep},
    {"/capabilities/limits",
     some,
     G_N_ELEMENTS(some),
     UINT32_C(1) << CAP_CHOWN | UINT32_C(1) << CAP_SYS_PTRACE,
     ch_capabilities_limit},
};

/* In a child, as there is no way back. */
static void
check(const struct Case *c)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    const bool is_root = geteuid() == 0;

    if (c->keep(c->kept, c->n_kept) < 0)
        _exit(10);
    if (syscall(SYS_capget, &header, sets) < 0)
        _exit(11);
    if ((sets[0].effective & ~c->mask) != 0 || sets[1].effective != 0)
        _exit(12);
    if ((sets[0].permitted & ~c->mask) != 0 || sets[1].permitted != 0)
        _exit(13);
    if (sets[0].inheritable != 0 || sets[1].inheritable != 0)
        _exit(14);
    if (is_root && sets[0].effective != c->mask)
        _exit(15);
    for (int capability = 0; capability < 64; capability++)
        if (is_root && prctl(PR_CAPBSET_READ, capability) == 1 &&
            (capability > 31 || !(c->mask >> capability & 1)))
            _exit(16);
    _exit(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == (c->keep == ch_capabilities_keep) ? 0 : 17);
}

static void
test_keep(gconstpointer data)
{
    int status = 0;
    const pid_t child = fork();

    if (child == 0)
        check(data);
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_keep);
    return g_test_run();
}
