/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/json-fields.h"

#include "lib/base/errors.h"

typedef struct {
    bool flag, pointer_flag, has_object;
    ChTristate tristate;
    int64_t number, pointer_number;
    uint32_t small;
    uint64_t large;
    char *text, *pointer_text, *unset_text, *object;
    char **list;
    ChQuantity quantity;
} Record;

#define AT(member) offsetof(Record, member)

static const ChField fields[] = {
    {"flag", CH_FIELD_BOOL, AT(flag), .preset = true},
    {"pointerFlag", CH_FIELD_BOOL, AT(pointer_flag), true, true},
    {"a.b.hasObject", CH_FIELD_PRESENCE, AT(has_object)},
    {"tristate", CH_FIELD_TRISTATE, AT(tristate)},
    {"number", CH_FIELD_INT64, AT(number), .preset = 7},
    {"pointerNumber", CH_FIELD_INT64, AT(pointer_number), true, 7},
    {"small", CH_FIELD_UINT32, AT(small), true, 7},
    {"large", CH_FIELD_UINT64, AT(large), true, 7},
    {"text", CH_FIELD_STRING, AT(text), .preset_text = "preset"},
    {"pointerText", CH_FIELD_STRING, AT(pointer_text), true, .preset_text = "preset"},
    {"unsetText", CH_FIELD_STRING, AT(unset_text), true},
    {"object", CH_FIELD_OBJECT, AT(object)},
    {"list", CH_FIELD_STRINGS, AT(list), .preset_text = "a,b"},
    {"a.quantity", CH_FIELD_QUANTITY, AT(quantity), .preset_text = "1Mi"},
};
#define N_FIELDS G_N_ELEMENTS(fields)

static void
record_clear(Record *record)
{
    ch_fields_clear(fields, N_FIELDS, record);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Record, record_clear)

static bool
read_record(Record *record, const char *text, GError **error)
{
    g_autofree char *quoted = g_strdelimit(g_strdup(text), "'", '"');
    g_autoptr(GError) parse_error = NULL;
    g_autoptr(ChJson) json = ch_json_parse(quoted, -1, &parse_error);

    g_assert_no_error(parse_error);
    ch_fields_preset(fields, N_FIELDS, record);
    return ch_fields_read(fields, N_FIELDS, json, record, error);
}

static void
assert_presets(const Record *record)
{
    g_autofree char *quantity = ch_quantity_print(&record->quantity);

    g_assert_true(record->flag);
    g_assert_true(record->pointer_flag);
    g_assert_false(record->has_object);
    g_assert_cmpint(record->tristate, ==, CH_TRISTATE_UNSET);
    g_assert_cmpint(record->number, ==, 7);
    g_assert_cmpint(record->pointer_number, ==, 7);
    g_assert_cmpuint(record->small, ==, 7);
    g_assert_cmpuint(record->large, ==, 7);
    g_assert_cmpstr(record->text, ==, "preset");
    g_assert_cmpstr(record->pointer_text, ==, "preset");
    g_assert_null(record->unset_text);
    g_assert_null(record->object);
    g_assert_cmpuint(g_strv_length(record->list), ==, 2);
    g_assert_cmpstr(quantity, ==, "1Mi");
}

static void
test_presets(void)
{
    static const char *const nothings[] = {
        "{}",
        "{'flag':null,'text':null,'list':null,'a':null,'object':null,'number':null}",
        "{'a':{'b':{'hasObject':null},'quantity':null},'unknown':[1,{'x':2}]}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(nothings); i++) {
        g_auto(Record) record = {0};

        g_assert_true(read_record(&record, nothings[i], NULL));
        assert_presets(&record);
    }
}

/* 08 §6.2 step 3 */
static void
test_zeros(void)
{
    g_auto(Record) record = {0};

    g_assert_true(read_record(&record,
                              "{'flag':false,'pointerFlag':false,'tristate':false,'number':0,"
                              "'pointerNumber':0,'small':0,'large':0,'text':'','pointerText':'',"
                              "'unsetText':'','list':[],'object':{},'a':{'b':{'hasObject':{}}}}",
                              NULL));
    g_assert_true(record.flag);
    g_assert_false(record.pointer_flag);
    g_assert_cmpint(record.tristate, ==, CH_TRISTATE_NO);
    g_assert_cmpint(record.number, ==, 7);
    g_assert_cmpint(record.pointer_number, ==, 0);
    g_assert_cmpuint(record.small, ==, 0);
    g_assert_cmpuint(record.large, ==, 0);
    g_assert_cmpstr(record.text, ==, "preset");
    g_assert_cmpstr(record.pointer_text, ==, "");
    g_assert_cmpstr(record.unset_text, ==, "");
    g_assert_cmpuint(g_strv_length(record.list), ==, 2);
    g_assert_cmpstr(record.object, ==, "{}");
    g_assert_true(record.has_object);
}

static void
test_values(void)
{
    g_auto(Record) record = {0};
    g_autofree char *quantity = NULL;

    g_assert_true(read_record(
        &record,
        "{'tristate':true,'number':-3,'small':4294967295,'large':9223372036854775807,'text':'t',"
        "'object':{'k':['v']},'list':['x','','z'],'a':{'quantity':65536}}",
        NULL));
    quantity = ch_quantity_print(&record.quantity);
    g_assert_cmpint(record.tristate, ==, CH_TRISTATE_YES);
    g_assert_cmpint(record.number, ==, -3);
    g_assert_cmpuint(record.small, ==, G_MAXUINT32);
    g_assert_cmpuint(record.large, ==, G_MAXINT64);
    g_assert_cmpstr(record.text, ==, "t");
    g_assert_cmpstr(record.object, ==, "{\"k\":[\"v\"]}");
    g_assert_cmpuint(g_strv_length(record.list), ==, 3);
    g_assert_cmpstr(record.list[1], ==, "");
    g_assert_cmpstr(quantity, ==, "65536");
}

static void
test_wrong_types(void)
{
    static const char *const bad[] = {
        "{'flag':1}",
        "{'flag':'true'}",
        "{'tristate':'yes'}",
        "{'number':'7'}",
        "{'number':1.5}",
        "{'number':1e3}",
        "{'number':9223372036854775808}",
        "{'small':-1}",
        "{'small':4294967296}",
        "{'large':-1}",
        "{'text':7}",
        "{'text':{}}",
        "{'text':'a\\u0000b'}",
        "{'list':'a'}",
        "{'list':{'a':'b'}}",
        "{'list':[1]}",
        "{'list':[null]}",
        "{'object':[]}",
        "{'object':true}",
        "{'a':7}",
        "{'a':{'b':'c'}}",
        "{'a':{'b':{'hasObject':true}}}",
        "{'a':{'quantity':'1Mx'}}",
        "{'a':{'quantity':[]}}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_auto(Record) record = {0};
        g_autoptr(GError) error = NULL;

        g_assert_false(read_record(&record, bad[i], &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

static void
test_no_object(void)
{
    g_auto(Record) record = {0};

    ch_fields_preset(fields, N_FIELDS, &record);
    g_assert_true(ch_fields_read(fields, N_FIELDS, NULL, &record, NULL));
    assert_presets(&record);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/json-fields/presets", test_presets);
    g_test_add_func("/json-fields/zeros", test_zeros);
    g_test_add_func("/json-fields/values", test_values);
    g_test_add_func("/json-fields/wrong-types", test_wrong_types);
    g_test_add_func("/json-fields/no-object", test_no_object);
    return g_test_run();
}
