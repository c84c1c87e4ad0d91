/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-injection-labels: taps with the launcher's label: the process that makes them, and what it
 * executes, which is a copy of the test program. For test programs only.
 */

#pragma once

#include "handler/hands/labeller.h"
#include "handler/hands/tap.h"
#include "handler/hands/test-injection-cases.h"

#define LABELS_LAUNCHERS "system_u:system_r:container_t:s0:c1,c22"
#define LABELS_OWN       "system_u:system_r:spc_t:s0"

static char labels_proc[PATH_MAX], labels_program[PATH_MAX];

/* What stands for /proc/PID/attr/current. */
static inline void
labels_set(const Injector *injector, const char *label)
{
    g_autofree char *below = g_strdup_printf("proc/%d/attr", (int)injector->all.pod.pid);
    g_autofree char *dir = fake_all_path(&injector->all, below);

    test_tree_mkdir(dir, ".");
    test_tree_write(dir, "current", label);
}

static inline void
labels_prepare_other(Injector *injector, ChHandsRequest *request)
{
    labels_set(injector, LABELS_LAUNCHERS);
    case_no_tap(injector, request);
}

static inline void
labels_prepare_own(Injector *injector, ChHandsRequest *request)
{
    labels_set(injector, LABELS_OWN);
    case_no_tap(injector, request);
}

static const InjectorCase labels_cases[] = {
    {"tap-make, labelled",
     {.op = CH_HANDS_OP_TAP_MAKE, .name = "tap0", .flags = CH_HANDS_NON_ROOT},
     .prepare = labels_prepare_other,
     .describe = case_describe_tap,
     .done_errnum = EBUSY,
     .by_another = true},
    {"tap-make, with our label",
     {.op = CH_HANDS_OP_TAP_MAKE, .name = "tap0", .flags = CH_HANDS_NON_ROOT},
     .prepare = labels_prepare_own,
     .describe = case_describe_tap,
     .done_errnum = EBUSY,
     .by_another = true},
};

static inline int
labels_start(void)
{
    static const ChTapLabelPlaces places = {labels_proc, labels_program};

    return ch_labeller_start(&places);
}

/* A copy of this program, as what it shares with the test lies beside it. */
static inline void
labels_make_places(const FakeAll *all)
{
    g_autofree char *proc = fake_all_path(all, "proc");
    g_autofree char *program = fake_all_path(all, "helper");
    g_autofree char *bytes = NULL;
    gsize n_bytes;

    test_tree_mkdir(proc, "thread-self/attr");
    test_tree_write(proc, "thread-self/attr/current", LABELS_OWN);
    test_tree_write(proc, "thread-self/attr/exec", "");
    g_assert_true(g_file_get_contents("/proc/self/exe", &bytes, &n_bytes, NULL));
    g_assert_true(g_file_set_contents(program, bytes, (gssize)n_bytes, NULL));
    g_assert_cmpint(chmod(program, 0755), ==, 0);
    (void)g_strlcpy(labels_proc, proc, sizeof(labels_proc));
    (void)g_strlcpy(labels_program, program, sizeof(labels_program));
}

/* Executed by the labeller. */
static inline int
labels_main(char **argv)
{
    char path[PATH_MAX] = "";
    InjectorShared *shared;
    char *name;

    if (readlink("/proc/self/exe", path, sizeof(path) - sizeof(INJECTOR_FILE)) < 0)
        return 121;
    name = strrchr(path, '/') + 1;
    (void)g_strlcpy(name, INJECTOR_FILE, sizeof(path) - (gsize)(name - path));
    shared = injector_map(path);
    failing_find_real();
    failing_rows = shared->rows;
    return ch_tap_main(argv);
}
