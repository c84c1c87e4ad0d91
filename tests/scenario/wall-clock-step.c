/* SPDX-License-Identifier: Apache-2.0 */

/*
 * wall-clock-step: preloaded into a program, moves its wall clock by the seconds that the file
 * $CH_WALL_CLOCK_STEP holds. The monotonic clock stays as it is, and so does what the C library
 * does with it inside, which Debian's libfaketime does not get right for condition variables.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/fd.h"

static long
step_seconds(void)
{
    const char *path = getenv("CH_WALL_CLOCK_STEP");
    char text[32] = "";
    ch_autofd int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
        return 0;
    return strtol(text, NULL, 10);
}

int
clock_gettime(clockid_t clock, struct timespec *out_time)
{
    static int (*real)(clockid_t clock, struct timespec * out_time);
    int result;

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    result = real(clock, out_time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out_time->tv_sec += step_seconds();
    return result;
}

int
gettimeofday(struct timeval *restrict out_time, void *restrict zone)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    *out_time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t
time(time_t *out_time)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out_time != NULL)
        *out_time = now.tv_sec;
    return now.tv_sec;
}
