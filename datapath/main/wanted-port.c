/* SPDX-License-Identifier: Apache-2.0 */
/* What a port does: --fail-to-wire=eth1:eth2 and --port-inside=eth1:pppoe, and the keys fail-to-wire and inside of
 * [port eth1]. */
#include "options.h"
#include "wanted.h"

#include <oflib/near.h>

#include <stdio.h>
#include <string.h>

/* False: it is none of the ports, and the settings' list says so. */
static bool
is_port(struct wanted *w, const struct daemon_setting *at, const char *name, size_t n)
{
    char text[IFNAMSIZ], nearest[OF_NEAR_TEXT];
    snprintf(text, sizeof text, "%.*s", (int)n, name);
    if (n < sizeof text && wanted_find_port(w, text))
        return true;
    struct of_near near = of_near(name, n);
    for (size_t i = 0; i < w->n_ports; i++)
        of_near_try(&near, w->ports[i].name);
    daemon_settings_fault(w->s, at, "is wrong: there is no port %.*s%s", (int)n, name,
                          of_near_text(&near, nearest, sizeof nearest));
    return false;
}

/* ------------------------------------------------------------------ fail to wire */

static bool
check_end(struct wanted *w, const struct daemon_setting *at, const char *name, size_t n)
{
    if (!is_port(w, at, name, n))
        return false;
    for (unsigned i = 0; i < w->n_wires; i++)
        for (int k = 0; k < 2; k++)
            if (strlen(w->wire[i].end[k]) == n && !memcmp(w->wire[i].end[k], name, n)) {
                daemon_settings_fault(w->s, at, "joins %.*s with %s already", (int)n, name,
                                      w->wire[i].end[!k]);
                return false;
            }
    return true;
}

/* "eth1:eth2", "eth1:eth2:unshaped" */
static void
take_wire(struct wanted *w, const struct daemon_setting *at)
{
    const char *one = at->value, *two = strchr(one, ':');
    size_t n = strcspn(one, ":"), m = two ? strcspn(two + 1, ":") : 0;
    const char *word = two && two[1 + m] ? two + 2 + m : NULL;
    if (!n || !m || (word && strcmp(word, "unshaped"))) {
        daemon_settings_fault(w->s, at, "must be %s, not '%s'",
                              at->in_section ? "the other port, such as eth2 or eth2:unshaped"
                                             : "two ports, such as eth1:eth2 or eth1:eth2:unshaped",
                              daemon_settings_written(at));
        return;
    }
    if (n == m && !memcmp(one, two + 1, n)) {
        daemon_settings_fault(w->s, at, "joins two ports, not one with itself, as '%s' says",
                              daemon_settings_written(at));
        return;
    }
    if (!check_end(w, at, one, n) || !check_end(w, at, two + 1, m))
        return;
    if (w->n_wires == SW_WIRES_MAX) {
        daemon_settings_fault(w->s, at, "may be given %d times", SW_WIRES_MAX);
        return;
    }
    struct sw_wire *v = &w->wire[w->n_wires++];
    *v = (struct sw_wire){.unshaped = word != NULL};
    snprintf(v->end[0], IFNAMSIZ, "%.*s", (int)n, one);
    snprintf(v->end[1], IFNAMSIZ, "%.*s", (int)m, two + 1);
}

void
wanted_make_wires(struct wanted *w)
{
    const struct daemon_setting *t = NULL;
    for (; (t = daemon_settings_next(w->s, "fail-to-wire", t));) {
        if (w->options->sw.offload.mode == SW_OFFLOAD_OFF)
            daemon_settings_fault(w->s, t, "needs offload=auto: the programs in the kernel do it");
        else if (w->options->backend)
            daemon_settings_fault(w->s, t, "needs io=packet");
        else
            take_wire(w, t);
    }
}

/* ------------------------------------------------------------------ inside */

static uint8_t
kind_of(const char *word, size_t n)
{
    return n == 5 && !memcmp(word, "pppoe", n)  ? PACKET_INSIDE_PPPOE
           : n == 4 && !memcmp(word, "mpls", n) ? PACKET_INSIDE_MPLS
                                                : 0;
}

/* "eth1:pppoe", "eth1:pppoe:mpls" */
static void
take_inside(struct wanted *w, const struct daemon_setting *at)
{
    const char *p = strchr(at->value, ':');
    size_t name = strcspn(at->value, ":");
    struct sw_inside v = {0};
    uint8_t kind = p != NULL;
    for (; p && kind; p = strchr(p, ':')) {
        p++;
        kind = kind_of(p, strcspn(p, ":"));
        v.kinds |= kind;
    }
    if (!kind) {
        daemon_settings_fault(w->s, at, "must be pppoe, mpls or pppoe:mpls%s, not '%s'",
                              at->in_section ? "" : ", such as eth1:pppoe",
                              daemon_settings_written(at));
        return;
    }
    if (!is_port(w, at, at->value, name))
        return;
    if (w->n_inside == SW_INSIDE_MAX) {
        daemon_settings_fault(w->s, at, "may be given %d times", SW_INSIDE_MAX);
        return;
    }
    snprintf(v.port, sizeof v.port, "%.*s", (int)name, at->value);
    for (unsigned i = 0; i < w->n_inside; i++)
        if (!strcmp(w->inside[i].port, v.port)) {
            daemon_settings_fault(w->s, at, "is given twice for %s; both kinds are pppoe:mpls",
                                  v.port);
            return;
        }
    w->inside[w->n_inside++] = v;
}

void
wanted_make_inside(struct wanted *w)
{
    for (const struct daemon_setting *t = NULL; (t = daemon_settings_next(w->s, "port-inside", t));)
        take_inside(w, t);
}
