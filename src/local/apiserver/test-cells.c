/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/cells.h"

#include "lib/base/time.h"
#include "local/apiserver/test-support.h"

#define NOW_TEXT "2027-01-15T08:00:00Z"

static const struct {
    int64_t seconds;
    const char *text;
} ages[] = {
    {-5, "<invalid>"}, {-1, "0s"},         {0, "0s"},        {119, "119s"},      {120, "2m"},
    {125, "2m5s"},     {599, "9m59s"},     {600, "10m"},     {10799, "179m"},    {10800, "3h"},
    {10860, "3h1m"},   {28800, "8h"},      {172799, "47h"},  {172800, "2d"},     {176400, "2d1h"},
    {691200, "8d"},    {62985600, "729d"}, {63072000, "2y"}, {63158400, "2y1d"}, {252288000, "8y"},
};

static void
test_ages_are_as_kubectl_shows_them(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(ages); i++) {
        g_autofree char *age = ch_cell_age(NOW_TEXT, TEST_NOW_US + ages[i].seconds * CH_SECOND_US);

        g_assert_cmpstr(age, ==, ages[i].text);
    }
    {
        g_autofree char *none = ch_cell_age(NULL, TEST_NOW_US);
        g_autofree char *bad = ch_cell_age("yesterday", TEST_NOW_US);

        g_assert_cmpstr(none, ==, "<unknown>");
        g_assert_cmpstr(bad, ==, "<unknown>");
    }
}

static const struct Case {
    const char *path;
    char *(*cell)(const ChJson *object, int64_t now_us);
    const char *object;
    const char *text;
} cases[] = {
    {"/cells/node-unknown", ch_cell_node_status, "{}", "Unknown"},
    {"/cells/node-ready",
     ch_cell_node_status,
     "{'status':{'conditions':[{'type':'X','status':'False'},{'type':'Ready','status':'True'}]}}",
     "Ready"},
    {"/cells/node-cordoned",
     ch_cell_node_status,
     "{'spec':{'unschedulable':true},'status':{'conditions':[{'type':'Ready','status':'False'}]}}",
     "NotReady,SchedulingDisabled"},
    {"/cells/node-no-roles", ch_cell_node_roles, "{'metadata':{'labels':{'a':'b'}}}", "<none>"},
    {"/cells/node-roles",
     ch_cell_node_roles,
     "{'metadata':{'labels':{'node-role.kubernetes.io/control-plane':'',"
     "'node-role.kubernetes.io/worker':''}}}",
     "control-plane,worker"},
    {"/cells/pod-ready",
     ch_cell_pod_ready,
     "{'spec':{'containers':[{},{}]},'status':{'containerStatuses':[{'ready':true},{}]}}",
     "1/2"},
    {"/cells/pod-phase", ch_cell_pod_status, "{'status':{'phase':'Running'}}", "Running"},
    {"/cells/pod-waiting",
     ch_cell_pod_status,
     "{'status':{'phase':'Pending','containerStatuses':[{'state':{'waiting':{'reason':"
     "'ImagePullBackOff'}}}]}}",
     "ImagePullBackOff"},
    {"/cells/pod-terminating",
     ch_cell_pod_status,
     "{'metadata':{'deletionTimestamp':'x'},'status':{'phase':'Running'}}",
     "Terminating"},
    {"/cells/pod-restarts",
     ch_cell_pod_restarts,
     "{'status':{'containerStatuses':[{'restartCount':2},{'restartCount':3},{}]}}",
     "5"},
    {"/cells/event-object",
     ch_cell_event_object,
     "{'involvedObject':{'kind':'VirtualMachineInstance','name':'vm'}}",
     "virtualmachineinstance/vm"},
    {"/cells/event-source",
     ch_cell_event_source,
     "{'source':{'component':'virt-handler','host':'n'}}",
     "virt-handler, n"},
    {"/cells/event-last-seen",
     ch_cell_event_last_seen,
     "{'firstTimestamp':'2027-01-15T07:00:00Z','lastTimestamp':'2027-01-15T07:59:50Z'}",
     "10s"},
    {"/cells/event-first-seen",
     ch_cell_event_first_seen,
     "{'firstTimestamp':null,'eventTime':'2027-01-15T07:59:00.000000Z'}",
     "60s"},
    {"/cells/event-count", ch_cell_event_count, "{}", "1"},
    {"/cells/data", ch_cell_data_count, "{'data':{'a':'','b':''},'binaryData':{'c':''}}", "3"},
    {"/cells/access-modes",
     ch_cell_access_modes,
     "{'status':{'accessModes':['ReadWriteOnce','ReadOnlyMany']}}",
     "RWO,ROX"},
};

static void
test_case(gconstpointer data)
{
    const struct Case *c = data;
    g_autofree char *json = g_strdelimit(g_strdup(c->object), "'", '"');
    g_autoptr(ChJson) object = ch_json_parse(json, -1, NULL);
    g_autofree char *text = NULL;

    g_assert_nonnull(object);
    text = c->cell(object, TEST_NOW_US);
    g_assert_cmpstr(text, ==, c->text);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cells/ages", test_ages_are_as_kubectl_shows_them);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_case);
    return g_test_run();
}
