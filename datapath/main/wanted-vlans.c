/* SPDX-License-Identifier: Apache-2.0 */
/* The ports' VLANs: --port=eth1,vlan=10, and the keys vlan and trunk of [port eth1]. */
#include "wanted.h"

#include <normal/vlans.h>

#include <stdio.h>
#include <string.h>

size_t
wanted_port_name(const char *value)
{
    static const char *const options[] = {",vlan=", ",trunk="};
    const char *end = value + strlen(value);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const char *option = strstr(value, options[i]);
        end = option && option < end ? option : end;
    }
    const char *number = strchr(value, ':');
    return number && number < end ? (size_t)(number - value) : strcspn(value, ",");
}

static struct wanted_port *
port_of(struct wanted *w, const char *name)
{
    for (size_t i = 0; i < w->n_ports; i++)
        if (!strcmp(w->ports[i].name, name))
            return &w->ports[i];
    return NULL;
}

static void
take_word(struct wanted *w, const struct daemon_setting *at, const char *word)
{
    char name[IFNAMSIZ], why[200];
    snprintf(name, sizeof name, "%.*s", (int)wanted_port_name(at->value), at->value);
    struct wanted_port *p = port_of(w, name);
    if (!p) {
        daemon_settings_fault(w->s, at, "is about %s, which is no port", name);
        return;
    }
    if (!p->vlans)
        p->vlans = of_arena_alloc(&w->s->arena, sizeof *p->vlans);
    if (p->vlans && !vlans_take(p->vlans, word, why, sizeof why))
        daemon_settings_fault(w->s, at, "is wrong: %s", why);
}

/* "eth1,vlan=10,trunk=20:30", "eth1:3,vlan=10" */
static void
take_words(struct wanted *w, const struct daemon_setting *at)
{
    char word[VLANS_TEXT];
    for (const char *p = strchr(at->value + wanted_port_name(at->value), ','); p;
         p = strchr(p, ',')) {
        p++;
        snprintf(word, sizeof word, "%.*s", (int)strcspn(p, ","), p);
        take_word(w, at, word);
    }
}

/* "eth1:10" of [port eth1] and vlan = 10 */
static void
take_key(struct wanted *w, const struct daemon_setting *at, const char *key)
{
    char word[VLANS_TEXT];
    const char *value = strchr(at->value, ':');
    snprintf(word, sizeof word, "%s=%s", key, value ? value + 1 : "");
    take_word(w, at, word);
}

void
wanted_make_vlans(struct wanted *w)
{
    const struct daemon_setting *t;
    for (t = NULL; (t = daemon_settings_next(w->s, "port", t));)
        take_words(w, t);
    for (t = NULL; (t = daemon_settings_next(w->s, "port-vlan", t));)
        take_key(w, t, "vlan");
    for (t = NULL; (t = daemon_settings_next(w->s, "port-trunk", t));)
        take_key(w, t, "trunk");
}
