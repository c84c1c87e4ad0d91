/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/object.h"

#include "lib/base/errors.h"

static ChObject *
make(const char *text, GError **error)
{
    g_autoptr(ChJson) json = ch_json_parse(text, -1, NULL);

    g_assert_nonnull(json);
    return ch_object_new(json, "kubevirt.io/v1", "VirtualMachineInstance", error);
}

static void
test_members(void)
{
    g_autoptr(ChObject) object =
        make("{\"metadata\":{\"name\":\"vm\",\"namespace\":\"default\",\"uid\":\"u1\","
             "\"managedFields\":[{\"manager\":\"x\"}],\"resourceVersion\":\"41\"},\"n\":1.50}",
             NULL);

    g_assert_cmpstr(object->key, ==, "default/vm");
    g_assert_cmpstr(object->uid, ==, "u1");
    g_assert_cmpstr(object->resource_version, ==, "41");
    g_assert_cmpstr(object->text,
                    ==,
                    "{\"metadata\":{\"name\":\"vm\",\"namespace\":\"default\",\"uid\":\"u1\","
                    "\"resourceVersion\":\"41\"},\"n\":1.50,\"apiVersion\":\"kubevirt.io/v1\","
                    "\"kind\":\"VirtualMachineInstance\"}");
    g_assert_cmpuint(object->length, ==, strlen(object->text));
}

static void
test_cluster_scoped_and_typed(void)
{
    g_autoptr(ChObject) object = make("{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{"
                                      "\"name\":\"node01\",\"namespace\":\"\"}}",
                                      NULL);

    g_assert_cmpstr(object->key, ==, "node01");
    g_assert_cmpstr(object->uid, ==, "");
    g_assert_nonnull(strstr(object->text, "\"kind\":\"Node\""));
    g_assert_null(strstr(object->text, "VirtualMachineInstance"));
}

static void
test_unusable_names(void)
{
    static const char *const texts[] = {
        "{}",
        "{\"metadata\":{}}",
        "{\"metadata\":{\"name\":\"\"}}",
        "{\"metadata\":{\"name\":7}}",
        "{\"metadata\":{\"name\":\"a/b\"}}",
        "{\"metadata\":{\"name\":\"b\",\"namespace\":\"a/a\"}}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(make(texts[i], &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

static void
test_same_state(void)
{
    g_autoptr(ChObject) a =
        make("{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}", NULL);
    g_autoptr(ChObject) b =
        make("{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}", NULL);
    g_autoptr(ChObject) newer =
        make("{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"2\"}}", NULL);
    g_autoptr(ChObject) other =
        make("{\"metadata\":{\"name\":\"a\",\"uid\":\"w\",\"resourceVersion\":\"1\"}}", NULL);
    g_autoptr(ChObject) bare = make("{\"metadata\":{\"name\":\"a\"}}", NULL);

    g_assert_true(ch_object_is_same_state(a, b));
    g_assert_false(ch_object_is_same_state(a, newer));
    g_assert_false(ch_object_is_same_state(a, other));
    g_assert_false(ch_object_is_same_state(bare, bare));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/object/members", test_members);
    g_test_add_func("/object/cluster-scoped", test_cluster_scoped_and_typed);
    g_test_add_func("/object/unusable-names", test_unusable_names);
    g_test_add_func("/object/same-state", test_same_state);
    return g_test_run();
}
