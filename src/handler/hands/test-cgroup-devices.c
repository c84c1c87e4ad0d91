/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/cgroup-devices.h"

#include <linux/bpf.h>
#include <sys/syscall.h>

#include "handler/hands/cgroup-bpf.h"
#include "handler/hands/test-fake-cgroup.h"
#include "lib/base/fd.h"

#define V1      "/sys/fs/cgroup/devices"
#define V2      "/sys/fs/cgroup/unified"
#define SKIP_V1 "needs root and the v1 hierarchy of devices"
#define SKIP_V2 "needs root, a v2 hierarchy and device programs"

#define BLOCK(major, minor) CH_DEVICE_RULE('b', major, minor, CH_DEVICE_ALL, 1)
#define DENY(major, minor)  CH_DEVICE_RULE('b', major, minor, CH_DEVICE_ALL, 0)

typedef struct {
    FakeCgroup fake;
    ChCgroup cgroup;
    ChDeviceRules requested, base;
    ChHandsReply reply;
} Fixture;

static void
set_up(Fixture *f, const char *parent, const char *file, bool is_unified)
{
    f->cgroup = CH_CGROUP_INIT;
    f->cgroup.is_unified = is_unified;
    fake_cgroup_init(&f->fake, parent, file);
    if (f->fake.dir != NULL)
        f->cgroup.dir_fd = open(f->fake.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* As a container runtime leaves it. */
static void
set_up_v1(Fixture *f, gconstpointer data)
{
    static const char *const lines[] = {
        "c *:* m", "b *:* m", "c 1:3 rwm", "c 1:5 rwm", "c 5:2 rwm"};

    set_up(f, V1, "devices.list", false);
    if (f->fake.dir == NULL)
        return;
    if (!fake_cgroup_write(&f->fake, "devices.deny", "a")) {
        ch_cgroup_close(&f->cgroup);
        fake_cgroup_clear(&f->fake);
        return;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(lines); i++)
        g_assert_true(fake_cgroup_write(&f->fake, "devices.allow", lines[i]));
}

static void
set_up_v2(Fixture *f, gconstpointer data)
{
    const char *step;

    set_up(f, V2, "cgroup.controllers", true);
    if (f->fake.dir == NULL)
        return;
    /* as a container runtime does it: one program, by BPF_F_ALLOW_MULTI */
    f->base.n_rules = 0;
    (void)ch_device_rules_add(&f->base, &CH_DEVICE_RULE('c', 1, 3, CH_DEVICE_ALL, 1));
    (void)ch_device_rules_add(&f->base, &CH_DEVICE_RULE('c', 1, 5, CH_DEVICE_ALL, 1));
    if (ch_cgroup_bpf_set_devices(f->cgroup.dir_fd, &f->base, &step) == 0)
        return;
    ch_cgroup_close(&f->cgroup);
    fake_cgroup_clear(&f->fake);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_cgroup_close(&f->cgroup);
    fake_cgroup_clear(&f->fake);
}

static bool
set(Fixture *f, const ChDeviceRule *rule)
{
    f->requested.n_rules = 0;
    (void)ch_device_rules_add(&f->requested, rule);
    f->reply = (ChHandsReply){0};
    return ch_cgroup_set_devices(&f->cgroup, &f->requested, &f->base, &f->reply);
}

static bool
lists(const Fixture *f, const char *line)
{
    g_autofree char *text = fake_cgroup_read(&f->fake, "devices.list");
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    return g_strv_contains((const char *const *)lines, line);
}

/* field:FR-G01 */
static void
test_v1_allows_and_denies(Fixture *f, gconstpointer data)
{
    if (fake_cgroup_skip(&f->fake, SKIP_V1))
        return;
    g_assert_true(set(f, &BLOCK(7, 200)));
    g_assert_true(lists(f, "b 7:200 rwm"));
    g_assert_true(lists(f, "c 10:238 rw")); /* a default one */
    g_assert_true(lists(f, "c 1:5 rwm"));   /* what was there, though no default */
    g_assert_true(lists(f, "b *:* m"));
    g_assert_true(fake_cgroup_may_open(&f->fake, S_IFBLK, 7, 200));
    g_assert_false(fake_cgroup_may_open(&f->fake, S_IFBLK, 7, 201));

    g_assert_true(set(f, &BLOCK(7, 201))); /* the former stays */
    g_assert_true(lists(f, "b 7:200 rwm"));
    g_assert_true(set(f, &DENY(7, 200)));
    g_assert_false(lists(f, "b 7:200 rwm"));
    g_assert_true(lists(f, "b 7:201 rwm"));
    g_assert_false(fake_cgroup_may_open(&f->fake, S_IFBLK, 7, 200));
    g_assert_true(set(f, &DENY(7, 200))); /* idempotent */
}

/* A cgroup without a list is not given one. */
static void
test_v1_leaves_all(Fixture *f, gconstpointer data)
{
    if (fake_cgroup_skip(&f->fake, SKIP_V1))
        return;
    g_assert_true(fake_cgroup_write(&f->fake, "devices.allow", "a"));
    g_assert_true(set(f, &BLOCK(7, 200)));
    g_assert_true(set(f, &DENY(7, 200)));
    g_assert_true(lists(f, "a *:* rwm"));
    g_assert_true(fake_cgroup_may_open(&f->fake, S_IFBLK, 7, 200));
}

static void
test_v1_no_file(Fixture *f, gconstpointer data)
{
    if (fake_cgroup_skip(&f->fake, SKIP_V1))
        return;
    ch_close_fd(&f->cgroup.dir_fd);
    f->cgroup.dir_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_assert_false(set(f, &BLOCK(7, 200)));
    g_assert_cmpint(f->reply.errnum, ==, ENOENT);
}

/* The number of programs, and the first one's. */
static unsigned
count_programs(const Fixture *f, uint32_t *out_first)
{
    uint32_t ids[8] = {0};
    union bpf_attr attributes;

    memset(&attributes, 0, sizeof(attributes));
    attributes.query.target_fd = (uint32_t)f->cgroup.dir_fd;
    attributes.query.attach_type = BPF_CGROUP_DEVICE;
    attributes.query.prog_ids = (uint64_t)(uintptr_t)ids;
    attributes.query.prog_cnt = G_N_ELEMENTS(ids);
    g_assert_cmpint(syscall(SYS_bpf, BPF_PROG_QUERY, &attributes, sizeof(attributes)), ==, 0);
    *out_first = ids[0];
    return attributes.query.prog_cnt;
}

/* field:FR-G01: what was there before a volume came is there with it, and after it. */
static void
test_v2_allows_and_denies(Fixture *f, gconstpointer data)
{
    uint32_t id;

    if (fake_cgroup_skip(&f->fake, SKIP_V2))
        return;
    g_assert_false(fake_cgroup_may_open(&f->fake, S_IFBLK, 7, 200));
    g_assert_true(set(f, &BLOCK(7, 200)));
    g_assert_cmpuint(f->reply.size, ==, 0);
    g_assert_cmpuint(count_programs(f, &id), ==, 1);
    g_assert_true(fake_cgroup_may_open(&f->fake, S_IFBLK, 7, 200));
    g_assert_true(fake_cgroup_may_open(&f->fake, S_IFCHR, 1, 5));    /* of the base */
    g_assert_true(fake_cgroup_may_open(&f->fake, S_IFCHR, 10, 200)); /* a default one */
    g_assert_false(fake_cgroup_may_open(&f->fake, S_IFBLK, 7, 201));

    g_assert_true(set(f, &DENY(7, 200)));
    g_assert_cmpuint(count_programs(f, &id), ==, 1);
    g_assert_false(fake_cgroup_may_open(&f->fake, S_IFBLK, 7, 200));
    g_assert_true(fake_cgroup_may_open(&f->fake, S_IFCHR, 1, 5));
}

static void
test_v2_unchanged(Fixture *f, gconstpointer data)
{
    uint32_t first, second;

    if (fake_cgroup_skip(&f->fake, SKIP_V2))
        return;
    g_assert_true(set(f, &BLOCK(7, 200)));
    (void)count_programs(f, &first);
    g_assert_true(set(f, &BLOCK(7, 200)));
    (void)count_programs(f, &second);
    g_assert_cmpuint(first, ==, second);
}

/* Attaches one more program, that lets nothing through. @flags: of BPF_PROG_ATTACH */
static void
attach_another(const Fixture *f, uint32_t flags)
{
    static const struct bpf_insn nothing[] = {
        {.code = BPF_ALU | BPF_K | BPF_MOV, .dst_reg = BPF_REG_0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr attributes;
    int fd;

    memset(&attributes, 0, sizeof(attributes));
    attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attributes.insn_cnt = G_N_ELEMENTS(nothing);
    attributes.insns = (uint64_t)(uintptr_t)nothing;
    attributes.license = (uint64_t)(uintptr_t) "MIT";
    fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof(attributes));
    g_assert_cmpint(fd, >=, 0);
    memset(&attributes, 0, sizeof(attributes));
    attributes.target_fd = (uint32_t)f->cgroup.dir_fd;
    attributes.attach_bpf_fd = (uint32_t)fd;
    attributes.attach_type = BPF_CGROUP_DEVICE;
    attributes.attach_flags = flags;
    g_assert_cmpint(syscall(SYS_bpf, BPF_PROG_ATTACH, &attributes, sizeof(attributes)), ==, 0);
    close(fd);
}

/* The runtime's, and systemd's: ours is in the place of both. */
static void
test_v2_several(Fixture *f, gconstpointer data)
{
    uint32_t id;

    if (fake_cgroup_skip(&f->fake, SKIP_V2))
        return;
    attach_another(f, BPF_F_ALLOW_MULTI);
    g_assert_cmpuint(count_programs(f, &id), ==, 2);
    g_assert_true(set(f, &BLOCK(7, 200)));
    g_assert_cmpuint(count_programs(f, &id), ==, 1);
    g_assert_true(fake_cgroup_may_open(&f->fake, S_IFBLK, 7, 200));
}

/* One that forbids others beside it (05 trap 36), attached to a cgroup of its own. */
static void
test_v2_single(Fixture *f, gconstpointer data)
{
    static const uint32_t flags[] = {0, BPF_F_ALLOW_OVERRIDE};
    FakeCgroup inner;
    uint32_t id;

    if (fake_cgroup_skip(&f->fake, SKIP_V2))
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(flags); i++) {
        Fixture single = {.cgroup = {.scope_fd = -EBADF, .is_unified = true}};

        inner.dir = g_strdup_printf("%s-single", f->fake.dir);
        g_assert_cmpint(mkdir(inner.dir, 0755), ==, 0);
        single.fake = inner;
        single.cgroup.dir_fd = open(inner.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        attach_another(&single, flags[i]);
        g_assert_true(set(&single, &BLOCK(7, 200)));
        g_assert_cmpuint(single.reply.size, ==, 0);
        g_assert_cmpuint(count_programs(&single, &id), ==, 1);
        g_assert_true(fake_cgroup_may_open(&inner, S_IFBLK, 7, 200));
        tear_down(&single, NULL);
    }
}

/* No program yet, as of a privileged container. */
static void
test_v2_none(Fixture *f, gconstpointer data)
{
    FakeCgroup inner;
    Fixture fresh = {.cgroup = {.scope_fd = -EBADF, .is_unified = true}};
    uint32_t id;

    if (fake_cgroup_skip(&f->fake, SKIP_V2))
        return;
    inner.dir = g_strdup_printf("%s-none", f->fake.dir);
    g_assert_cmpint(mkdir(inner.dir, 0755), ==, 0);
    fresh.fake = inner;
    fresh.cgroup.dir_fd = open(inner.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_assert_true(set(&fresh, &BLOCK(7, 200)));
    g_assert_cmpuint(count_programs(&fresh, &id), ==, 1);
    tear_down(&fresh, NULL);
}

/* spec:05-16.5#125: crun's scope around the container is programmed too. */
static void
test_v2_scope(Fixture *f, gconstpointer data)
{
    g_autofree char *container = NULL;
    uint32_t id;

    if (fake_cgroup_skip(&f->fake, SKIP_V2))
        return;
    container = g_build_filename(f->fake.dir, "container", NULL);
    g_assert_cmpint(mkdir(container, 0755), ==, 0);
    f->cgroup.scope_fd = f->cgroup.dir_fd;
    f->cgroup.dir_fd = open(container, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_assert_true(set(f, &BLOCK(7, 200)));
    g_assert_cmpuint(count_programs(f, &id), ==, 1);
    {
        FakeCgroup inner = {container};

        g_assert_true(fake_cgroup_may_open(&inner, S_IFBLK, 7, 200));
        g_assert_false(fake_cgroup_may_open(&inner, S_IFBLK, 7, 201));
    }
    g_assert_true(fake_cgroup_may_open(&f->fake, S_IFBLK, 7, 200));
    g_assert_cmpint(rmdir(container), ==, 0);
}

/* spec:05-16.5#133: what cannot be put into force matters when something is denied, or not all is
 * allowed. */
static void
test_v2_failure(Fixture *f, gconstpointer data)
{
    g_autofree char *file = NULL;

    if (fake_cgroup_skip(&f->fake, SKIP_V2))
        return;
    /* a directory with a cgroup's file, but no cgroup: a program loads, and attaches nowhere */
    file = g_strdup_printf("/tmp/ch-test-%d", (int)getpid());
    g_assert_cmpint(mkdir(file, 0700), ==, 0);
    ch_close_fd(&f->cgroup.dir_fd);
    f->cgroup.dir_fd = open(file, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_assert_false(set(f, &BLOCK(7, 200))); /* no cgroup.controllers */
    g_assert_cmpint(f->reply.errnum, ==, ENOENT);
    close(openat(f->cgroup.dir_fd, "cgroup.controllers", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));

    g_assert_true(set(f, &BLOCK(7, 200)));
    g_assert_cmpuint(f->reply.size, ==, EBADF);
    g_assert_false(set(f, &DENY(7, 200)));
    g_assert_cmpint(f->reply.errnum, ==, EBADF);
    g_assert_false(set(f, &CH_DEVICE_RULE('b', 7, 200, CH_DEVICE_READ, 1)));
    unlinkat(f->cgroup.dir_fd, "cgroup.controllers", 0);
    g_assert_cmpint(rmdir(file), ==, 0);
}

static void
test_v2_ours(Fixture *f, gconstpointer data)
{
    uint32_t id;

    if (fake_cgroup_skip(&f->fake, SKIP_V2))
        return;
    f->cgroup.is_ours = true;
    g_assert_false(set(f, &BLOCK(7, 200)));
    g_assert_cmpint(f->reply.errnum, ==, EPERM);
    g_assert_cmpuint(count_programs(f, &id), ==, 1);
    g_assert_false(fake_cgroup_may_open(&f->fake, S_IFBLK, 7, 200));
}

static void
test_hole(Fixture *f, gconstpointer data)
{
    if (fake_cgroup_skip(&f->fake, SKIP_V2))
        return;
    f->requested.n_rules = 0;
    (void)ch_device_rules_add(&f->requested, &BLOCK(7, CH_DEVICE_ANY));
    (void)ch_device_rules_add(&f->requested, &DENY(7, 200));
    g_assert_false(ch_cgroup_set_devices(&f->cgroup, &f->requested, &f->base, &f->reply));
    g_assert_cmpint(f->reply.errnum, ==, EINVAL);
    g_assert_nonnull(
        strstr(f->reply.text, "cannot punch hole in existing wildcard rule [b 7:* rwm]"));
}

#define ADD(path, set_up, func)                                                                    \
    g_test_add("/cgroup-devices/" path, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("v1-allows-and-denies", set_up_v1, test_v1_allows_and_denies);
    ADD("v1-leaves-all", set_up_v1, test_v1_leaves_all);
    ADD("v1-no-file", set_up_v1, test_v1_no_file);
    ADD("v2-allows-and-denies", set_up_v2, test_v2_allows_and_denies);
    ADD("v2-unchanged", set_up_v2, test_v2_unchanged);
    ADD("v2-several", set_up_v2, test_v2_several);
    ADD("v2-single", set_up_v2, test_v2_single);
    ADD("v2-none", set_up_v2, test_v2_none);
    ADD("v2-scope", set_up_v2, test_v2_scope);
    ADD("v2-failure", set_up_v2, test_v2_failure);
    ADD("v2-ours", set_up_v2, test_v2_ours);
    ADD("hole", set_up_v2, test_hole);
    return g_test_run();
}
