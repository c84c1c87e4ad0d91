/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/grpc/status.h"

static void
test_every_status_has_gos_name(void)
{
    for (int status = CH_GRPC_OK; status <= CH_GRPC_UNAUTHENTICATED; status++)
        g_assert_nonnull(ch_grpc_status_name((ChGrpcStatus)status));
    g_assert_cmpstr(ch_grpc_status_name(CH_GRPC_CANCELED), ==, "Canceled");
    g_assert_cmpstr(ch_grpc_status_name(CH_GRPC_DEADLINE_EXCEEDED), ==, "DeadlineExceeded");
    g_assert_cmpstr(ch_grpc_status_name((ChGrpcStatus)-1), ==, "Unknown");
    g_assert_cmpstr(ch_grpc_status_name((ChGrpcStatus)17), ==, "Unknown");
}

static void
test_http_statuses(void)
{
    static const int rows[][2] = {
        {400, CH_GRPC_INTERNAL},
        {401, CH_GRPC_UNAUTHENTICATED},
        {403, CH_GRPC_PERMISSION_DENIED},
        {404, CH_GRPC_UNIMPLEMENTED},
        {429, CH_GRPC_UNAVAILABLE},
        {502, CH_GRPC_UNAVAILABLE},
        {503, CH_GRPC_UNAVAILABLE},
        {504, CH_GRPC_UNAVAILABLE},
        {200, CH_GRPC_UNKNOWN},
        {500, CH_GRPC_UNKNOWN},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        g_assert_cmpint((int)ch_grpc_status_from_http(rows[i][0]), ==, rows[i][1]);
}

static void
test_reset_codes(void)
{
    g_assert_cmpint(ch_grpc_status_from_h2(0), ==, CH_GRPC_INTERNAL);
    g_assert_cmpint(ch_grpc_status_from_h2(3), ==, CH_GRPC_RESOURCE_EXHAUSTED);
    g_assert_cmpint(ch_grpc_status_from_h2(7), ==, CH_GRPC_UNAVAILABLE);
    g_assert_cmpint(ch_grpc_status_from_h2(8), ==, CH_GRPC_CANCELED);
    g_assert_cmpint(ch_grpc_status_from_h2(11), ==, CH_GRPC_RESOURCE_EXHAUSTED);
    g_assert_cmpint(ch_grpc_status_from_h2(12), ==, CH_GRPC_PERMISSION_DENIED);
    g_assert_cmpint(ch_grpc_status_from_h2(99), ==, CH_GRPC_UNKNOWN);
    g_assert_cmpstr(ch_grpc_h2_error_name(7), ==, "REFUSED_STREAM");
    g_assert_null(ch_grpc_h2_error_name(99));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/grpc/status/every-status-has-gos-name", test_every_status_has_gos_name);
    g_test_add_func("/grpc/status/http-statuses", test_http_statuses);
    g_test_add_func("/grpc/status/reset-codes", test_reset_codes);
    return g_test_run();
}
