/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/stages.h"

typedef struct {
    int64_t seen_us;
    guint told; /* 1 << ChStage */
} Record;

struct ChStages {
    GHashTable *records; /* VMI UID -> Record, owned */
};

static const char *const texts[] = {
    [CH_STAGE_SEEN] = "seen",
    [CH_STAGE_CONNECTED] = "connected",
    [CH_STAGE_NETWORK] = "network",
    [CH_STAGE_SYNCED] = "synced",
    [CH_STAGE_DEFINED] = "defined",
    [CH_STAGE_STARTED] = "started",
    [CH_STAGE_RUNNING] = "running",
    [CH_STAGE_AGENT] = "agent",
};
G_STATIC_ASSERT(G_N_ELEMENTS(texts) == CH_STAGE_N);

const char *
ch_stage_text(ChStage stage)
{
    return texts[stage];
}

ChStages *
ch_stages_new(void)
{
    ChStages *stages = g_new0(ChStages, 1);

    stages->records = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return stages;
}

void
ch_stages_free(ChStages *stages)
{
    if (stages == NULL)
        return;
    g_hash_table_unref(stages->records);
    g_free(stages);
}

bool
ch_stages_finish(
    ChStages *stages, const char *uid, ChStage stage, int64_t now_us, int64_t *out_elapsed_us)
{
    Record *record = g_hash_table_lookup(stages->records, uid);

    if (record == NULL && stage == CH_STAGE_SEEN) {
        record = g_new0(Record, 1);
        record->seen_us = now_us;
        g_hash_table_insert(stages->records, g_strdup(uid), record);
    }
    if (record == NULL || (record->told & 1u << stage) != 0)
        return false;
    record->told |= 1u << stage;
    *out_elapsed_us = now_us - record->seen_us;
    return true;
}

void
ch_stages_forget(ChStages *stages, const char *uid)
{
    g_hash_table_remove(stages->records, uid);
}
