/* SPDX-License-Identifier: Apache-2.0 */

/*
 * secret: `stringData`, the way to write a secret in plain text, becomes `data`. Pure. Thread: any.
 */

#pragma once

#include "local/apiserver/resource.h"

/* A ChResourceNormalize. */
void ch_secret_normalize(ChJson *object);
