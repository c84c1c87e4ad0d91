/* SPDX-License-Identifier: Apache-2.0 */

/* What a launcher answers: the first byte chooses the command, the rest is the message. */

#include <string.h>

#include "handler/launcher/rpc-answer.h"
#include "lib/grpc/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads all of it: a sanitizer sees what is not there. */
static void
touch(const ChLauncherAnswer *answer)
{
    guint sum = 0;

    if (answer->text != NULL)
        g_assert_true(strlen(answer->text) < G_MAXINT);
    for (gsize i = 0; i < answer->length; i++)
        sum += answer->data[i];
    g_assert_true(answer->length > 0 || sum == 0);
}

static void
check_decoded(const ChLauncherAnswer *answer)
{
    const ChRpcJson shape = ch_rpc_row(answer->rpc)->json;
    g_autoptr(ChJson) json = NULL;
    g_autoptr(GError) error = NULL;

    if (!ch_launcher_answer_decode(answer, &json, &error)) {
        g_assert_error(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_PAYLOAD);
        g_assert_null(json);
    } else if (json != NULL && shape != CH_RPC_JSON_NONE) {
        g_assert_true(shape == CH_RPC_JSON_ARRAY ? ch_json_is_array(json)
                                                 : ch_json_is_object(json));
    }
}

static void
check_stats(const ChLauncherAnswer *answer)
{
    const Kubevirt__Cmd__V1__VMStatsResponse *stats = ch_launcher_answer_stats(answer);

    if (stats->domain_stats != NULL)
        g_assert_nonnull(stats->domain_stats->domain_stats);
    if (stats->guest_get_time != NULL)
        g_assert_nonnull(stats->guest_get_time->message);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_auto(ChLauncherAnswer) answer = {0};
    g_autoptr(GBytes) bytes = NULL;
    g_autoptr(GError) error = NULL;

    if (size == 0)
        return 0;
    answer.rpc = (ChLauncherRpc)(1 + data[0] % (CH_LAUNCHER_RPC_N - 1));
    bytes = g_bytes_new(data + 1, size - 1);
    answer.message = ch_grpc_message_unpack(ch_rpc_row(answer.rpc)->answer, bytes, NULL);
    if (answer.message == NULL)
        return 0;
    if (!ch_rpc_answer_read(&answer, &error)) {
        g_assert_true(error->domain == CH_LAUNCHER_ERROR);
        g_assert_cmpuint(strlen(error->message), <, 1u << 20);
        return 0;
    }
    g_assert_no_error(error);
    touch(&answer);
    check_decoded(&answer);
    if (answer.rpc == CH_LAUNCHER_RPC_GET_VM_STATS)
        check_stats(&answer);
    return 0;
}
