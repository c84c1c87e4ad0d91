/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/cgroup-bpf.h"

#include <errno.h>
#include <glib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/linux/device-bpf.h"

#define MAX_PROGRAMS 64 /* the kernel's own limit on one cgroup */

/* What is attached. */
typedef struct {
    uint32_t ids[MAX_PROGRAMS];
    uint32_t n;
    uint32_t flags; /* that they were attached with */
} Attached;

/* Returns what the call does, or -errno. */
static int
bpf(enum bpf_cmd command, union bpf_attr *attributes)
{
    long result;

    do /* EAGAIN: a signal came while it was verified */
        result = syscall(SYS_bpf, command, attributes, sizeof(*attributes));
    while (result < 0 && (errno == EAGAIN || errno == EINTR));
    return result < 0 ? -errno : (int)result;
}

static uint64_t
address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

/* Returns a descriptor or -errno. */
static int
load(const ChDeviceRules *allowed)
{
    static struct bpf_insn program[CH_DEVICE_BPF_MAX];
    union bpf_attr attributes;

    memset(&attributes, 0, sizeof(attributes));
    attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attributes.insn_cnt = (uint32_t)ch_device_bpf_build(allowed, program);
    attributes.insns = address_of(program);
    attributes.license = address_of("Apache-2.0");
    (void)memcpy(attributes.prog_name, "ch_devices", sizeof("ch_devices"));
    return bpf(BPF_PROG_LOAD, &attributes);
}

static int
query(int dir_fd, Attached *out)
{
    union bpf_attr attributes;
    int result;

    memset(&attributes, 0, sizeof(attributes));
    attributes.query.target_fd = (uint32_t)dir_fd;
    attributes.query.attach_type = BPF_CGROUP_DEVICE;
    attributes.query.prog_ids = address_of(out->ids);
    attributes.query.prog_cnt = MAX_PROGRAMS;
    result = bpf(BPF_PROG_QUERY, &attributes);
    if (result < 0)
        return result;
    out->n = attributes.query.prog_cnt;
    out->flags = attributes.query.attach_flags;
    return 0;
}

static int
open_program(uint32_t id)
{
    union bpf_attr attributes;

    memset(&attributes, 0, sizeof(attributes));
    attributes.prog_id = id;
    return bpf(BPF_PROG_GET_FD_BY_ID, &attributes);
}

/* @old_fd: what it takes the place of, or -1. */
static int
attach(int dir_fd, int program_fd, uint32_t flags, int old_fd)
{
    union bpf_attr attributes;

    memset(&attributes, 0, sizeof(attributes));
    attributes.target_fd = (uint32_t)dir_fd;
    attributes.attach_bpf_fd = (uint32_t)program_fd;
    attributes.attach_type = BPF_CGROUP_DEVICE;
    attributes.attach_flags = flags;
    if (old_fd >= 0) {
        attributes.attach_flags |= BPF_F_REPLACE;
        attributes.replace_bpf_fd = (uint32_t)old_fd;
    }
    return bpf(BPF_PROG_ATTACH, &attributes);
}

static int
detach(int dir_fd, int program_fd)
{
    union bpf_attr attributes;

    memset(&attributes, 0, sizeof(attributes));
    attributes.target_fd = (uint32_t)dir_fd;
    attributes.attach_bpf_fd = (uint32_t)program_fd;
    attributes.attach_type = BPF_CGROUP_DEVICE;
    return bpf(BPF_PROG_DETACH, &attributes);
}

/* The kernel's hash of the instructions. */
static int
read_tag(int program_fd, uint8_t out_tag[BPF_TAG_SIZE])
{
    struct bpf_prog_info info;
    union bpf_attr attributes;
    int result;

    memset(&info, 0, sizeof(info));
    memset(&attributes, 0, sizeof(attributes));
    attributes.info.bpf_fd = (uint32_t)program_fd;
    attributes.info.info_len = sizeof(info);
    attributes.info.info = address_of(&info);
    result = bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes);
    memcpy(out_tag, info.tag, BPF_TAG_SIZE);
    return result;
}

static bool
is_same(int program_fd, const Attached *attached)
{
    uint8_t new_tag[BPF_TAG_SIZE], old_tag[BPF_TAG_SIZE];
    ch_autofd int old_fd = attached->n == 1 ? open_program(attached->ids[0]) : -EBADF;

    return old_fd >= 0 && read_tag(program_fd, new_tag) == 0 && read_tag(old_fd, old_tag) == 0 &&
           memcmp(new_tag, old_tag, BPF_TAG_SIZE) == 0;
}

/* Puts it in the place of the first that can be opened; with none, beside what is there. @out_id:
 * of the one that it replaced, or 0. */
static int
put_in_place(int dir_fd, int program_fd, const Attached *attached, uint32_t *out_id)
{
    *out_id = 0;
    for (uint32_t i = 0; i < attached->n; i++) {
        ch_autofd int old_fd = open_program(attached->ids[i]);

        if (old_fd < 0 || attach(dir_fd, program_fd, BPF_F_ALLOW_MULTI, old_fd) < 0)
            continue; /* hidden, gone, or held by somebody's link */
        *out_id = attached->ids[i];
        return 0;
    }
    return attach(dir_fd, program_fd, BPF_F_ALLOW_MULTI, -1);
}

/* Returns the first failure. */
static int
detach_others(int dir_fd, const Attached *attached, uint32_t replaced_id)
{
    int result = 0;

    for (uint32_t i = 0; i < attached->n; i++) {
        ch_autofd int old_fd = -EBADF;
        int one;

        if (attached->ids[i] == replaced_id)
            continue;
        old_fd = open_program(attached->ids[i]);
        if (old_fd == -EPERM || old_fd == -EACCES || old_fd == -ENOENT) /* hidden, or gone */
            continue;
        one = old_fd < 0 ? old_fd : detach(dir_fd, old_fd);
        if (one < 0 && one != -ENOENT && result == 0)
            result = one;
    }
    return result;
}

int
ch_cgroup_bpf_set_devices(int dir_fd, const ChDeviceRules *allowed, const char **out_step)
{
    ch_autofd int program_fd = load(allowed);
    Attached attached = {.n = 0};
    uint32_t replaced_id = 0;
    int result;

    *out_step = "load the device program";
    if (program_fd < 0)
        return program_fd;
    *out_step = "ask for the cgroup's device programs";
    result = query(dir_fd, &attached);
    if (result < 0 || is_same(program_fd, &attached))
        return result;
    *out_step = "attach the device program";
    /* A single one that was not attached as one of several is replaced by a like one. */
    if (attached.n > 0 && !(attached.flags & BPF_F_ALLOW_MULTI))
        return attach(dir_fd, program_fd, attached.flags, -1);
    result = put_in_place(dir_fd, program_fd, &attached, &replaced_id);
    if (result < 0)
        return result;
    *out_step = "detach the former device programs";
    return detach_others(dir_fd, &attached, replaced_id);
}
