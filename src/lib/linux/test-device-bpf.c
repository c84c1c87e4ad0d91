/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/device-bpf.h"

#include <glib.h>
#include <string.h>

/* An interpreter of the few instructions that the generator uses, so that the program is tested
 * where the kernel takes none. */
static guint64
run(const struct bpf_insn *program, gsize n, const struct bpf_cgroup_dev_ctx *context)
{
    guint64 r[11] = {0};

    for (gsize pc = 0; pc < n; pc++) {
        const struct bpf_insn *in = &program[pc];
        const guint32 operand = in->code & BPF_X ? (guint32)r[in->src_reg] : (guint32)in->imm;
        guint32 word;

        switch (in->code) {
        case BPF_LDX | BPF_MEM | BPF_W:
            memcpy(&word, (const char *)context + in->off, sizeof(word));
            r[in->dst_reg] = word;
            break;
        case BPF_ALU | BPF_MOV | BPF_K:
        case BPF_ALU | BPF_MOV | BPF_X:
            r[in->dst_reg] = operand;
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            r[in->dst_reg] = (guint32)r[in->dst_reg] & operand;
            break;
        case BPF_ALU | BPF_RSH | BPF_K:
            r[in->dst_reg] = (guint32)r[in->dst_reg] >> operand;
            break;
        case BPF_JMP32 | BPF_JNE | BPF_K:
        case BPF_JMP32 | BPF_JNE | BPF_X:
            g_assert_cmpint(in->off, >=, 0);
            if ((guint32)r[in->dst_reg] != operand)
                pc += (gsize)in->off;
            break;
        case BPF_JMP | BPF_EXIT:
            return r[0];
        default:
            g_error("instruction %#x", in->code);
        }
    }
    g_error("the program has no end");
}

static const struct QuestionCase {
    const char *path;
    guint32 type, access, major_number, minor_number;
    bool is_allowed;
} questions[] = {
    {"/device-bpf/read-of-all", BPF_DEVCG_DEV_BLOCK, CH_DEVICE_READ, 8, 16, true},
    {"/device-bpf/everything-of-all", BPF_DEVCG_DEV_BLOCK, CH_DEVICE_ALL, 8, 16, true},
    {"/device-bpf/other-minor", BPF_DEVCG_DEV_BLOCK, CH_DEVICE_READ, 8, 17, false},
    {"/device-bpf/other-major", BPF_DEVCG_DEV_BLOCK, CH_DEVICE_READ, 9, 16, false},
    {"/device-bpf/other-type", BPF_DEVCG_DEV_CHAR, CH_DEVICE_READ, 8, 16, false},
    {"/device-bpf/write-of-read", BPF_DEVCG_DEV_CHAR, CH_DEVICE_WRITE, 10, 1, false},
    {"/device-bpf/more-than-read",
     BPF_DEVCG_DEV_CHAR,
     CH_DEVICE_READ | CH_DEVICE_WRITE,
     10,
     1,
     false},
    {"/device-bpf/read-of-read", BPF_DEVCG_DEV_CHAR, CH_DEVICE_READ, 10, 1, true},
    {"/device-bpf/no-access-at-all", BPF_DEVCG_DEV_CHAR, 0, 10, 1, true},
    {"/device-bpf/any-minor", BPF_DEVCG_DEV_CHAR, CH_DEVICE_ALL, 136, 1048575, true},
    {"/device-bpf/number-beyond-31-bits",
     BPF_DEVCG_DEV_BLOCK,
     CH_DEVICE_READ,
     259,
     0xfffffff0u,
     true},
    {"/device-bpf/any-major", BPF_DEVCG_DEV_CHAR, CH_DEVICE_MKNOD, 77, 3, true},
    {"/device-bpf/any-major-other-minor", BPF_DEVCG_DEV_CHAR, CH_DEVICE_MKNOD, 77, 4, false},
};

static void
fill(ChDeviceRules *list)
{
    (void)ch_device_rules_add(list, &CH_DEVICE_RULE('c', CH_DEVICE_ANY, 3, CH_DEVICE_MKNOD, 1));
    (void)ch_device_rules_add(list, &CH_DEVICE_RULE('b', 8, 16, CH_DEVICE_ALL, 1));
    (void)ch_device_rules_add(list, &CH_DEVICE_RULE('c', 10, 1, CH_DEVICE_READ, 1));
    (void)ch_device_rules_add(list, &CH_DEVICE_RULE('c', 136, CH_DEVICE_ANY, CH_DEVICE_ALL, 1));
    (void)ch_device_rules_add(list, &CH_DEVICE_RULE('b', 259, 0xfffffff0u, CH_DEVICE_ALL, 1));
}

static void
test_question(gconstpointer data)
{
    const struct QuestionCase *c = data;
    const struct bpf_cgroup_dev_ctx context = {
        c->access << 16 | c->type, c->major_number, c->minor_number};
    g_autofree struct bpf_insn *program = g_new0(struct bpf_insn, CH_DEVICE_BPF_MAX);
    g_autofree ChDeviceRules *list = g_new0(ChDeviceRules, 1);
    gsize n;

    fill(list);
    n = ch_device_bpf_build(list, program);
    g_assert_cmpuint(run(program, n, &context), ==, c->is_allowed);
}

static void
test_nothing_is_allowed(void)
{
    const struct bpf_cgroup_dev_ctx context = {CH_DEVICE_READ << 16 | BPF_DEVCG_DEV_CHAR, 1, 3};
    g_autofree struct bpf_insn *program = g_new0(struct bpf_insn, CH_DEVICE_BPF_MAX);
    g_autofree ChDeviceRules *none = g_new0(ChDeviceRules, 1);

    g_assert_cmpuint(run(program, ch_device_bpf_build(none, program), &context), ==, 0);
}

static void
test_longest_fits(void)
{
    g_autofree struct bpf_insn *program = g_new0(struct bpf_insn, CH_DEVICE_BPF_MAX);
    g_autofree ChDeviceRules *list = g_new0(ChDeviceRules, 1);

    for (int i = 0; i < CH_DEVICE_RULES_MAX; i++)
        (void)ch_device_rules_add(list, &CH_DEVICE_RULE('b', 8, i, CH_DEVICE_READ, 1));
    g_assert_cmpuint(ch_device_bpf_build(list, program), ==, CH_DEVICE_BPF_MAX);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(questions); i++)
        g_test_add_data_func(questions[i].path, &questions[i], test_question);
    g_test_add_func("/device-bpf/nothing-is-allowed", test_nothing_is_allowed);
    g_test_add_func("/device-bpf/longest-fits", test_longest_fits);
    return g_test_run();
}
