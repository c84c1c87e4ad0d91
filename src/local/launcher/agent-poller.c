/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/agent-poller.h"

#include <libvirt/libvirt-qemu.h>

#include "lib/base/time.h"
#include "local/launcher/guest-info.h"

#define FIRST_PERIOD_US (10 * CH_SECOND_US)

/* A guest that does not answer must not hold the worker for ever. */
#define AGENT_TIMEOUT_S 10

#define MAX_JOBS 16

typedef enum {
    ASK_AGENT = 0,
    ASK_FILESYSTEMS,
    ASK_FREEZE,
    ASK_SYSTEM,
    ASK_USERS,
    ASK_N,
} Question;

typedef struct {
    ChAgentPoller *poller;
    Question question;
    ChTimer *timer;
    int64_t interval_us;
    bool is_asking;
} Poll;

struct ChAgentPoller {
    ChAgentPollerConfig config;
    ChWorker *worker;
    Poll polls[ASK_N];
    bool is_connected; /* the agent */
    bool is_running;
};

/* Asked of the agent itself. */
static const struct {
    const char *request;
    ChGuestPart part;
    ChJson *(*parse)(const char *reply);
} commands[ASK_N] = {
    [ASK_AGENT] = {"{\"execute\":\"guest-info\"}", CH_GUEST_AGENT, ch_guest_info_parse_agent},
    [ASK_FILESYSTEMS] = {"{\"execute\":\"guest-get-fsinfo\"}",
                         CH_GUEST_FILESYSTEMS,
                         ch_guest_info_parse_filesystems},
    [ASK_FREEZE] = {"{\"execute\":\"guest-fsfreeze-status\"}",
                    CH_GUEST_FREEZE,
                    ch_guest_info_parse_freeze},
};

/* Asked through libvirt, one by one: an agent that lacks one of them shall not silence the others.
 * What domain events show comes last: who is told of the OS finds the rest when asking for it.
 */
static const struct {
    Question question;
    unsigned int type;
    ChGuestPart part;
    ChJson *(*read)(const ChParams *params);
} infos[] = {
    {ASK_SYSTEM, VIR_DOMAIN_GUEST_INFO_HOSTNAME, CH_GUEST_HOSTNAME, ch_guest_info_read_hostname},
    {ASK_SYSTEM, VIR_DOMAIN_GUEST_INFO_TIMEZONE, CH_GUEST_TIMEZONE, ch_guest_info_read_timezone},
    {ASK_SYSTEM,
     VIR_DOMAIN_GUEST_INFO_INTERFACES,
     CH_GUEST_INTERFACES,
     ch_guest_info_read_interfaces},
    {ASK_SYSTEM, VIR_DOMAIN_GUEST_INFO_OS, CH_GUEST_OS, ch_guest_info_read_os},
    {ASK_USERS, VIR_DOMAIN_GUEST_INFO_USERS, CH_GUEST_USERS, ch_guest_info_read_users},
};

/* Both return true when what the domain document shows changed. */
static bool
ask_command(virDomainPtr domain, ChGuestStore *store, Question question)
{
    char *reply = virDomainQemuAgentCommand(domain, commands[question].request, AGENT_TIMEOUT_S, 0);
    const bool has_changed =
        reply != NULL &&
        ch_guest_store_put(store, commands[question].part, commands[question].parse(reply));

    free(reply); /* libvirt's, not GLib's */
    return has_changed;
}

static bool
ask_infos(virDomainPtr domain, ChGuestStore *store, Question question)
{
    bool has_changed = false;

    for (gsize i = 0; i < G_N_ELEMENTS(infos); i++) {
        ChParams params = {0};

        if (infos[i].question != question)
            continue;
        if (virDomainGetGuestInfo(domain, infos[i].type, &params.items, &params.n_items, 0) == 0)
            has_changed =
                ch_guest_store_put(store, infos[i].part, infos[i].read(&params)) || has_changed;
        virTypedParamsFree(params.items, params.n_items);
    }
    return has_changed;
}

static int64_t
period_of(const ChAgentPeriods *periods, Question question)
{
    const int64_t all[ASK_N] = {
        [ASK_AGENT] = periods->version_us,
        [ASK_FILESYSTEMS] = periods->filesystems_us,
        [ASK_FREEZE] = periods->freeze_us,
        [ASK_SYSTEM] = periods->system_us,
        [ASK_USERS] = periods->users_us,
    };

    return all[question];
}

/* Loop thread: the answer is in the store (or there was none); ask again later. */
static void
on_asked(gpointer data)
{
    Poll *poll = data;
    const int64_t period_us = period_of(&poll->poller->config.periods, poll->question);

    poll->is_asking = false;
    if (!poll->poller->is_running)
        return;
    poll->interval_us = poll->interval_us == 0 ? MIN(FIRST_PERIOD_US, period_us)
                                               : MIN(2 * poll->interval_us, period_us);
    ch_timer_arm(poll->timer, poll->interval_us);
}

/* Worker: errors are not reported, the agent may be gone by now or not know the question. */
static void
ask(gpointer data)
{
    Poll *poll = data;
    const ChAgentPollerConfig *config = &poll->poller->config;
    g_autoptr(virDomain) domain = NULL;

    if (ch_virt_lookup(config->virt, config->domain_name, &domain, NULL) == CH_VIRT_LOOKUP_FOUND) {
        (void)virDomainAgentSetResponseTimeout(domain, AGENT_TIMEOUT_S, 0); /* best effort */
        const bool has_changed = commands[poll->question].request != NULL
                                     ? ask_command(domain, config->store, poll->question)
                                     : ask_infos(domain, config->store, poll->question);
        if (has_changed)
            config->on_change(config->data);
    }
    ch_loop_post(config->loop, on_asked, poll, NULL);
}

static void
begin(gpointer data)
{
    Poll *poll = data;

    if (poll->is_asking)
        return;
    poll->is_asking = ch_worker_push(poll->poller->worker, ask, poll, NULL);
}

ChAgentPoller *
ch_agent_poller_new(const ChAgentPollerConfig *config)
{
    ChAgentPoller *poller = g_new0(ChAgentPoller, 1);

    poller->config = *config;
    poller->worker = ch_worker_new("guest-agent", MAX_JOBS);
    for (guint i = 0; i < ASK_N; i++) {
        Poll *poll = &poller->polls[i];

        poll->poller = poller;
        poll->question = (Question)i;
        poll->timer = ch_timer_new(config->loop, begin, poll);
    }
    return poller;
}

void
ch_agent_poller_free(ChAgentPoller *poller)
{
    if (poller == NULL)
        return;
    ch_worker_free(poller->worker);
    for (guint i = 0; i < ASK_N; i++)
        ch_timer_free(poller->polls[i].timer);
    g_free(poller);
}

static void
set_running(ChAgentPoller *poller, bool is_running)
{
    if (poller->is_running == is_running)
        return;
    poller->is_running = is_running;
    for (guint i = 0; i < ASK_N; i++) {
        Poll *poll = &poller->polls[i];

        poll->interval_us = 0;
        if (is_running)
            begin(poll);
        else
            ch_timer_disarm(poll->timer);
    }
}

void
ch_agent_poller_note(ChAgentPoller *poller, ChVirtEvent event)
{
    switch (event) {
    case CH_VIRT_AGENT_CONNECTED:
        poller->is_connected = true;
        set_running(poller, true);
        break;
    case CH_VIRT_AGENT_DISCONNECTED:
        poller->is_connected = false;
        set_running(poller, false);
        break;
    case CH_VIRT_SUSPENDED:
        set_running(poller, false);
        break;
    case CH_VIRT_RESUMED:
        set_running(poller, poller->is_connected);
        break;
    case CH_VIRT_DEFINED:
    case CH_VIRT_CHANGED:
    case CH_VIRT_RECONNECTED:
        break;
    }
}
