/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/meta.h"

#include <string.h>

#include "lib/base/time.h"
#include "lib/kube/names.h"
#include "local/apiserver/schema.h"

#define SUFFIX_LENGTH    5
#define MAX_PREFIX       (63 - SUFFIX_LENGTH) /* as on a cluster: the name may become a label */
#define MAX_NAME_MESSAGE "must be no more than 253 characters"

/* Written by the server alone: an update keeps what the object had. */
static const char *const server_members[] = {
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
};

static const ChFieldRule metadata_rules[] = {
    {"metadata.name", CH_FIELD_STRING},
    {"metadata.generateName", CH_FIELD_STRING},
    {"metadata.uid", CH_FIELD_STRING},
    {"metadata.labels", CH_FIELD_OBJECT, CH_FIELD_QUALIFIED_KEYS},
    {"metadata.labels{}", CH_FIELD_LABEL_VALUE},
    {"metadata.annotations", CH_FIELD_OBJECT, CH_FIELD_QUALIFIED_KEYS},
    {"metadata.annotations{}", CH_FIELD_STRING},
    {"metadata.finalizers", CH_FIELD_ARRAY},
    {"metadata.finalizers[]", CH_FIELD_STRING},
    {"metadata.ownerReferences", CH_FIELD_ARRAY},
    {"metadata.ownerReferences[]", CH_FIELD_OBJECT},
    {"metadata.ownerReferences[].uid", CH_FIELD_STRING, CH_FIELD_REQUIRED},
};

const char *
ch_meta_name(const ChJson *object)
{
    const char *name = ch_json_string_at(object, "metadata", "name");

    return name != NULL ? name : "";
}

const char *
ch_meta_namespace(const ChJson *object)
{
    const char *namespace_ = ch_json_string_at(object, "metadata", "namespace");

    return namespace_ != NULL ? namespace_ : "";
}

void
ch_meta_set_revision(ChJson *object, int64_t revision)
{
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, revision);

    ch_json_set_string(ch_json_ensure_object(object, "metadata"), "resourceVersion", text);
}

static ChRefusal *
refuse_one(const ChResource *resource,
           const char *name,
           const char *reason,
           const char *field,
           const char *message)
{
    g_autoptr(GPtrArray) causes = g_ptr_array_new_with_free_func((GDestroyNotify)ch_cause_free);

    ch_cause_add(causes, reason, field, "%s", message);
    return ch_refuse_invalid(resource, name, causes);
}

/* A member of @object is @expected or is made so. */
static ChRefusal *
settle_type(ChJson *object, const char *member, const char *what, const char *expected)
{
    const char *given = ch_json_string_at(object, member);

    if (given != NULL && !g_str_equal(given, expected))
        return ch_refuse_bad_request("the %s in the data (%s) does not match the expected %s (%s)",
                                     what,
                                     given,
                                     what,
                                     expected);
    ch_json_set_string(object, member, expected);
    return NULL;
}

static ChRefusal *
settle_kind(const ChResource *resource, ChJson *object)
{
    g_autofree char *api_version = ch_resource_api_version(resource);
    ChRefusal *refusal = settle_type(object, "apiVersion", "API version", api_version);

    if (refusal == NULL)
        refusal = settle_type(object, "kind", "kind", resource->kind);
    if (refusal == NULL && ch_json_at(object, "metadata") != NULL &&
        !ch_json_is_object(ch_json_at(object, "metadata")))
        refusal = ch_refuse_bad_request("metadata must be an object");
    return refusal;
}

static ChRefusal *
settle_namespace(const ChResource *resource, ChJson *metadata, const char *namespace_)
{
    const char *given = ch_json_string_at(metadata, "namespace");

    if (!resource->is_namespaced)
        namespace_ = NULL;
    if (namespace_ != NULL && given != NULL && *given != '\0' && !g_str_equal(given, namespace_))
        return ch_refuse_bad_request("the namespace of the provided object does not match the "
                                     "namespace sent on the request");
    ch_json_set_string(metadata, "namespace", namespace_);
    return NULL;
}

/* (transfer full): @prefix and five characters that spell no words. */
static char *
generate_name(const char *prefix)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    char suffix[SUFFIX_LENGTH + 1] = {0};

    for (int i = 0; i < SUFFIX_LENGTH; i++)
        suffix[i] = letters[g_random_int_range(0, (gint32)strlen(letters))];
    return g_strdup_printf("%.*s%s", MAX_PREFIX, prefix, suffix);
}

static ChRefusal *
settle_name(const ChResource *resource, ChJson *metadata)
{
    const bool is_namespace = g_str_equal(resource->plural, "namespaces");
    const char *prefix = ch_json_string_at(metadata, "generateName");
    const char *name = ch_json_string_at(metadata, "name");
    g_autofree char *message = NULL;

    if ((name == NULL || *name == '\0') && prefix != NULL && *prefix != '\0') {
        g_autofree char *generated = generate_name(prefix);

        ch_json_set_string(metadata, "name", generated);
        name = ch_json_string_at(metadata, "name");
    }
    if (name == NULL || *name == '\0')
        return refuse_one(resource,
                          "",
                          "FieldValueRequired",
                          "metadata.name",
                          "Required value: name or generateName is required");
    if (is_namespace ? ch_name_is_label(name) : ch_name_is_dns_subdomain(name))
        return NULL;
    message = g_strdup_printf("Invalid value: \"%s\": %s",
                              name,
                              strlen(name) > 253 ? MAX_NAME_MESSAGE
                              : is_namespace     ? CH_LABEL_HINT
                                                 : CH_SUBDOMAIN_HINT);
    return refuse_one(resource, name, "FieldValueInvalid", "metadata.name", message);
}

static ChRefusal *
validate(const ChResource *resource, ChJson *object)
{
    g_autoptr(GPtrArray) causes = g_ptr_array_new_with_free_func((GDestroyNotify)ch_cause_free);

    if (resource->normalize != NULL)
        resource->normalize(object);
    ch_schema_check(metadata_rules, G_N_ELEMENTS(metadata_rules), object, causes);
    if (resource->validate != NULL)
        resource->validate(object, causes);
    return causes->len > 0 ? ch_refuse_invalid(resource, ch_meta_name(object), causes) : NULL;
}

static void
settle_first_status(const ChResource *resource, ChJson *object, bool keeps_given)
{
    if (resource->has_status && resource->is_custom && !keeps_given)
        ch_json_remove(object, "status");
    if (resource->initial_phase == NULL)
        return;
    if (!keeps_given)
        ch_json_remove(object, "status");
    if (ch_json_at(object, "status", "phase") == NULL)
        ch_json_set_string(
            ch_json_ensure_object(object, "status"), "phase", resource->initial_phase);
}

ChRefusal *
ch_meta_prepare_create(const ChResource *resource,
                       ChJson *object,
                       const char *namespace_,
                       bool keeps_given,
                       int64_t now_us)
{
    g_autofree char *uid = NULL;
    g_autofree char *now = ch_time_format(now_us);
    ChRefusal *refusal = settle_kind(resource, object);
    const char *given;
    ChJson *metadata;

    if (refusal != NULL)
        return refusal;
    metadata = ch_json_ensure_object(object, "metadata");
    given = ch_json_string_at(metadata, "resourceVersion");
    if (given != NULL && *given != '\0')
        return ch_refuse_bad_request("resourceVersion should not be set on objects to be created");
    if ((refusal = settle_namespace(resource, metadata, namespace_)) != NULL ||
        (refusal = settle_name(resource, metadata)) != NULL)
        return refusal;
    given = ch_json_string_at(metadata, "uid");
    uid = keeps_given && given != NULL ? g_strdup(given) : g_uuid_string_random();
    for (gsize i = 0; i < G_N_ELEMENTS(server_members); i++)
        ch_json_remove(metadata, server_members[i]);
    ch_json_set_string(metadata, "uid", uid);
    ch_json_set_string(metadata, "creationTimestamp", now);
    if (resource->is_custom)
        ch_json_set_int(metadata, "generation", 1);
    if (g_str_equal(resource->plural, "namespaces")) /* people select namespaces by it */
        ch_json_set_string(ch_json_ensure_object(metadata, "labels"),
                           "kubernetes.io/metadata.name",
                           ch_meta_name(object));
    settle_first_status(resource, object, keeps_given);
    return validate(resource, object);
}

/* The request's idea of which object it changes, and of its state, must be right. */
static ChRefusal *
check_identity(const ChResource *resource, const ChJson *old, const ChJson *object)
{
    const char *name = ch_meta_name(old);
    const char *version = ch_json_string_at(object, "metadata", "resourceVersion");
    const char *uid = ch_json_string_at(object, "metadata", "uid");
    const char *old_uid = ch_json_string_at(old, "metadata", "uid");

    if (!g_str_equal(ch_meta_name(object), name))
        return ch_refuse_bad_request(
            "the name of the object (%s) does not match the name on the URL (%s)",
            ch_meta_name(object),
            name);
    if (uid != NULL && *uid != '\0' && g_strcmp0(uid, old_uid) != 0) {
        g_autofree char *why = g_strdup_printf(
            "Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, old_uid);

        return ch_refuse_conflict(resource, name, why);
    }
    if (version == NULL || *version == '\0')
        return resource->is_custom ? refuse_one(resource,
                                                name,
                                                "FieldValueInvalid",
                                                "metadata.resourceVersion",
                                                "Invalid value: 0: must be specified for an update")
                                   : NULL;
    if (g_strcmp0(version, ch_json_string_at(old, "metadata", "resourceVersion")) != 0)
        return ch_refuse_conflict(resource,
                                  name,
                                  "the object has been modified; please apply your changes to the "
                                  "latest version and try again");
    return NULL;
}

/* Sets @object's @member to a copy of @old's, or removes it when that has none. */
static void
restore(ChJson *object, const ChJson *old, const char *member)
{
    const ChJson *value = ch_json_at(old, member);

    if (value != NULL)
        ch_json_set(object, member, ch_json_dup(value));
    else
        ch_json_remove(object, member);
}

/* Who dies collects no new reasons to live. */
static ChRefusal *
check_finalizers(const ChResource *resource, const ChJson *old, const ChJson *object)
{
    const ChJson *before = ch_json_at(old, "metadata", "finalizers");
    const ChJson *after = ch_json_at(object, "metadata", "finalizers");

    if (ch_json_at(old, "metadata", "deletionTimestamp") == NULL)
        return NULL;
    for (gsize i = 0; i < ch_json_length(after); i++) {
        const char *finalizer = ch_json_as_string(ch_json_item(after, i));

        if (finalizer != NULL && !ch_json_contains(before, finalizer))
            return refuse_one(resource,
                              ch_meta_name(old),
                              "FieldValueForbidden",
                              "metadata.finalizers",
                              "Forbidden: no new finalizers can be added if the object is being "
                              "deleted");
    }
    return NULL;
}

/* Whether anything but metadata differs. */
static bool
has_new_content(const ChJson *old, const ChJson *object)
{
    g_autoptr(ChJson) before = ch_json_dup(old);
    g_autoptr(ChJson) after = ch_json_dup(object);

    ch_json_remove(before, "metadata");
    ch_json_remove(after, "metadata");
    return !ch_json_equal(before, after);
}

ChJson *
ch_meta_with_status(const ChJson *old, const ChJson *sent)
{
    static const char *const identity[] = {"name", "namespace", "uid", "resourceVersion"};
    ChJson *object = ch_json_dup(old);
    ChJson *metadata = ch_json_ensure_object(object, "metadata");

    for (gsize i = 0; i < G_N_ELEMENTS(identity); i++)
        restore(metadata, ch_json_at(sent, "metadata"), identity[i]);
    restore(object, sent, "status");
    return object;
}

ChRefusal *
ch_meta_prepare_update(const ChResource *resource, const ChJson *old, ChJson *object, ChPart part)
{
    ChRefusal *refusal = settle_kind(resource, object);
    ChJson *metadata;
    int64_t generation;
    bool is_new;

    if (refusal != NULL)
        return refusal;
    metadata = ch_json_ensure_object(object, "metadata");
    if ((refusal = settle_namespace(resource, metadata, ch_meta_namespace(old))) != NULL ||
        (refusal = check_identity(resource, old, object)) != NULL)
        return refusal;
    for (gsize i = 0; i < G_N_ELEMENTS(server_members); i++)
        restore(metadata, ch_json_at(old, "metadata"), server_members[i]);
    restore(metadata, ch_json_at(old, "metadata"), "resourceVersion");
    if (part == CH_PART_MAIN && resource->has_status)
        restore(object, old, "status");
    if ((refusal = validate(resource, object)) != NULL ||
        (refusal = check_finalizers(resource, old, object)) != NULL)
        return refusal;
    is_new = part == CH_PART_MAIN && has_new_content(old, object);
    if (resource->is_custom && is_new && ch_json_int_at(metadata, &generation, "generation"))
        ch_json_set_int(metadata, "generation", generation + 1);
    return NULL;
}

static ChRefusal *
check_preconditions(const ChResource *resource,
                    const ChJson *object,
                    const ChDeleteOptions *options)
{
    const char *uid = ch_json_string_at(object, "metadata", "uid");
    const char *version = ch_json_string_at(object, "metadata", "resourceVersion");
    g_autofree char *why = NULL;

    if (options->uid != NULL && g_strcmp0(options->uid, uid) != 0)
        why =
            g_strdup_printf("Precondition failed: UID in precondition: %s, UID in object meta: %s",
                            options->uid,
                            uid);
    else if (options->resource_version != NULL &&
             g_strcmp0(options->resource_version, version) != 0)
        why = g_strdup_printf("Precondition failed: ResourceVersion in precondition: %s, "
                              "ResourceVersion in object meta: %s",
                              options->resource_version,
                              version);
    return why != NULL ? ch_refuse_conflict(resource, ch_meta_name(object), why) : NULL;
}

/* Seconds that a pod gets to end by itself; everything else goes at once. */
static int64_t
grace_seconds(const ChResource *resource, const ChJson *object, int64_t asked)
{
    const char *phase = ch_json_string_at(object, "status", "phase");
    const char *node = ch_json_string_at(object, "spec", "nodeName");
    int64_t grace = 30;

    if (!resource->is_graceful || node == NULL || *node == '\0' ||
        g_strcmp0(phase, "Succeeded") == 0 || g_strcmp0(phase, "Failed") == 0)
        return 0;
    (void)ch_json_int_at(object, &grace, "spec", "terminationGracePeriodSeconds");
    return CLAMP(asked >= 0 ? asked : grace, 0, G_MAXINT32);
}

ChRefusal *
ch_meta_prepare_delete(const ChResource *resource,
                       ChJson *object,
                       const ChDeleteOptions *options,
                       int64_t now_us)
{
    ChJson *metadata = ch_json_ensure_object(object, "metadata");
    ChRefusal *refusal = check_preconditions(resource, object, options);
    int64_t grace_s, before_s, generation;
    g_autofree char *when = NULL;

    if (refusal != NULL)
        return refusal;
    grace_s = grace_seconds(resource, object, options->grace_s);
    /* a second delete may only shorten the first */
    if (ch_json_int_at(metadata, &before_s, "deletionGracePeriodSeconds") && before_s <= grace_s)
        return NULL;
    when = ch_time_format(now_us + grace_s * CH_SECOND_US);
    ch_json_set_string(metadata, "deletionTimestamp", when);
    if (ch_json_int_at(metadata, &generation, "generation"))
        ch_json_set_int(metadata, "generation", generation + 1);
    ch_json_set_int(metadata, "deletionGracePeriodSeconds", grace_s);
    if (g_str_equal(resource->plural, "namespaces"))
        ch_json_set_string(ch_json_ensure_object(object, "status"), "phase", "Terminating");
    return NULL;
}

bool
ch_meta_is_gone(const ChJson *object)
{
    int64_t grace_s = 0;

    (void)ch_json_int_at(object, &grace_s, "metadata", "deletionGracePeriodSeconds");
    return ch_json_at(object, "metadata", "deletionTimestamp") != NULL && grace_s == 0 &&
           ch_json_length(ch_json_at(object, "metadata", "finalizers")) == 0;
}
