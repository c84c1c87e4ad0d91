/* SPDX-License-Identifier: Apache-2.0 */

/* What passes leave for those that follow, also those of another agent. */

#include "handler/reconcile/controller.h"

#include "handler/reconcile/test-controller-vmi.h"

/* --- writes and expectations --- */

/* spec:01#104: between a write and its echo a key is left alone, and then looked at again. */
static void
test_expectation(Node *node, gconstpointer data)
{
    node_set_vmi(node, VMI(HERE, "'phase':'Scheduled'"));
    node_set_domain(node, DOMAIN("Running", "Unknown", ""));
    node_pass(node);
    node_assert_trace(node, " PUT:Running hook:PostVMStart");
    node_pass(node); /* the cache still says Scheduled */
    node_assert_trace(node, "");
    node_echo(node);
    node_run(node);
    node_assert_trace(node, " Info Sync");
}

/* 01 §7: a key that was left alone comes back by itself when its echo is lost. */
static void
test_lost_echo(Node *node, gconstpointer data)
{
    node_end_controller(node);
    node->echo_timeout_us = CH_SECOND_US;
    node_begin_controller(node);
    node_set_vmi(node, VMI(HERE, "'phase':'Scheduled'"));
    node_set_domain(node, DOMAIN("Running", "Unknown", ""));
    node_pass(node);
    node_assert_trace(node, " PUT:Running hook:PostVMStart");
    g_clear_pointer(&node->last_put, g_free);
    ch_controller_enqueue(node->controller, NODE_KEY);
    ch_controller_start(node->controller);
    test_wait_until(node->loop, node->last_put != NULL);
    node_finish(node);
}

/* spec:01#91 spec:02-14.13#1: the conflict is no failure of the sync */
static void
test_conflict(Node *node, gconstpointer data)
{
    node->put_status = 409;
    node_set_vmi(node, VMI(HERE, "'phase':'Scheduled'"));
    node_set_domain(node, DOMAIN("Running", "Unknown", ""));
    node_pass(node);
    node_assert_trace(node, " PUT:Running");
    node_assert_events(node, "");
    node->put_status = 0;
    node_wait_for_pass(node);
    node_assert_events(node, "Started: VirtualMachineInstance started.; ");
}

/* 01 §28: the agent ends between clean-up and write; the next one knows how the VM ended. */
static void
test_final_phase_survives(Node *node, gconstpointer data)
{
    g_autofree char *path =
        g_build_filename(node->private_dir, "final-phases", "u1.Succeeded", NULL);

    node->put_status = 500;
    node_set_vmi(node, VMI(HERE, "'phase':'Running'"));
    node_set_domain(node, DOMAIN("Shutoff", "Shutdown", ""));
    node_pass(node);
    node_assert_trace(node, CONNECTED " Ping Delete PUT:Succeeded");
    test_wait_until(node->loop, node->domain == NULL);
    node_end_controller(node);
    g_assert_true(g_file_test(path, G_FILE_TEST_EXISTS));

    node->put_status = 0;
    node_begin_controller(node);
    node_pass(node);
    node_assert_trace(node, " PUT:Succeeded");
    test_wait_until(node->loop, !g_file_test(path, G_FILE_TEST_EXISTS));
}

/* Begins where an agent left @file in `final-phases`, that directory; @put_status is what the
 * writes are answered with. Returns: (transfer full): the directory */
static char *
begin_after_agent_that_left(Node *node, const char *file, int put_status)
{
    char *dir = g_build_filename(node->private_dir, "final-phases", NULL);

    node_end_controller(node);
    test_tree_mkdir(node->private_dir, "final-phases");
    test_tree_write(dir, file, "");
    node->put_status = put_status;
    node_begin_controller(node);
    node_set_vmi(node, VMI(HERE, "'phase':'Running'"));
    return dir;
}

/* Its VM was deleted, or is another's now, while no agent was here. */
static void
test_final_phase_of_nobody(Node *node, gconstpointer data)
{
    g_autofree char *dir = begin_after_agent_that_left(node, "gone.Failed", 0);

    node_set_domain(node, DOMAIN("Running", "Unknown", ""));
    node_pass(node);
    node_assert_trace(node, " Info Sync PUT:Running");
    test_wait_until(node->loop, !g_file_test(dir, G_FILE_TEST_EXISTS));
}

/* What was kept is about a guest that ended: one that runs did not. */
static void
test_final_phase_of_a_living_guest(Node *node, gconstpointer data)
{
    /* A write that is made forgets it as well. */
    g_autofree char *dir = begin_after_agent_that_left(node, "u1.Failed", 500);

    node_set_domain(node, DOMAIN("Running", "Unknown", ""));
    node_pass(node);
    node_assert_trace(node, " Info Sync PUT:Running");
    test_wait_until(node->loop, !g_file_test(dir, G_FILE_TEST_EXISTS));
}

/* A launcher that does not answer says nothing about that. */
static void
test_final_phase_of_an_unknown_guest(Node *node, gconstpointer data)
{
    g_autofree char *dir = begin_after_agent_that_left(node, "u1.Succeeded", 0);

    node_set_domain(node, DOMAIN("Unknown", "", ""));
    node_pass(node);
    node_set_domain(node, NULL);
    node_pass(node);
    node_assert_trace(node, " PUT:Succeeded");
}

/* Only a guest's end is kept: a launcher that was late is asked again. */
static void
test_late_launcher_is_not_failed(Node *node, gconstpointer data)
{
    g_autofree char *trace = NULL;

    if (fake_pod_skip())
        return;
    node->put_status = 409;
    node->has_socket = node->has_socket_dir = false;
    node_set_vmi(node, VMI(HERE, "'phase':'Scheduled'"));
    node_pass(node);
    node_assert_trace(node, " PUT:Failed");
    node->put_status = 0;
    node->has_socket = node->has_socket_dir = true;
    node_wait_for_pass(node);
    trace = node_take_trace(node);
    g_assert_null(strstr(trace, "PUT:Failed"));
    node_assert_events(node, "Created: VirtualMachineInstance defined.; ");
}

/* field:FR-B08: the grace period is the guest's, not that of a launcher which does not answer. */
static void
test_grace_begins_with_the_launcher(Node *node, gconstpointer data)
{
    g_autofree char *trace = NULL;

    fake_launcher_answer(&node->fake, CH_GRPC_UNAVAILABLE, "x");
    node->fake.only = "Ping";
    node_set_vmi(node, VMI(DELETING, "'phase':'Running'"));
    node_set_domain(node, DOMAIN("Running", "Unknown", GRACE("1")));
    node_pass(node);
    g_usleep(CH_SECOND_US + CH_SECOND_US / 10); /* more than the whole of it */
    fake_launcher_answer(&node->fake, CH_GRPC_OK, NULL);
    node_echo(node);
    node_run(node);
    trace = node_take_trace(node);
    g_assert_nonnull(strstr(trace, " Shutdown"));
    g_assert_null(strstr(trace, " Kill"));
}

/* It answers the sync and reports its domain afterwards: one sync, one event. One that never
 * reports is asked again. */
static void
test_launcher_reports_late(Node *node, gconstpointer data)
{
    if (fake_pod_skip())
        return;
    node_set_vmi(node, VMI(HERE, "'phase':'Scheduled'"));
    node_pass(node);
    node_assert_trace(node, " Info hook:PreVMStart Sync PUT:Scheduled");
    node_echo(node);
    node_run(node);
    node_assert_trace(node, "");
    node_wait_for_pass(node); /* nobody says "look" */
    node_assert_trace(node, " hook:PreVMStart Sync");
    node_assert_events(node, "Created: VirtualMachineInstance defined.; ");
}

/* 05 §13: what follows the sync failed: the next pass does not wait for the report. */
static void
test_housekeeping_is_tried_again(Node *node, gconstpointer data)
{
    if (fake_pod_skip())
        return;
    node_set_vmi(node,
                 "{" HERE ",'status':{" PODS ",'phase':'Scheduled'},'spec':{'domain':{'cpu':{"
                 "'realtime':{'mask':'no CPUs'}},'devices':{'autoattachPodInterface':false}}}}");
    node_pass(node);
    node_assert_trace(node, " Info hook:PreVMStart Sync PUT:Scheduled");
    ch_controller_vmi_changed(node->controller, node->vmi);
    node_run(node);
    node_assert_trace(node, " hook:PreVMStart Sync PUT:Scheduled");
}

#define ADD(path, data, func)                                                                      \
    g_test_add("/controller-memory/" path, Node, data, node_set_up, func, node_tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("launcher-reports-late", NULL, test_launcher_reports_late);
    ADD("housekeeping-is-tried-again", NULL, test_housekeeping_is_tried_again);
    ADD("104-expectation", NULL, test_expectation);
    ADD("lost-echo", NULL, test_lost_echo);
    ADD("91-conflict", NULL, test_conflict);
    ADD("final-phase-survives", NULL, test_final_phase_survives);
    ADD("final-phase-of-nobody", NULL, test_final_phase_of_nobody);
    ADD("final-phase-of-a-living-guest", NULL, test_final_phase_of_a_living_guest);
    ADD("final-phase-of-an-unknown-guest", NULL, test_final_phase_of_an_unknown_guest);
    ADD("late-launcher-is-not-failed", NULL, test_late_launcher_is_not_failed);
    ADD("grace-begins-with-the-launcher", NULL, test_grace_begins_with_the_launcher);
    return g_test_run();
}
