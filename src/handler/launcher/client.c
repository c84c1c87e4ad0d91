/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/launcher/client.h"

#include <stdatomic.h>

#include "lib/base/time.h"

struct ChLauncherPeer {
    const ChLauncherSeam *seam;
    gpointer seam_data;
    gpointer pod;
    int64_t since_us;
    atomic_int n_refs;
};

typedef struct {
    ChLauncherClient client; /* first: what the others see */
    ChLauncherPeer *peer;
    atomic_int n_refs;
    _Atomic int64_t used_us;
} Counted;

ChLauncherPeer *
ch_launcher_peer_new(const ChLauncherSeam *seam, gpointer seam_data, gpointer pod)
{
    ChLauncherPeer *peer = g_new0(ChLauncherPeer, 1);

    peer->seam = seam;
    peer->seam_data = seam_data;
    peer->pod = pod;
    peer->since_us = ch_time_now_us();
    atomic_init(&peer->n_refs, 1);
    return peer;
}

ChLauncherPeer *
ch_launcher_peer_ref(ChLauncherPeer *peer)
{
    atomic_fetch_add(&peer->n_refs, 1);
    return peer;
}

void
ch_launcher_peer_unref(ChLauncherPeer *peer)
{
    if (peer == NULL || atomic_fetch_sub(&peer->n_refs, 1) > 1)
        return;
    peer->seam->release(peer->seam_data, peer->pod);
    g_free(peer);
}

gpointer
ch_launcher_peer_pod(const ChLauncherPeer *peer)
{
    return peer->pod;
}

int64_t
ch_launcher_peer_since_us(const ChLauncherPeer *peer)
{
    return peer->since_us;
}

ChLauncherClient *
ch_launcher_client_new(ChLauncherPeer *peer, ChGrpcChannel *channel)
{
    Counted *counted = g_new0(Counted, 1);

    counted->client = (ChLauncherClient){channel, peer->pod, peer->since_us};
    counted->peer = ch_launcher_peer_ref(peer);
    atomic_init(&counted->n_refs, 1);
    atomic_init(&counted->used_us, ch_time_now_us());
    return &counted->client;
}

ChLauncherClient *
ch_launcher_client_ref(ChLauncherClient *client)
{
    atomic_fetch_add(&((Counted *)client)->n_refs, 1);
    return client;
}

void
ch_launcher_client_unref(ChLauncherClient *client)
{
    Counted *counted = (Counted *)client;

    if (client == NULL)
        return;
    atomic_store(&counted->used_us, ch_time_now_us());
    if (atomic_fetch_sub(&counted->n_refs, 1) > 1)
        return;
    ch_grpc_channel_unref(client->channel);
    ch_launcher_peer_unref(counted->peer);
    g_free(counted);
}

bool
ch_launcher_client_is_shared(const ChLauncherClient *client)
{
    return atomic_load(&((const Counted *)client)->n_refs) > 1;
}

int64_t
ch_launcher_client_used_us(const ChLauncherClient *client)
{
    return atomic_load(&((const Counted *)client)->used_us);
}
