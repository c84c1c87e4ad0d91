/* SPDX-License-Identifier: Apache-2.0 */

/*
 * failing-call: preloaded into the hands, shares what test-failing-call.h counts with the test by
 * the file $CH_FAILING_CALLS, which is mapped into the hands and, by inheritance, into their
 * children. Other programs are left alone.
 */

#include "handler/hands/test-failing-call.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/base/fd.h"

#define PROGRAM "virt-handler-hands"

__attribute__((constructor)) static void
begin(void)
{
    const char *path = getenv("CH_FAILING_CALLS");
    ch_autofd int fd = -EBADF;
    FailingRow *map;

    failing_find_real();
    if (path == NULL || !g_str_equal(program_invocation_short_name, PROGRAM))
        return;
    fd = open(path, O_RDWR | O_CLOEXEC);
    map = mmap(NULL, FAILING_N * sizeof(*map), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || map == MAP_FAILED)
        abort();
    for (int i = 0; i < FAILING_N; i++)
        (void)g_strlcpy(map[i].name, failing_names[i], sizeof(map[i].name));
    failing_rows = map;
}
