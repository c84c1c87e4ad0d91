/* SPDX-License-Identifier: Apache-2.0 */

/*
 * fake-selinux: preloaded into the hands, lets them find SELinux on a node that has none.
 *
 * Theory of operation: what they open of selinuxfs and of `attr` in /proc is in $CH_FAKE_SELINUX
 * instead: `enforce`, `own` (the label of this process), `launcher` (of any other), `exec` (what a
 * process wrote before it executed another). What they execute starts without an environment, and
 * so without this.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <glib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char directory[512];

__attribute__((constructor)) static void
set_up(void)
{
    const char *value = getenv("CH_FAKE_SELINUX");

    if (value != NULL)
        (void)g_strlcpy(directory, value, sizeof(directory));
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
