/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/uses.h"

#include <string.h>

static ChRecord
record_of(const char *uid, const char *name)
{
    return (ChRecord){
        .namespace_ = (char *)"lab", .vmi_name = (char *)name, .vmi_uid = (char *)uid};
}

static const struct Collision {
    const char *name;
    ChUse first, second;
    bool is_allowed;
} collisions[] = {
    {"other", {"block 8:0", NULL, false}, {"block 8:16", NULL, false}, true},
    {"same", {"block 8:0", NULL, false}, {"block 8:0", NULL, false}, false},
    {"both-share", {"block 8:0", NULL, true}, {"block 8:0", NULL, true}, true},
    {"first-shares", {"block 8:0", NULL, true}, {"block 8:0", NULL, false}, false},
    {"second-shares", {"block 8:0", NULL, false}, {"block 8:0", NULL, true}, false},
    {"partition-of-it", {"block 8:0", NULL, false}, {"block 8:1", "block 8:0", false}, false},
    {"whole-of-it", {"block 8:1", "block 8:0", false}, {"block 8:0", NULL, false}, false},
    {"its-neighbour", {"block 8:1", "block 8:0", false}, {"block 8:2", "block 8:0", false}, true},
};

static void
test_collisions(gconstpointer data)
{
    const struct Collision *c = data;
    g_autoptr(ChUses) uses = ch_uses_new();
    ChRecord a = record_of("u-a", "a"), b = record_of("u-b", "b");
    g_autofree char *user = NULL;

    g_assert_true(ch_uses_take(uses, &a, "volume one", &c->first, &user));
    g_assert_true(ch_uses_take(uses, &a, "volume one", &c->first, &user)); /* it has it already */
    g_assert_cmpint(ch_uses_take(uses, &b, "volume two", &c->second, &user), ==, c->is_allowed);
    g_assert_cmpstr(user, ==, c->is_allowed ? NULL : "the VM lab/a (volume one)");
    g_assert_cmpint(b.uses != NULL, ==, c->is_allowed);
    g_free(a.uses);
    g_free(b.uses);
}

/* One VM may not have a disk twice either. */
static void
test_twice_in_one_vm(void)
{
    g_autoptr(ChUses) uses = ch_uses_new();
    ChRecord a = record_of("u-a", "a");
    const ChUse disk = {"file 1:2", NULL, false};
    g_autofree char *user = NULL;

    g_assert_true(ch_uses_take(uses, &a, "volume one", &disk, &user));
    g_assert_false(ch_uses_take(uses, &a, "volume two", &disk, &user));
    g_assert_cmpstr(user, ==, "the VM lab/a (volume one)");
    g_free(a.uses);
}

static void
test_given_back(void)
{
    g_autoptr(ChUses) uses = ch_uses_new();
    ChRecord a = record_of("u-a", "a"), b = record_of("u-b", "b");
    const ChUse disk = {"file 1:2", NULL, false}, port = {"port 80/tcp", NULL, false};
    g_autofree char *user = NULL;

    g_assert_true(ch_uses_take(uses, &a, "volume one", &disk, &user));
    g_assert_true(ch_uses_take(uses, &a, "host ports", &port, &user));
    g_assert_false(ch_uses_release(uses, &b, NULL));
    g_assert_true(ch_uses_release(uses, &a, "volume one"));
    g_assert_false(ch_uses_release(uses, &a, "volume one"));
    g_assert_null(strstr(a.uses, "file 1:2"));
    g_assert_true(ch_uses_take(uses, &b, "volume x", &disk, &user));
    g_assert_false(ch_uses_take(uses, &b, "host ports", &port, &user));
    g_assert_true(ch_uses_release(uses, &a, NULL));
    g_assert_null(a.uses);
    g_assert_true(ch_uses_take(uses, &b, "host ports", &port, &user));
    g_free(b.uses);
}

/* What is on record of one pod runner is known to the next. */
static void
test_survives(void)
{
    g_autoptr(ChUses) before = ch_uses_new();
    g_autoptr(ChUses) after = ch_uses_new();
    ChRecord a = record_of("u-a", "a"), b = record_of("u-b", "b");
    const ChUse partition = {"block 8:1", "block 8:0", true}, whole = {"block 8:0", NULL, false};
    g_autofree char *user = NULL;

    g_assert_true(ch_uses_take(before, &a, "volume one", &partition, &user));
    ch_uses_adopt(after, &a);
    g_assert_false(ch_uses_take(after, &b, "volume x", &whole, &user));
    g_assert_true(
        ch_uses_take(after, &b, "volume x", &(ChUse){"block 8:1", "block 8:0", true}, &user));
    g_auto(GStrv) purposes = ch_uses_purposes(after, &a);
    g_assert_cmpuint(g_strv_length(purposes), ==, 1);
    g_assert_cmpstr(purposes[0], ==, "volume one");
    g_free(a.uses);
    g_free(b.uses);
}

static void
test_foreign_record(void)
{
    g_autoptr(ChUses) uses = ch_uses_new();
    ChRecord a = record_of("u-a", "a");

    a.uses = (char *)"[{\"what\":\"x\"},{\"purpose\":1},7,{\"purpose\":\"p\",\"what\":null}]";
    ch_uses_adopt(uses, &a);
    a.uses = (char *)"nonsense";
    ch_uses_adopt(uses, &a);
    g_auto(GStrv) purposes = ch_uses_purposes(uses, &a);
    g_assert_cmpuint(g_strv_length(purposes), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(collisions); i++) {
        g_autofree char *path = g_strconcat("/uses/collision/", collisions[i].name, NULL);

        g_test_add_data_func(path, &collisions[i], test_collisions);
    }
    g_test_add_func("/uses/twice-in-one-vm", test_twice_in_one_vm);
    g_test_add_func("/uses/given-back", test_given_back);
    g_test_add_func("/uses/survives", test_survives);
    g_test_add_func("/uses/foreign-record", test_foreign_record);
    return g_test_run();
}
