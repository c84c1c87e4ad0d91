/* SPDX-License-Identifier: Apache-2.0 */

/* A kubeconfig that somebody else wrote. */

#include <stdint.h>

#include "lib/kube/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChKubeconfig) kubeconfig = ch_kubeconfig_parse((const char *)data, size, &error);

    g_assert_true((kubeconfig == NULL) == (error != NULL));
    return 0;
}
