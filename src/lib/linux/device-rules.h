/* SPDX-License-Identifier: Apache-2.0 */

/*
 * device-rules: which devices a cgroup lets its processes use, as lists of rules.
 *
 * Pure; allocates nothing, errors are -errno: also for the hands. A list is an array of fixed size
 * (12 KiB), so it belongs into static storage or the heap, not on a deep stack. Thread: any.
 * Spec: 05 §8.3-8.5.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits of ChDeviceRule.access; the numbers are those of BPF_DEVCG_ACC_*. */
#define CH_DEVICE_MKNOD (1u << 0)
#define CH_DEVICE_READ  (1u << 1)
#define CH_DEVICE_WRITE (1u << 2)
#define CH_DEVICE_ALL   (CH_DEVICE_MKNOD | CH_DEVICE_READ | CH_DEVICE_WRITE)

#define CH_DEVICE_ANY INT64_C(-1) /* as a number: every one */

typedef struct {
    int64_t major_number; /* 0 to UINT32_MAX, or CH_DEVICE_ANY */
    int64_t minor_number; /* the same */
    uint8_t access;       /* CH_DEVICE_... */
    uint8_t type;         /* 'b' or 'c' */
    uint8_t is_allowed;   /* 0 or 1 */
    uint8_t zero[5];
} ChDeviceRule;

#define CH_DEVICE_RULES_MAX 512

typedef struct {
    ChDeviceRule rules[CH_DEVICE_RULES_MAX];
    size_t n_rules;
} ChDeviceRules;

#define CH_DEVICE_RULE(type_, major_, minor_, access_, is_allowed_)                                \
    ((ChDeviceRule){.major_number = (major_),                                                      \
                    .minor_number = (minor_),                                                      \
                    .access = (access_),                                                           \
                    .type = (type_),                                                               \
                    .is_allowed = (is_allowed_)})

/* Whether each field is within its range: for rules from another process. */
bool ch_device_rule_is_valid(const ChDeviceRule *rule);

/* Whether both are about the same type and numbers. */
bool ch_device_rule_has_key_of(const ChDeviceRule *a, const ChDeviceRule *b);

/* Appends. Returns 0, or -ENOSPC (more than CH_DEVICE_RULES_MAX). */
int ch_device_rules_add(ChDeviceRules *list, const ChDeviceRule *rule);

/* Appends those of @current that are about no device that @list has a rule for already, so that
 * what is in @list wins. Returns as ch_device_rules_add(). */
int ch_device_rules_merge(ChDeviceRules *list, const ChDeviceRules *current);

/* Appends what each pod gets: ptmx, null, tun, vhost-net and the ptys, 20 rules. @access: rwm on
 * v2, rw on v1. */
int ch_device_rules_add_defaults(ChDeviceRules *list, uint8_t access);

typedef enum {
    CH_DEVICE_LINE_RULE = 0,
    CH_DEVICE_LINE_ALL, /* `a *:* rwm`: no list holds */
    CH_DEVICE_LINE_MALFORMED,
    CH_DEVICE_LINE_TYPE,  /* neither a, b nor c */
    CH_DEVICE_LINE_MAJOR, /* no number */
    CH_DEVICE_LINE_MINOR,
} ChDeviceLine;

/* A line of `devices.list`, without its newline. @out_rule: with CH_DEVICE_LINE_RULE; an allow
 * rule. */
ChDeviceLine ch_device_line_parse(const char *line, size_t length, ChDeviceRule *out_rule);

#define CH_DEVICE_LINE_SIZE 64

/* "b 8:16 rwm": what `devices.allow` and `devices.deny` take. */
void ch_device_line_print(char line[CH_DEVICE_LINE_SIZE], const ChDeviceRule *rule);

/**
 * ch_device_rules_evaluate: what a list comes to, rule by rule: allowing adds, denying subtracts.
 * @out_allowed: allow rules only, each device once, by major, minor and type; another one than
 *   @list
 * @out_conflict: the rule that a denial would have to punch a hole into
 *
 * Returns: 0, -ENOSPC, or -EINVAL with @out_conflict
 */
int ch_device_rules_evaluate(const ChDeviceRules *list,
                             ChDeviceRules *out_allowed,
                             ChDeviceRule *out_conflict);

/* What @wanted allows and @present does not, rule by rule; both as evaluated. */
void ch_device_rules_subtract(const ChDeviceRules *wanted,
                              const ChDeviceRules *present,
                              ChDeviceRules *out_missing);

/* Whether a list that cannot be put into force asked for nothing that a cgroup without any list
 * would not do: all rules allow, and allow everything. Spec: 05 §8.5 step 4. */
bool ch_device_rules_only_allow_all(const ChDeviceRules *list);
