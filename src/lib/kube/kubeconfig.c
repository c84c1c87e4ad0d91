/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/kubeconfig.h"

#include <string.h>
#include <yaml.h>

#include "lib/base/errors.h"

/* The document's tree is only ever descended by names, five levels at most, so aliases (libyaml
 * makes them edges to a shared node) cannot make it run long. Its scanner takes time of depth times
 * length, and its composer that of anchors times anchors (a minute for a full file of them). */
#define MAX_DEPTH   32
#define MAX_EVENTS  200000
#define MAX_ANCHORS 100

static gsize
line_of(const yaml_node_t *node)
{
    return node != NULL ? node->start_mark.line + 1 : 0;
}

static const char *
scalar(const yaml_node_t *node)
{
    if (node == NULL || node->type != YAML_SCALAR_NODE)
        return NULL;
    return (const char *)node->data.scalar.value;
}

/* An unquoted `null` or `~`, or nothing at all. */
static bool
is_null(const yaml_node_t *node)
{
    const char *text = scalar(node);

    if (node == NULL)
        return true;
    return text != NULL && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (*text == '\0' || g_str_equal(text, "null") || g_str_equal(text, "~"));
}

/* The member's value, NULL when it is not there or null. */
static yaml_node_t *
member(yaml_document_t *document, const yaml_node_t *mapping, const char *name)
{
    if (mapping == NULL || mapping->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top;
         pair++) {
        const char *key = scalar(yaml_document_get_node(document, pair->key));
        yaml_node_t *value = yaml_document_get_node(document, pair->value);

        if (g_strcmp0(key, name) == 0)
            return is_null(value) ? NULL : value;
    }
    return NULL;
}

static bool
take_text(yaml_document_t *document,
          const yaml_node_t *mapping,
          const char *name,
          ChKubeconfigText *out_text,
          GError **error)
{
    const yaml_node_t *node = member(document, mapping, name);
    const char *text = scalar(node);

    if (node == NULL)
        return true;
    if (text == NULL || strlen(text) != node->data.scalar.length)
        return ch_fail(error, CH_ERROR_INVALID, "line %zu: '%s' is no text", line_of(node), name);
    if (*text == '\0')
        return true;
    *out_text = (ChKubeconfigText){g_strdup(text), line_of(node)};
    return true;
}

static bool
take_bool(yaml_document_t *document,
          const yaml_node_t *mapping,
          const char *name,
          bool *out_value,
          GError **error)
{
    const yaml_node_t *node = member(document, mapping, name);
    const char *text = scalar(node);

    if (node == NULL)
        return true;
    if (g_strcmp0(text, "true") != 0 && g_strcmp0(text, "false") != 0)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "line %zu: '%s' is neither true nor false",
                       line_of(node),
                       name);
    *out_value = g_str_equal(text, "true");
    return true;
}

/* What would change how to reach the server or to log in must not be passed over in silence. */
static bool
refuse(yaml_document_t *document,
       const yaml_node_t *mapping,
       const char *const *names,
       GError **error)
{
    for (; *names != NULL; names++) {
        const yaml_node_t *node = member(document, mapping, *names);

        if (node != NULL)
            return ch_fail(
                error, CH_ERROR_INVALID, "line %zu: '%s' is not supported", line_of(node), *names);
    }
    return true;
}

/* The @body ("cluster", "user", "context") of the entry called @name in the list @list. */
static bool
find_entry(yaml_document_t *document,
           const char *list,
           const char *body,
           const ChKubeconfigText *name,
           yaml_node_t **out_body,
           GError **error)
{
    yaml_node_t *sequence = member(document, yaml_document_get_root_node(document), list);

    if (sequence != NULL && sequence->type != YAML_SEQUENCE_NODE)
        return ch_fail(
            error, CH_ERROR_INVALID, "line %zu: '%s' is no list", line_of(sequence), list);
    for (yaml_node_item_t *item = sequence != NULL ? sequence->data.sequence.items.start : NULL;
         sequence != NULL && item < sequence->data.sequence.items.top;
         item++) {
        const yaml_node_t *entry = yaml_document_get_node(document, *item);

        if (g_strcmp0(scalar(member(document, entry, "name")), name->text) == 0) {
            *out_body = member(document, entry, body);
            return true;
        }
    }
    return ch_fail(
        error, CH_ERROR_INVALID, "line %zu: no '%s' in '%s'", name->line, name->text, list);
}

static bool
take_cluster(yaml_document_t *document,
             const ChKubeconfigText *name,
             ChKubeconfig *out,
             GError **error)
{
    static const char *const refused[] = {"proxy-url", NULL};
    yaml_node_t *cluster = NULL;

    return find_entry(document, "clusters", "cluster", name, &cluster, error) &&
           refuse(document, cluster, refused, error) &&
           take_text(document, cluster, "server", &out->server, error) &&
           take_text(document, cluster, "tls-server-name", &out->server_name, error) &&
           take_text(document, cluster, "certificate-authority", &out->ca_file, error) &&
           take_text(document, cluster, "certificate-authority-data", &out->ca_data, error) &&
           take_bool(
               document, cluster, "insecure-skip-tls-verify", &out->insecure_skip_verify, error);
}

static bool
take_user(yaml_document_t *document,
          const ChKubeconfigText *name,
          ChKubeconfig *out,
          GError **error)
{
    static const char *const refused[] = {
        "exec",
        "auth-provider",
        "username",
        "password",
        "as",
        "as-uid",
        "as-groups",
        NULL,
    };
    yaml_node_t *user = NULL;

    return find_entry(document, "users", "user", name, &user, error) &&
           refuse(document, user, refused, error) &&
           take_text(document, user, "token", &out->token, error) &&
           take_text(document, user, "tokenFile", &out->token_file, error) &&
           take_text(document, user, "client-certificate", &out->cert_file, error) &&
           take_text(document, user, "client-certificate-data", &out->cert_data, error) &&
           take_text(document, user, "client-key", &out->key_file, error) &&
           take_text(document, user, "client-key-data", &out->key_data, error);
}

typedef struct {
    ChKubeconfigText current, cluster, user;
} Names;

static void
names_clear(Names *names)
{
    g_free(names->current.text);
    g_free(names->cluster.text);
    g_free(names->user.text);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Names, names_clear)

static bool
take_current(yaml_document_t *document, ChKubeconfig *out, GError **error)
{
    yaml_node_t *root = yaml_document_get_root_node(document);
    yaml_node_t *context = NULL;
    g_auto(Names) names = {0};

    if (root != NULL && root->type != YAML_MAPPING_NODE && !is_null(root))
        return ch_fail(error, CH_ERROR_INVALID, "line %zu: no mapping", line_of(root));
    if (!take_text(document, root, "current-context", &names.current, error))
        return false;
    if (names.current.text == NULL)
        return true;
    if (!find_entry(document, "contexts", "context", &names.current, &context, error) ||
        !take_text(document, context, "cluster", &names.cluster, error) ||
        !take_text(document, context, "user", &names.user, error) ||
        !take_text(document, context, "namespace", &out->namespace_, error))
        return false;
    return (names.cluster.text == NULL || take_cluster(document, &names.cluster, out, error)) &&
           (names.user.text == NULL || take_user(document, &names.user, out, error));
}

static bool
fail_at_parser(const yaml_parser_t *parser, GError **error)
{
    return ch_fail(error,
                   CH_ERROR_INVALID,
                   "line %zu: %s",
                   parser->problem_mark.line + 1,
                   parser->problem != NULL ? parser->problem : "no YAML");
}

/* +1: opens a level, -1: closes one */
static int
depth_change(yaml_event_type_t type)
{
    if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT)
        return 1;
    if (type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT)
        return -1;
    return 0;
}

static bool
has_anchor(const yaml_event_t *event)
{
    return (event->type == YAML_SCALAR_EVENT && event->data.scalar.anchor != NULL) ||
           (event->type == YAML_SEQUENCE_START_EVENT &&
            event->data.sequence_start.anchor != NULL) ||
           (event->type == YAML_MAPPING_START_EVENT && event->data.mapping_start.anchor != NULL);
}

/* Walks over the events without keeping any, up to the first that is too much. */
static bool
check_limits(yaml_parser_t *parser, GError **error)
{
    bool is_over = false;
    int depth = 0;
    guint n_anchors = 0;

    for (guint n = 0; !is_over; n++) {
        yaml_event_t event;
        gsize line;

        if (!yaml_parser_parse(parser, &event))
            return fail_at_parser(parser, error);
        depth += depth_change(event.type);
        n_anchors += has_anchor(&event) ? 1 : 0;
        is_over = event.type == YAML_STREAM_END_EVENT;
        line = event.start_mark.line + 1;
        yaml_event_delete(&event);
        if (n >= MAX_EVENTS || depth > MAX_DEPTH || n_anchors > MAX_ANCHORS)
            return ch_fail(error,
                           CH_ERROR_LIMIT,
                           "line %zu: more than %d parts, %d levels or %d anchors",
                           line,
                           MAX_EVENTS,
                           MAX_DEPTH,
                           MAX_ANCHORS);
    }
    return true;
}

static bool
load(yaml_parser_t *parser, yaml_document_t *out_document, GError **error)
{
    return yaml_parser_load(parser, out_document) == 1 || fail_at_parser(parser, error);
}

static void
parser_init(yaml_parser_t *parser, const char *text, gsize length)
{
    if (!yaml_parser_initialize(parser))
        g_error("out of memory");
    yaml_parser_set_input_string(parser, (const unsigned char *)text, length);
}

static bool
load_document(const char *text, gsize length, yaml_document_t *out_document, GError **error)
{
    yaml_parser_t parser;
    bool is_good;

    if (length > CH_KUBECONFIG_MAX_BYTES)
        return ch_fail(error, CH_ERROR_LIMIT, "more than %u bytes", CH_KUBECONFIG_MAX_BYTES);
    parser_init(&parser, text, length);
    is_good = check_limits(&parser, error);
    yaml_parser_delete(&parser);
    if (!is_good)
        return false;
    parser_init(&parser, text, length);
    is_good = load(&parser, out_document, error);
    yaml_parser_delete(&parser);
    return is_good;
}

ChKubeconfig *
ch_kubeconfig_parse(const char *text, gsize length, GError **error)
{
    g_autoptr(ChKubeconfig) kubeconfig = g_new0(ChKubeconfig, 1);
    yaml_document_t document;
    bool is_good;

    if (!load_document(text, length, &document, error))
        return NULL;
    is_good = take_current(&document, kubeconfig, error);
    yaml_document_delete(&document);
    return is_good ? g_steal_pointer(&kubeconfig) : NULL;
}

void
ch_kubeconfig_free(ChKubeconfig *kubeconfig)
{
    if (kubeconfig == NULL)
        return;
    g_free(kubeconfig->server.text);
    g_free(kubeconfig->server_name.text);
    g_free(kubeconfig->ca_data.text);
    g_free(kubeconfig->ca_file.text);
    g_free(kubeconfig->token.text);
    g_free(kubeconfig->token_file.text);
    g_free(kubeconfig->cert_data.text);
    g_free(kubeconfig->cert_file.text);
    g_free(kubeconfig->key_data.text);
    g_free(kubeconfig->key_file.text);
    g_free(kubeconfig->namespace_.text);
    g_free(kubeconfig);
}
