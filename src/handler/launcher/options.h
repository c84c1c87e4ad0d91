/* SPDX-License-Identifier: Apache-2.0 */

/*
 * options: the VirtualMachineOptions that go with SyncVirtualMachine, and those of the end of a
 * migration. Spec 01 §23, 03 §4.7, 04 §17.
 *
 * Pure. Thread: any.
 */

#pragma once

#include "cmd.pb-c.h"
#include "handler/config/capabilities.h"
#include "handler/config/cluster-config.h"

/**
 * ch_launcher_options_new:
 * @capabilities: (nullable): of this node; NULL: an empty topology
 * @plugins: (nullable): the Plugin objects as a JSON array; NULL: the field is left out
 * @vmi: the VMI's document
 *
 * Returns: (transfer full): owns all it points to; free with ch_launcher_options_free()
 */
Kubevirt__Cmd__V1__VirtualMachineOptions *
ch_launcher_options_new(const ChClusterConfig *config,
                        const ChCapabilities *capabilities,
                        GBytes *plugins,
                        const ChJson *vmi);

/* (transfer full): those of FinalizeVirtualMachineMigration: how each interface of a binding plugin
 * comes through a migration, where the plugin says so */
Kubevirt__Cmd__V1__VirtualMachineOptions *
ch_launcher_options_new_finalize(const ChClusterConfig *config, const ChJson *vmi);

void ch_launcher_options_free(Kubevirt__Cmd__V1__VirtualMachineOptions *options);
