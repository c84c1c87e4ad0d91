/* SPDX-License-Identifier: Apache-2.0 */

/*
 * network: what the pod's network holds for the guest's interfaces, and what the guest is told of
 * it.
 *
 * Links are made from outside before Sync is called. Thread: the domain's worker. Spec 03 §13.5, 04
 * §17.
 */

#pragma once

#include "local/launcher/dhcp-server.h"
#include "local/launcher/domain-xml.h"

/**
 * ch_network_examine:
 *
 * Returns: (transfer full) (element-type ChNicFacts): one for each interface with a tap; NULL with
 * CH_ERROR_NOT_FOUND when a tap that should be there is not
 */
GArray *ch_network_examine(const ChJson *vmi,
                           const Kubevirt__Cmd__V1__VirtualMachineOptions *options,
                           GError **error);

/**
 * ch_network_examine_one: the same of one interface.
 *
 * Returns: (transfer full): with one item; NULL with CH_ERROR_NOT_FOUND as above, and when the link
 * whose MAC address the guest gets is not there
 */
GArray *ch_network_examine_one(const ChJson *vmi, const char *interface, GError **error);

/**
 * ch_network_serve: the guest gets its addresses by DHCP, before it asks.
 * @nics: (element-type ChNicFacts): of ch_network_examine()
 * @private_dir: where the agent leaves what bridges are given
 *
 * Any number of calls end the same. Blocks: reads small files.
 *
 * Returns: false: the guest would wait in vain
 */
bool ch_network_serve(ChDhcpServer *dhcp,
                      const ChJson *vmi,
                      const GArray *nics,
                      const char *private_dir,
                      GError **error);
