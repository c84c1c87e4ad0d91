/* SPDX-License-Identifier: Apache-2.0 */

/* domain-features: <features> and <clock> of the domain document. Spec 03 §13.1. */

#include "local/launcher/domain-internal.h"

/* A feature state is on when it is there and not `enabled: false`. */
static bool
is_on(const ChJson *feature)
{
    return ch_json_is_object(feature) && ch_json_bool_at(feature, true, "enabled");
}

/* A VMI without features gets none at all, ACPI included; with features, ACPI is on unless it says
 * otherwise. */
void
ch_domain_build_features(ChDomainBuild *build)
{
    const ChJson *features = ch_json_at(build->spec, "features");
    xmlNode *node = ch_xml_add(build->root, "features", NULL);

    if (!ch_json_is_object(features))
        return;
    if (ch_json_bool_at(features, true, "acpi", "enabled"))
        ch_xml_add(node, "acpi", NULL);
    if (is_on(ch_json_at(features, "apic"))) {
        const char *eoi = ch_json_bool_at(features, false, "apic", "endOfInterrupt") ? "on" : NULL;

        ch_xml_add(node, "apic", "eoi", eoi, NULL);
    }
    if (is_on(ch_json_at(features, "smm")))
        ch_xml_add(node, "smm", "state", "on", NULL);
    if (ch_json_bool_at(features, false, "kvm", "hidden"))
        ch_xml_add(ch_xml_add(node, "kvm", NULL), "hidden", "state", "on", NULL);
    if (ch_json_is_object(ch_json_at(features, "pvspinlock")))
        ch_xml_add(node,
                   "pvspinlock",
                   "state",
                   is_on(ch_json_at(features, "pvspinlock")) ? "on" : "off",
                   NULL);
    ch_xml_add(node, "vmport", "state", "off", NULL);
}

typedef struct {
    const char *key;  /* in clock.timer */
    const char *name; /* libvirt's */
} TimerName;

static const TimerName timers[] = {
    {"rtc", "rtc"},
    {"pit", "pit"},
    {"kvm", "kvmclock"},
    {"hpet", "hpet"},
    {"hyperv", "hypervclock"},
};

static void
add_timer(xmlNode *clock, const TimerName *name, const ChJson *timer)
{
    ch_xml_add(clock,
               "timer",
               "name",
               name->name,
               "tickpolicy",
               ch_json_string_at(timer, "tickPolicy"),
               "present",
               ch_json_bool_at(timer, true, "present") ? "yes" : "no",
               "track",
               ch_json_string_at(timer, "track"),
               NULL);
}

void
ch_domain_build_clock(ChDomainBuild *build)
{
    const ChJson *clock = ch_json_at(build->spec, "clock");
    const char *zone = ch_json_string_at(clock, "timezone");
    int64_t offset = 0;

    if (!ch_json_is_object(clock))
        return;
    xmlNode *node = ch_xml_add(build->root, "clock", NULL);
    if (zone != NULL) {
        ch_xml_set(node, "offset", "timezone");
        ch_xml_set(node, "timezone", zone);
    } else if (ch_json_is_object(ch_json_at(clock, "utc"))) {
        g_autofree char *adjustment = ch_json_int_at(clock, &offset, "utc", "offsetSeconds")
                                          ? g_strdup_printf("%" G_GINT64_FORMAT, offset)
                                          : g_strdup("reset");

        ch_xml_set(node, "offset", "utc");
        ch_xml_set(node, "adjustment", adjustment);
    } else {
        ch_xml_set(node, "offset", "utc");
    }
    for (gsize i = 0; i < G_N_ELEMENTS(timers); i++) {
        const ChJson *timer = ch_json_at(clock, "timer", timers[i].key);

        if (ch_json_is_object(timer))
            add_timer(node, &timers[i], timer);
    }
}
