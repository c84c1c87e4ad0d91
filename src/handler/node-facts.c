/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node-facts.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "handler/config/host-model.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/small-file.h"

#define LABELLER_DIR        "/var/lib/kubevirt-node-labeller/"
#define CAPABILITIES_FILE   LABELLER_DIR "capabilities.xml"
#define HOST_MODEL_FILE     LABELLER_DIR "virsh_domcapabilities.xml"
#define MAX_FILE_BYTES      (8u << 20)
#define MAX_NAMESPACE_BYTES 4096
#define DEFAULT_NAMESPACE   "kubevirt"

static ChCapabilities *
load_capabilities(GError **error)
{
    gsize length;
    g_autofree char *xml = ch_small_file_read(CAPABILITIES_FILE, MAX_FILE_BYTES, &length, error);

    return xml != NULL ? ch_capabilities_parse(xml, length, error) : NULL;
}

/* Without the file the host's CPU model is unknown, and VMIs that ask for it count as not
 * migratable. */
static char *
load_cpu_model(void)
{
    gsize length;
    g_autoptr(GError) error = NULL;
    g_autofree char *xml = ch_small_file_read(HOST_MODEL_FILE, MAX_FILE_BYTES, &length, &error);
    char *model = xml != NULL ? ch_host_model_parse(xml, length, &error) : NULL;

    if (model == NULL)
        ch_log_warning(NULL, error, "ignoring that the CPU model of this host is not known");
    return model != NULL ? model : g_strdup("");
}

static const char *
go_architecture(void)
{
    static const struct {
        const char *kernel, *go;
    } names[] = {
        {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"s390x", "s390x"}, {"ppc64le", "ppc64le"}};
    struct utsname machine;

    if (uname(&machine) < 0)
        return "";
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        if (g_str_equal(names[i].kernel, machine.machine))
            return names[i].go;
    }
    return "";
}

bool
ch_node_facts_load(ChNodeFacts *facts, GError **error)
{
    ChCapabilities *capabilities = load_capabilities(error);

    if (capabilities == NULL)
        return false;
    *facts = (ChNodeFacts){
        .capabilities = capabilities,
        .cpu_model = load_cpu_model(),
        .architecture = go_architecture(),
    };
    return true;
}

void
ch_node_facts_clear(ChNodeFacts *facts)
{
    ch_capabilities_free(facts->capabilities);
    g_free(facts->cpu_model);
    *facts = (ChNodeFacts){0};
}

char *
ch_own_namespace_load(const char *path, GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_autofree char *text = ch_small_file_read(path, MAX_NAMESPACE_BYTES, NULL, &reason);

    if (text == NULL && !g_error_matches(reason, CH_ERRNO, ENOENT)) {
        g_propagate_prefixed_error(
            error, g_steal_pointer(&reason), "failed to determine namespace from %s: ", path);
        return NULL;
    }
    if (text == NULL || g_strstrip(text)[0] == '\0')
        return g_strdup(DEFAULT_NAMESPACE);
    return g_steal_pointer(&text);
}
