/* SPDX-License-Identifier: Apache-2.0 */
/* --fail-to-wire=eth1:eth2, and the key fail-to-wire of [port eth1]. */
#include "options.h"
#include "wanted.h"

#include <oflib/near.h>

#include <stdio.h>
#include <string.h>

static bool
check_end(struct wanted *w, const struct daemon_setting *at, const char *name, size_t n)
{
    char text[IFNAMSIZ], nearest[OF_NEAR_TEXT];
    snprintf(text, sizeof text, "%.*s", (int)n, name);
    if (n >= sizeof text || !wanted_find_port(w, text)) {
        struct of_near near = of_near(name, n);
        for (size_t i = 0; i < w->n_ports; i++)
            of_near_try(&near, w->ports[i].name);
        daemon_settings_fault(w->s, at, "joins two ports, and there is no port %.*s%s", (int)n,
                              name, of_near_text(&near, nearest, sizeof nearest));
        return false;
    }
    for (unsigned i = 0; i < w->n_wires; i++)
        for (int k = 0; k < 2; k++)
            if (!strcmp(w->wire[i].end[k], text)) {
                daemon_settings_fault(w->s, at, "joins %s with %s already", text,
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
        daemon_settings_fault(
            w->s, at, "must be two ports, such as eth1:eth2 or eth1:eth2:unshaped, not '%s'", one);
        return;
    }
    if (n == m && !memcmp(one, two + 1, n)) {
        daemon_settings_fault(w->s, at, "joins two ports, not one with itself, as '%s' says", one);
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
