/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/launcher/domain.h"

#include "lib/base/errors.h"
#include "lib/base/time.h"

/* Documents are written with single quotes. (transfer full) */
static char *
double_quoted(const char *text)
{
    return g_strdelimit(g_strdup(text), "'", '"');
}

static ChDomain *
parse_domain(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *quoted = double_quoted(text);
    ChDomain *domain = ch_domain_parse(quoted, -1, &error);

    g_assert_no_error(error);
    return domain;
}

static const char full[] =
    "{'kind':'Domain','apiVersion':'1.2.2',"
    "'ObjectMeta':{'name':'vm1','namespace':'ns','uid':'u-1'},"
    "'Spec':{'Type':'kvm','Name':'ns_vm1','CurrentMemory':{'Value':1048576,'Unit':'KiB'},"
    "'OS':{'Type':{'Machine':'pc-q35'}},'Features':{'ACPI':{},'APIC':null},"
    "'Devices':{"
    "'Interfaces':[{'MAC':{'MAC':'02:00:00:00:00:01'},'LinkState':null,"
    "'Alias':{'Name':'default','UserDefined':true},'Driver':{'Queues':2}},"
    "{'MAC':null,'LinkState':{'State':'down'},'Alias':null,'Driver':null}],"
    "'Channels':[{'Target':{'Name':'org.qemu.guest_agent.0','State':'connected'}},{'Target':null}],"
    "'HostDevices':[{'Alias':{'name':'sriov-net1'}},null],"
    "'Disks':[{'Source':{'Dev':'','File':'/x.img','DataStore':{}},'Target':{'Device':'vda'},"
    "'Alias':{'Name':'rootdisk'}}]},"
    "'Metadata':{'KubeVirt':{'UID':'u-1','GracePeriod':{'DeletionGracePeriodSeconds':30,"
    "'DeletionTimestamp':'2026-11-29T00:00:00Z','MarkedForGracefulShutdown':true},"
    "'Migration':null,'Backup':{'Name':'b'},'AccessCredential':{'Succeeded':true,'Message':'m'}}}},"
    "'Status':{'Status':'Running','Reason':'Unknown',"
    "'Interfaces':[{'Mac':'m','Ip':'10.0.2.2','IPs':['10.0.2.2'],'InterfaceName':'eth0'}],"
    "'OSInfo':{'Name':'Fedora','VersionId':'42'},'FSFreezeStatus':{'Status':'frozen'},"
    "'GuestPanicInfo':{'Type':'hyper-v','Arg1':18446744073709551615},'PanicCount':3},"
    "'status':{'Status':5}}";

static void
test_reads_everything(void)
{
    g_autoptr(ChDomain) domain = parse_domain(full);
    const ChDomainNic *nics = &g_array_index(domain->nics, ChDomainNic, 0);
    const ChDomainDisk *disk = &g_array_index(domain->disks, ChDomainDisk, 0);

    g_assert_cmpstr(domain->namespace_, ==, "ns");
    g_assert_cmpstr(domain->name, ==, "vm1");
    g_assert_cmpstr(domain->uid, ==, "u-1");
    g_assert_cmpstr(domain->machine, ==, "pc-q35");
    g_assert_true(domain->has_acpi);
    g_assert_cmpuint(domain->current_memory, ==, 1048576);
    g_assert_true(domain->agent_connected);
    g_assert_cmpint(domain->grace.grace_s, ==, 30);
    g_assert_cmpint(domain->grace.deletion.wall_us, ==, 1795910400 * CH_SECOND_US);
    g_assert_true(domain->grace.is_marked);
    g_assert_false(domain->migration.exists);
    g_assert_true(domain->backup.exists);
    g_assert_cmpstr(domain->access_credential.message, ==, "m");
    g_assert_cmpint(domain->status, ==, CH_DOMAIN_RUNNING);
    g_assert_cmpint(domain->reason, ==, CH_REASON_OTHER);
    g_assert_cmpstr(domain->os.version_id, ==, "42");
    g_assert_cmpstr(domain->freeze_status, ==, "frozen");
    g_assert_cmpuint(domain->panic.arg1, ==, G_MAXUINT64);
    g_assert_cmpint(domain->panic_count, ==, 3);
    g_assert_cmpuint(domain->nics->len, ==, 2);
    g_assert_cmpuint(nics[0].queues, ==, 2);
    g_assert_null(nics[0].link_state);
    g_assert_cmpstr(nics[1].name, ==, "");
    g_assert_cmpstr(nics[1].mac, ==, "");
    g_assert_false(nics[1].has_queues);
    g_assert_cmpstr(nics[1].link_state, ==, "down");
    g_assert_cmpstr(domain->host_devices->pdata[0], ==, "sriov-net1");
    g_assert_cmpstr(disk->target, ==, "vda");
    g_assert_true(disk->has_data_store);
    g_assert_cmpuint(domain->guest_nics->len, ==, 1);
    g_assert_true(ch_domain_is_alive(domain));
}

/* spec:02-14.13#30: a key by another case is another key. */
static void
test_keys_are_case_sensitive(void)
{
    g_autoptr(ChDomain) domain = parse_domain("{'status':{'Status':'Running'},'ObjectMeta':{}}");

    g_assert_cmpstr(domain->status_text, ==, "");
    g_assert_false(ch_domain_is_alive(domain));
    g_assert_nonnull(ch_domain_live(domain));
}

static void
test_deleted_domain_is_gone(void)
{
    g_autoptr(ChDomain) domain =
        parse_domain("{'ObjectMeta':{'deletionTimestamp':'2026-11-29T00:00:00Z'},"
                     "'Spec':{'Metadata':{'KubeVirt':{'UID':'u'}}},"
                     "'Status':{'Status':'Running'}}");

    g_assert_null(ch_domain_live(domain));
    g_assert_false(ch_domain_is_alive(domain));
    g_assert_cmpstr(domain->uid, ==, "u");
}

/* Such a status is neither "" (which would delete the VM) nor any that is known. */
static void
test_texts_with_nul(void)
{
    g_autoptr(ChDomain) domain =
        parse_domain("{'Spec':{'Devices':{'Channels':[{'Target':{'Name':'a\\u0000b'}}],"
                     "'Disks':[{'Alias':{'Name':'\\u0000'}}]}},"
                     "'Status':{'Status':'Shutoff\\u0000','Interfaces':[{'IPs':['\\u0000']}]}}");

    g_assert_cmpint(domain->status, ==, CH_DOMAIN_OTHER);
    g_assert_true(ch_domain_is_alive(domain));
    g_assert_cmpstr(g_array_index(domain->disks, ChDomainDisk, 0).name, !=, "");
}

static const char *const wrong_types[] = {
    "[]",
    "{'ObjectMeta':1}",
    "{'ObjectMeta':{'name':1}}",
    "{'ObjectMeta':{'deletionTimestamp':'yesterday'}}",
    "{'Spec':[]}",
    "{'Spec':{'Type':{}}}",
    "{'Spec':{'CurrentMemory':{'Value':-1}}}",
    "{'Spec':{'CurrentMemory':{'Value':1.5}}}",
    "{'Spec':{'CurrentMemory':{'Value':'1'}}}",
    "{'Spec':{'Features':{'ACPI':true}}}",
    "{'Spec':{'Devices':{'Disks':{}}}}",
    "{'Spec':{'Devices':{'Disks':['x']}}}",
    "{'Spec':{'Devices':{'Disks':[{'Alias':{'NAME':1}}]}}}",
    "{'Spec':{'Metadata':{'KubeVirt':{'GracePeriod':[]}}}}",
    "{'Spec':{'Metadata':{'KubeVirt':{'GracePeriod':{'MarkedForGracefulShutdown':'yes'}}}}}",
    "{'Status':{'Status':1}}",
    "{'Status':{'PanicCount':1e3}}",
    "{'Status':{'Interfaces':[{'IPs':'10.0.0.1'}]}}",
    "{'Status':{'Interfaces':[{'IPs':[1]}]}}",
    "{'Status':{'GuestPanicInfo':{'Arg1':18446744073709551616}}}",
};

static void
test_wrong_types_are_refused(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(wrong_types); i++) {
        g_autofree char *text = double_quoted(wrong_types[i]);
        g_autoptr(GError) error = NULL;
        g_autoptr(ChDomain) domain = ch_domain_parse(text, -1, &error);

        g_test_message("%s", text);
        g_assert_null(domain);
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

/* (transfer full): a document with @n empty objects in a list */
static char *
with_list_of(const char *head, int n, const char *tail)
{
    GString *text = g_string_new(head);

    for (int i = 0; i < n; i++)
        g_string_append(text, i == 0 ? "{}" : ",{}");
    g_string_append(text, tail);
    return g_string_free(text, FALSE);
}

/* A launcher that invents devices is not believed; a guest that has many interfaces loses no VM. */
static void
test_numbers_are_bounded(void)
{
    static const char *const lists[] = {"Disks", "Interfaces", "HostDevices", "Channels"};
    g_autofree char *guest = with_list_of("{\"Status\":{\"Interfaces\":[", 50000, "]}}");
    g_autoptr(ChDomain) domain = ch_domain_parse(guest, -1, NULL);

    g_assert_cmpuint(domain->guest_nics->len, ==, 4096);
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++) {
        g_autofree char *head = g_strdup_printf("{\"Spec\":{\"Devices\":{\"%s\":[", lists[i]);
        g_autofree char *most = with_list_of(head, 1024, "]}}}");
        g_autofree char *too_many = with_list_of(head, 1025, "]}}}");
        g_autoptr(GError) error = NULL;
        g_autoptr(ChDomain) fine = ch_domain_parse(most, -1, NULL);
        g_autoptr(ChDomain) refused = ch_domain_parse(too_many, -1, &error);

        g_assert_nonnull(fine);
        g_assert_null(refused);
        g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
    }
}

/* What is done with a member of a document. */
typedef void (*Spoil)(ChJson *object, const char *key);

static void
spoil_by_null(ChJson *object, const char *key)
{
    ch_json_set(object, key, NULL);
}

static void
spoil_by_removal(ChJson *object, const char *key)
{
    ch_json_remove(object, key);
}

static void
spoil_by_company(ChJson *object, const char *key)
{
    g_autofree char *other = g_strconcat(key, "X", NULL);

    ch_json_set(object, other, ch_json_new_string("of a newer launcher"));
}

/* Spoils the member number *@n below @json, counting down; whether it was reached. */
static bool
spoil_member(ChJson *json, Spoil spoil, int *n)
{
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    for (gsize i = 0; ch_json_is_array(json) && i < ch_json_length(json); i++)
        if (spoil_member(ch_json_item(json, i), spoil, n))
            return true;
    ch_json_iter_init(&iter, json);
    while (ch_json_iter_next(&iter, &key, &value)) {
        if ((*n)-- == 0) {
            g_autofree char *name = g_strdup(key);

            spoil(json, name);
            return true;
        }
        if (spoil_member(value, spoil, n))
            return true;
    }
    return false;
}

/* Older launchers lack members, newer ones have more, and any of them may be null (02 trap 12). */
static void
test_any_member_may_lack(void)
{
    static const Spoil spoils[] = {spoil_by_null, spoil_by_removal, spoil_by_company};
    g_autofree char *quoted = double_quoted(full);

    for (gsize i = 0; i < G_N_ELEMENTS(spoils); i++) {
        for (int n = 0;; n++) {
            g_autoptr(ChJson) json = ch_json_parse(quoted, -1, NULL);
            g_autoptr(GError) error = NULL;
            g_autoptr(ChDomain) domain = NULL;
            g_autofree char *text = NULL;
            int left = n;

            if (!spoil_member(json, spoils[i], &left)) {
                g_assert_cmpint(n, >, 60); /* all members were met */
                break;
            }
            text = ch_json_print(json, NULL);
            domain = ch_domain_parse(text, -1, &error);
            g_test_message("%s", text);
            g_assert_no_error(error);
            g_assert_nonnull(domain->uid);
            g_assert_nonnull(domain->machine);
            g_assert_nonnull(domain->status_text);
        }
    }
}

static const struct MigratingCase {
    const char *domain;
    bool expect;
} migrating_cases[] = {
    {"{'Status':{'Status':'Paused','Reason':'StartingUp'}}", true},
    {"{'Status':{'Status':'Paused','Reason':'Migration'}}", true},
    {"{'Status':{'Status':'Paused','Reason':'Postcopy'}}", true},
    {"{'Status':{'Status':'Paused','Reason':'User'}}", false},
    {"{'Status':{'Status':'Running','Reason':'Migration'}}", false},
    {"{'Spec':{'Metadata':{'KubeVirt':{'Migration':{'StartTimestamp':'2026-11-29T00:00:00Z'}}}}}",
     true},
    {"{'Spec':{'Metadata':{'KubeVirt':{'Migration':{'StartTimestamp':'2026-11-29T00:00:00Z',"
     "'EndTimestamp':'2026-11-29T00:00:01Z'}}}}}",
     false},
    {"{'Spec':{'Metadata':{'KubeVirt':{'Migration':{'UID':'u'}}}}}", false},
};

static void
test_migrating(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(migrating_cases); i++) {
        g_autoptr(ChDomain) domain = parse_domain(migrating_cases[i].domain);

        g_test_message("%s", migrating_cases[i].domain);
        g_assert_true(ch_domain_is_migrating(domain) == migrating_cases[i].expect);
    }
}

static void
test_real_document(void)
{
    const char *shared = g_getenv("CH_SHARED");
    g_autofree char *path = g_build_filename(
        shared != NULL ? shared : "", "golden", "launcher", "GetDomain.json", NULL);
    g_autofree char *text = NULL;
    g_autoptr(ChDomain) domain = NULL;
    g_autoptr(GError) error = NULL;
    gsize length;

    if (!g_file_get_contents(path, &text, &length, NULL)) {
        g_test_skip("no recordings: set CH_SHARED");
        return;
    }
    domain = ch_domain_parse(text, (gssize)length, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(domain->machine, ==, "pc-q35-10.0");
    g_assert_cmpuint(domain->current_memory, ==, 131072);
    g_assert_cmpuint(domain->nics->len, ==, 1);
    g_assert_false(domain->agent_connected);
    g_assert_true(ch_domain_is_alive(domain));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/domain/reads-everything", test_reads_everything);
    g_test_add_func("/domain/keys-are-case-sensitive", test_keys_are_case_sensitive);
    g_test_add_func("/domain/deleted-domain-is-gone", test_deleted_domain_is_gone);
    g_test_add_func("/domain/texts-with-nul", test_texts_with_nul);
    g_test_add_func("/domain/wrong-types-are-refused", test_wrong_types_are_refused);
    g_test_add_func("/domain/any-member-may-lack", test_any_member_may_lack);
    g_test_add_func("/domain/numbers-are-bounded", test_numbers_are_bounded);
    g_test_add_func("/domain/migrating", test_migrating);
    g_test_add_func("/domain/real-document", test_real_document);
    return g_test_run();
}
