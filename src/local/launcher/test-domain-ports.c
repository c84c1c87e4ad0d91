/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/domain-ports.h"

#include <string.h>

#include "lib/base/errors.h"
#include "local/launcher/xml.h"

#define ROOT        "<controller type='pci' index='0' model='pcie-root'/>"
#define PORT(index) "<controller type='pci' index='" index "' model='pcie-root-port'/>"
#define USB         "<controller type='usb' index='9' model='none'/>"
/* clang-format off */
#define SIX(a, b, c, d, e, f) PORT(a) PORT(b) PORT(c) PORT(d) PORT(e) PORT(f)
#define TWELVE SIX("1", "2", "3", "4", "5", "6") SIX("7", "8", "9", "10", "11", "12")
/* clang-format on */

static const struct PortCase {
    const char *name, *memory, *controllers;
    guint n_more;
} cases[] = {
    {"small-without", "196608", ROOT USB, 8},
    {"small-with-two", "196608", ROOT PORT("1") PORT("2"), 6},
    {"small-with-many", "196608", ROOT TWELVE, 3},
    {"exactly-two-gib-is-small", "2097152", ROOT, 8},
    {"large-with-two", "4194304", ROOT PORT("1") PORT("2"), 14},
    {"large-with-many", "4194304", ROOT TWELVE, 6},
    {"no-more-than-31", "196608", ROOT PORT("30"), 1},
    {"none-left", "196608", ROOT PORT("31"), 0},
    {"no-pcie", "196608", "<controller type='pci' index='0' model='pci-root'/>", 0},
};

static guint
count(const char *text, const char *part)
{
    guint n = 0;

    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        n++;
    return n;
}

static void
test_ports(gconstpointer data)
{
    const struct PortCase *c = data;
    g_autofree char *text =
        g_strdup_printf("<domain><memory unit='KiB'>%s</memory><devices>%s</devices></domain>",
                        c->memory,
                        c->controllers);
    g_autoptr(GError) error = NULL;
    g_autofree char *more = ch_domain_add_ports(text, &error);

    g_assert_no_error(error);
    if (c->n_more == 0) {
        g_assert_null(more);
        return;
    }
    g_assert_cmpuint(count(more, "pcie-root-port"), ==, count(text, "pcie-root-port") + c->n_more);
}

static void
test_no_document(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_domain_add_ports("<domain>", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ch_xml_init();
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/domain-ports/", cases[i].name, NULL);

        g_test_add_data_func(path, &cases[i], test_ports);
    }
    g_test_add_func("/domain-ports/no-document", test_no_document);
    return g_test_run();
}
