/* SPDX-License-Identifier: Apache-2.0 */

/*
 * manager: what the Cmd service does to the domain.
 *
 * Sync, pause, unpause and shutdown exclude each other: they are called on one worker (spec 03
 * §8.1). Kill and delete are called on another, so that they pass a Sync that hangs. Every function
 * blocks on libvirt; errors are told to the agent as they are. Spec 03 §8.2 to §8.5.
 */

#pragma once

#include "local/launcher/dhcp-server.h"
#include "local/launcher/domain-xml.h"
#include "local/launcher/metadata.h"
#include "local/launcher/virt.h"

typedef struct {
    ChVirt *virt;
    ChMetadata *metadata;
    const char *domain_name; /* the only one that is ever made here */
    ChPaths paths;
    ChDhcpServer *dhcp;
    bool is_emulated;
} ChManagerConfig; /* borrowed */

/* What a call of the agent is about; borrowed. */
typedef struct {
    const char *name;                                        /* the domain's */
    const ChJson *vmi;                                       /* kill, delete, reset need none */
    const Kubevirt__Cmd__V1__VirtualMachineOptions *options; /* (nullable) */
} ChManagerRequest;

typedef struct ChManager ChManager;

ChManager *ch_manager_new(const ChManagerConfig *config);
void ch_manager_free(ChManager *manager);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChManager, ch_manager_free)

/* Makes the domain if there is none, starts it if it shall run, resumes it if nobody paused it.
 * Any number of calls end the same. */
bool ch_manager_sync(ChManager *manager, const ChManagerRequest *request, GError **error);
bool ch_manager_pause(ChManager *manager, const ChManagerRequest *request, GError **error);
bool ch_manager_unpause(ChManager *manager, const ChManagerRequest *request, GError **error);
bool ch_manager_shutdown(ChManager *manager, const ChManagerRequest *request, GError **error);

bool ch_manager_kill(ChManager *manager, const ChManagerRequest *request, GError **error);
bool ch_manager_delete(ChManager *manager, const ChManagerRequest *request, GError **error);
bool ch_manager_reset(ChManager *manager, const ChManagerRequest *request, GError **error);
bool ch_manager_soft_reboot(ChManager *manager, const ChManagerRequest *request, GError **error);

/* (transfer full) (nullable): the name of the VMI's domain; NULL with CH_ERROR_INVALID when its
 * namespace or name are missing or could lead out of a directory */
char *ch_manager_domain_name(const ChJson *vmi, GError **error);
