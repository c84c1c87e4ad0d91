/* SPDX-License-Identifier: Apache-2.0 */

/*
 * guest-info: what the guest agent says, in the documents that the agent of the node reads.
 *
 * Everything here comes from inside a guest: counts are capped, texts made valid, and what does not
 * have the right shape is left out. Pure. Thread: any. Spec 03 §5.3, §12.
 */

#pragma once

#include "lib/json/json.h"
#include "local/launcher/typed-params.h"

/* From agent commands' replies, {"return": ...}. (transfer full); NULL: not what was asked for. */
ChJson *ch_guest_info_parse_agent(const char *reply); /* {"version", "commands": [...]} */
ChJson *ch_guest_info_parse_filesystems(const char *reply);
ChJson *ch_guest_info_parse_freeze(const char *reply); /* "thawed" or "frozen" */

/* From libvirt's guest information. (transfer full); NULL: nothing said. */
ChJson *ch_guest_info_read_interfaces(const ChParams *params); /* Status.Interfaces, without lo */
ChJson *ch_guest_info_read_os(const ChParams *params);         /* Status.OSInfo */
ChJson *ch_guest_info_read_hostname(const ChParams *params);
ChJson *ch_guest_info_read_timezone(const ChParams *params); /* "CET, 3600" */
ChJson *ch_guest_info_read_users(const ChParams *params);

/* (transfer full): OSInfo under the names that GetGuestInfo uses, empty members left out */
ChJson *ch_guest_info_rename_os(const ChJson *os_info);
