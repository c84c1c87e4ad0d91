/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/board.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#include "handler/hands/task.h"

static _Atomic uint32_t *words; /* by slot */

int
ch_board_init(void)
{
    void *memory = mmap(NULL,
                        CH_TASK_MAX * sizeof(*words),
                        PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS,
                        -1,
                        0);

    if (memory == MAP_FAILED)
        return errno;
    words = memory;
    return 0;
}

bool
ch_board_is_there(void)
{
    return words != NULL;
}

void
ch_board_note(unsigned slot, uint32_t turn, bool child_ends)
{
    atomic_store(&words[slot], turn << 1 | child_ends);
}

bool
ch_board_shows(unsigned slot, uint32_t turn, bool *out_child_ends)
{
    const uint32_t word = atomic_load(&words[slot]);

    *out_child_ends = word & 1;
    return word >> 1 == turn;
}
