/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/watch/domain-store.h"

#include "handler/launcher/domain.h"
#include "lib/base/errors.h"

#include <string.h>

typedef struct {
    ChDomainStore *store;
    GString *changes; /* " ns/name" each */
} Fixture;

static void
on_change(gpointer data, const char *key)
{
    Fixture *f = data;

    g_string_append_printf(f->changes, " %s", key);
}

static void
set_up(Fixture *f)
{
    f->changes = g_string_new(NULL);
    f->store = ch_domain_store_new(on_change, f);
}

static void
tear_down(Fixture *f)
{
    ch_domain_store_free(f->store);
    g_string_free(f->changes, TRUE);
}

static ChKnownDomain *
text_of(const char *namespace_, const char *name, const char *uid, GError **error)
{
    g_autofree char *json = g_strdup_printf(
        "{\"ObjectMeta\":{\"namespace\":\"%s\",\"name\":\"%s\"},\"Spec\":{\"Metadata\":{"
        "\"KubeVirt\":{\"UID\":\"%s\"}}},\"Status\":{\"Status\":\"Running\"}}",
        namespace_,
        name,
        uid);

    return ch_known_domain_new(json, strlen(json), error);
}

static void
put(Fixture *f, const char *name, const char *uid)
{
    g_autoptr(ChKnownDomain) domain = text_of("ns", name, uid, NULL);

    g_assert_nonnull(domain);
    ch_domain_store_put(f->store, domain);
}

/* spec:01#71 */
static void
test_put_and_remove(void)
{
    Fixture f;

    set_up(&f);
    put(&f, "a", "u1");
    put(&f, "a", "u2");
    g_assert_cmpuint(ch_domain_store_count(f.store), ==, 1);
    g_assert_cmpstr(ch_domain_store_lookup(f.store, "ns/a")->uid, ==, "u2");
    ch_domain_store_remove(f.store, ch_domain_store_lookup(f.store, "ns/a")->key); /* its own key */
    ch_domain_store_remove(f.store, "ns/a");
    g_assert_null(ch_domain_store_lookup(f.store, "ns/a"));
    g_assert_cmpstr(f.changes->str, ==, " ns/a ns/a ns/a");
    tear_down(&f);
}

static void
test_forget_is_by_uid(void)
{
    Fixture f;

    set_up(&f);
    put(&f, "a", "new");
    put(&f, "b", "");
    g_string_truncate(f.changes, 0);
    ch_domain_store_forget(f.store, "ns/a", "old");
    ch_domain_store_forget(f.store, "ns/b", "any");
    ch_domain_store_forget(f.store, "ns/none", "any");
    g_assert_nonnull(ch_domain_store_lookup(f.store, "ns/a"));
    g_assert_null(ch_domain_store_lookup(f.store, "ns/b"));
    ch_domain_store_forget(f.store, "ns/a", "new");
    g_assert_null(ch_domain_store_lookup(f.store, "ns/a"));
    g_assert_cmpstr(f.changes->str, ==, "");
    tear_down(&f);
}

static void
test_names_become_keys_only_when_valid(void)
{
    static const char *const bad[][2] = {{"", ""},
                                         {"", "a"},
                                         {"ns", ""},
                                         {"a/b", "c"},
                                         {"ns", "b/c"},
                                         {"ns", "a?b"},
                                         {"ns", "A"},
                                         {"ns", "a\\nb"}};
    g_autofree char *long_name = g_strnfill(300, 'a');
    g_autoptr(GError) long_error = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(text_of(bad[i][0], bad[i][1], "u", &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
    g_assert_null(text_of("ns", long_name, "u", &long_error));
    g_assert_error(long_error, CH_ERROR, CH_ERROR_INVALID);
}

static void
test_whose_is_it(void)
{
    g_autoptr(ChKnownDomain) known = text_of("ns", "a", "u", NULL);
    g_autoptr(ChKnownDomain) early = text_of("ns", "a", "", NULL);

    g_assert_true(ch_known_domain_is_of(known, "ns/a", "u"));
    g_assert_true(ch_known_domain_is_of(early, "ns/a", "u"));
    g_assert_false(ch_known_domain_is_of(known, "ns/a", "v"));
    g_assert_false(ch_known_domain_is_of(known, "ns/b", "u"));
    g_assert_false(ch_known_domain_is_of(early, "ns/b", "u"));
}

/* spec:01#75: 01 §11.1 rows 2 and 3: what decisions read in the agent's own descriptions. */
static void
test_minimal(void)
{
    g_autoptr(ChKnownDomain) gone =
        ch_known_domain_new_minimal("ns", "a", "u", "", CH_KNOWN_DOMAIN_GONE, 0);
    g_autoptr(ChKnownDomain) unknown =
        ch_known_domain_new_minimal("ns", "a", "u", "u", CH_KNOWN_DOMAIN_UNKNOWN, 0);
    g_autoptr(ChKnownDomain) awaited =
        ch_known_domain_new_minimal("ns", "a", "u", "u", CH_KNOWN_DOMAIN_AWAITED, 0);
    const ChDomain *gone_domain = gone->domain;
    const ChDomain *unknown_domain = unknown->domain;
    const ChDomain *awaited_domain = awaited->domain;

    g_assert_cmpstr(gone->key, ==, "ns/a");
    g_assert_true(gone_domain->is_deleted);
    g_assert_cmpstr(gone_domain->object_uid, ==, "u");
    g_assert_cmpstr(gone_domain->uid, ==, "");
    g_assert_false(unknown_domain->is_deleted);
    g_assert_cmpint(unknown_domain->status, ==, CH_DOMAIN_UNKNOWN);
    g_assert_cmpstr(unknown_domain->uid, ==, "u");
    g_assert_cmpstr(unknown_domain->reason_text, ==, "");
    g_assert_cmpint(awaited_domain->status, ==, CH_DOMAIN_UNKNOWN);
    g_assert_cmpstr(awaited_domain->reason_text, ==, CH_DOMAIN_REASON_AWAITED);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/domain-store/put-and-remove", test_put_and_remove);
    g_test_add_func("/domain-store/forget-is-by-uid", test_forget_is_by_uid);
    g_test_add_func("/domain-store/names-become-keys-only-when-valid",
                    test_names_become_keys_only_when_valid);
    g_test_add_func("/domain-store/whose-is-it", test_whose_is_it);
    g_test_add_func("/domain-store/minimal", test_minimal);
    return g_test_run();
}
