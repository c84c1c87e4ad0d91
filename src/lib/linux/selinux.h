/* SPDX-License-Identifier: Apache-2.0 */

/*
 * selinux: whether this host labels its files, and labelling one. No program of the host's is
 * needed. Thread: any. Spec: 02 §6.3, 05 §11.
 */

#pragma once

typedef enum {
    CH_SELINUX_ABSENT = 0, /* no SELinux, or no policy in it */
    CH_SELINUX_PERMISSIVE, /* also when it does not say */
    CH_SELINUX_ENFORCING,
    CH_SELINUX_UNKNOWN, /* memory or descriptors are lacking, or the lookup was interrupted */
} ChSelinuxMode;

#define CH_SELINUX_OWN_LABEL "/proc/self/attr/current"

/**
 * ch_selinux_mode:
 * @root: of the host as this process sees it ("/proc/1/root": a container has no selinuxfs of its
 *   own); where that cannot be entered, the process's own root counts
 * @label_file: CH_SELINUX_OWN_LABEL, but in tests
 *
 * Whether it is there is decided at boot; whether it enforces may change. Needs CAP_SYS_PTRACE for
 * another process's root.
 */
ChSelinuxMode ch_selinux_mode(const char *root, const char *label_file);

/* Gives the file @path (no link) this label. Needs the host's policy to allow it, or CAP_SYS_ADMIN
 * where there is none. Returns 0 or -errno. */
int ch_selinux_label_file(const char *path, const char *label);

/* The same of the file behind @fd (may be O_PATH), unless it has the label. Needs /proc. */
int ch_selinux_label_fd(int fd, const char *label);
