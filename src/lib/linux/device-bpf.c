/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/device-bpf.h"

#include <stdbool.h>
#include <stddef.h>

#define LOAD(to, field)                                                                            \
    ((struct bpf_insn){.code = BPF_LDX | BPF_MEM | BPF_W,                                          \
                       .dst_reg = (to),                                                            \
                       .src_reg = BPF_REG_1,                                                       \
                       .off = (short)offsetof(struct bpf_cgroup_dev_ctx, field)})
#define ALU(operation, to, value)                                                                  \
    ((struct bpf_insn){.code = BPF_ALU | BPF_K | (operation), .dst_reg = (to), .imm = (int)(value)})
#define MOVE(to, from)                                                                             \
    ((struct bpf_insn){.code = BPF_ALU | BPF_X | BPF_MOV, .dst_reg = (to), .src_reg = (from)})
#define SKIP_UNLESS(reg, value)                                                                    \
    ((struct bpf_insn){.code = BPF_JMP32 | BPF_K | BPF_JNE, .dst_reg = (reg), .imm = (int)(value)})
#define SKIP_UNLESS_SAME(a, b)                                                                     \
    ((struct bpf_insn){.code = BPF_JMP32 | BPF_X | BPF_JNE, .dst_reg = (a), .src_reg = (b)})
#define EXIT ((struct bpf_insn){.code = BPF_JMP | BPF_EXIT})

/* What the program keeps of its question, from its first four instructions on. */
enum {
    TYPE = BPF_REG_2,
    ACCESS = BPF_REG_3,
    MAJOR = BPF_REG_4,
    MINOR = BPF_REG_5,
};

static bool
is_skip(const struct bpf_insn *instruction)
{
    return BPF_CLASS(instruction->code) == BPF_JMP32;
}

/* Asks one rule; the jumps of what does not match lead behind it. Returns the end. */
static struct bpf_insn *
build_rule(struct bpf_insn *start, const ChDeviceRule *rule)
{
    struct bpf_insn *at = start;

    *at++ = SKIP_UNLESS(TYPE, rule->type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR);
    if (rule->access != CH_DEVICE_ALL) { /* nothing is asked beyond what is allowed */
        *at++ = MOVE(BPF_REG_1, ACCESS);
        *at++ = ALU(BPF_AND, BPF_REG_1, rule->access);
        *at++ = SKIP_UNLESS_SAME(BPF_REG_1, ACCESS);
    }
    if (rule->major_number != CH_DEVICE_ANY)
        *at++ = SKIP_UNLESS(MAJOR, (unsigned)rule->major_number);
    if (rule->minor_number != CH_DEVICE_ANY)
        *at++ = SKIP_UNLESS(MINOR, (unsigned)rule->minor_number);
    *at++ = ALU(BPF_MOV, BPF_REG_0, 1);
    *at++ = EXIT;
    for (struct bpf_insn *jump = start; jump < at; jump++)
        if (is_skip(jump))
            jump->off = (short)(at - jump - 1);
    return at;
}

size_t
ch_device_bpf_build(const ChDeviceRules *allowed, struct bpf_insn *out_program)
{
    struct bpf_insn *at = out_program;

    *at++ = LOAD(TYPE, access_type);
    *at++ = LOAD(MAJOR, major);
    *at++ = LOAD(MINOR, minor);
    *at++ = MOVE(ACCESS, TYPE);
    *at++ = ALU(BPF_RSH, ACCESS, 16);
    *at++ = ALU(BPF_AND, TYPE, 0xffff);
    for (size_t i = 0; i < allowed->n_rules; i++)
        at = build_rule(at, &allowed->rules[i]);
    *at++ = ALU(BPF_MOV, BPF_REG_0, 0);
    *at++ = EXIT;
    return (size_t)(at - out_program);
}
