/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node/dir-events.h"

#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define LOST      (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)
#define MAX_READS 1024 /* more than a queue holds: somebody keeps filling it */

static unsigned
judge(const struct inotify_event *event, const char *event_name, const char *name)
{
    unsigned events = 0;

    if (event->mask & LOST)
        events |= CH_DIR_LOST;
    if (event->mask & IN_Q_OVERFLOW || (event->len > 0 && g_str_equal(event_name, name)))
        events |= CH_DIR_CHANGED;
    return events;
}

/* The kernel writes whole events, and ends their names with a NUL. */
static unsigned
judge_all(const char *bytes, gsize n_bytes, const char *name)
{
    unsigned events = 0;
    gsize at = 0;

    while (n_bytes - at >= sizeof(struct inotify_event)) {
        struct inotify_event event;

        memcpy(&event, bytes + at, sizeof(event));
        at += sizeof(event);
        if (event.len > n_bytes - at || (event.len > 0 && bytes[at + event.len - 1] != '\0'))
            return CH_DIR_CHANGED | CH_DIR_LOST;
        events |= judge(&event, bytes + at, name);
        at += event.len;
    }
    return events;
}

unsigned
ch_dir_events_read(int fd, const char *name)
{
    char buffer[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
    unsigned events = 0;

    for (int i = 0; i < MAX_READS; i++) {
        const ssize_t n = read(fd, buffer, sizeof(buffer));

        if (n > 0)
            events |= judge_all(buffer, (gsize)n, name);
        else if (n < 0 && errno == EAGAIN)
            return events;
        else if (n == 0 || errno != EINTR)
            return CH_DIR_CHANGED | CH_DIR_LOST;
    }
    return events | CH_DIR_CHANGED;
}
