/* SPDX-License-Identifier: Apache-2.0 */

/*
 * fake-selinux: preloaded into the hands, lets them find SELinux on a node that has none.
 *
 * Theory of operation: what they open of selinuxfs and of `attr` in /proc is in $CH_FAKE_SELINUX
 * instead: `enforce`, `own` (the label of this process), `launcher` (of any other), `exec` (what a
 * process wrote before it executed another). What is executed is noted in `executed`; while there
 * is a file `hang` it is never. It starts without an environment, and so without this.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fd.h"

static char directory[512];

__attribute__((constructor)) static void
set_up(void)
{
    const char *value = getenv("CH_FAKE_SELINUX");

    if (value != NULL)
        (void)g_strlcpy(directory, value, sizeof(directory));
}

static int
open_file(const char *name, int flags)
{
    char path[1024];

    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    return open(path, flags | O_CLOEXEC, 0644);
}

/* Returns @path, or what stands for it, in @buffer. */
static const char *
replace(const char *path, char buffer[1024])
{
    const char *name = NULL;

    if (g_str_has_suffix(path, "sys/fs/selinux/enforce"))
        name = "enforce";
    else if (g_str_has_suffix(path, "self/attr/current"))
        name = "own";
    else if (g_str_has_suffix(path, "/attr/current"))
        name = "launcher";
    else if (g_str_has_suffix(path, "self/attr/exec"))
        name = "exec";
    if (name == NULL || directory[0] == '\0')
        return path;
    (void)snprintf(buffer, 1024, "%s/%s", directory, name);
    return buffer;
}

static mode_t
take_mode(int flags, va_list args)
{
    return flags & O_CREAT ? va_arg(args, mode_t) : 0;
}

int fake_open(const char *path, int flags, ...) __asm__("open64");
int fake_openat(int dir_fd, const char *path, int flags, ...) __asm__("openat64");

int
fake_open(const char *path, int flags, ...)
{
    int (*real)(const char *path, int flags, ...) = NULL;
    void *found = dlsym(RTLD_NEXT, "open64");
    char buffer[1024];
    va_list args;
    mode_t mode;

    memcpy(&real, &found, sizeof(real));
    va_start(args, flags);
    mode = take_mode(flags, args);
    va_end(args);
    return real(replace(path, buffer), flags, mode);
}

int
fake_openat(int dir_fd, const char *path, int flags, ...)
{
    int (*real)(int dir_fd, const char *path, int flags, ...) = NULL;
    void *found = dlsym(RTLD_NEXT, "openat64");
    char buffer[1024];
    va_list args;
    mode_t mode;

    memcpy(&real, &found, sizeof(real));
    va_start(args, flags);
    mode = take_mode(flags, args);
    va_end(args);
    return real(dir_fd, replace(path, buffer), flags, mode);
}

int fake_execve(const char *path, char *const argv[], char *const envp[]) __asm__("execve");

int
fake_execve(const char *path, char *const argv[], char *const envp[])
{
    int (*real)(const char *path, char *const argv[], char *const envp[]) = NULL;
    void *found = dlsym(RTLD_NEXT, "execve");
    ch_autofd int hang_fd = open_file("hang", O_RDONLY);
    ch_autofd int fd = open_file("executed", O_WRONLY | O_CREAT | O_APPEND);

    if (hang_fd >= 0)
        for (;;)
            (void)poll(NULL, 0, -1);
    for (int i = 0; argv[i] != NULL; i++)
        (void)dprintf(fd, "%s%s", argv[i], argv[i + 1] != NULL ? " " : "\n");
    memcpy(&real, &found, sizeof(real));
    return real(path, argv, envp);
}
