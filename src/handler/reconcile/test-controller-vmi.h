/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-controller-vmi: VMIs and domains for passes, in single quotes. Included by
 * test-controller*.c only.
 */

#pragma once

#include "handler/reconcile/test-controller-node.h"

#define META(more)                                                                                 \
    "'metadata':{'namespace':'ns','name':'vm','uid':'u1','resourceVersion':'5'," more              \
    "'labels':{'kubevirt.io/nodeName':'node01'}}"
#define HERE     META("")
#define DELETING META("'deletionTimestamp':'2026-11-29T00:00:00Z',")
#define ELSEWHERE                                                                                  \
    "'metadata':{'namespace':'ns','name':'vm','uid':'u1','labels':{'kubevirt.io/"                  \
    "nodeName':'node02'}}"
#define PODS "'activePods':{'" NODE_POD "':'node01'}"
/* Without network, so that a start needs nothing of the pod but /dev/kvm. */
#define SPEC              "'spec':{'domain':{'devices':{'autoattachPodInterface':false}}}"
#define VMI(meta, status) "{" meta "," SPEC ",'status':{" PODS "," status "}}"

#define NO_NICS "'Devices':{'Interfaces':null}"
#define DOMAIN(status, reason, kubevirt)                                                           \
    "{'ObjectMeta':{'namespace':'ns','name':'vm'},'Spec':{" NO_NICS                                \
    ",'Metadata':{'KubeVirt':{'UID':'u1'" kubevirt "}}},'Status':{'Status':'" status               \
    "','Reason':'" reason "'}}"
#define GRACE(seconds) ",'GracePeriod':{'DeletionGracePeriodSeconds':" seconds "}"
#define SIGNALLED(seconds, when)                                                                   \
    ",'GracePeriod':{'DeletionGracePeriodSeconds':" seconds ",'DeletionTimestamp':'" when "'}"

#define DELETED         "Deleted: Signaled Deletion; "
#define STOPPING        "Deleted: VirtualMachineInstance stopping; "
#define SIGNALLED_EVENT "ShuttingDown: Signaled Graceful Shutdown; "
#define CRASHED         "Stopped: The VirtualMachineInstance crashed.; "
#define CONNECTED       " Info"
