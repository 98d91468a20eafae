/* SPDX-License-Identifier: Apache-2.0 */
#include "wanted.h"

#include "options.h"

#include <oflib/near.h>
#include <ports/ports.h>
#include <slice/slice.h>
#include <stream/address.h>
#include <switch/switch.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define WORDS_ARENA (64u << 20)

bool
wanted_has_files(const struct wanted *w, const char *files)
{
    for (size_t i = 0; i < w->n_ports; i++)
        if (w->ports[i].files && !strcmp(w->ports[i].files, files))
            return true;
    return false;
}

/* ------------------------------------------------------------------ ports */

static void
missing_interface(struct wanted *w, const struct wanted_port *p)
{
    struct if_nameindex *all = if_nameindex();
    struct of_near near = of_near(p->name, strlen(p->name));
    char text[OF_NEAR_TEXT];
    for (const struct if_nameindex *i = all; i && i->if_index; i++)
        of_near_try(&near, i->if_name);
    daemon_settings_fault(w->s, p->at, "must name interfaces, and there is no %s%s", p->name,
                          near.count ? of_near_text(&near, text, sizeof text)
                                     : "; ip link shows them");
    if_freenameindex(all);
}

static bool
is_interfaces(const struct daemon_setting *at)
{
    return !strcmp(at->row->name, "interfaces");
}

static bool
check_name(struct wanted *w, const struct daemon_setting *at, const char *name, size_t n)
{
    bool is_one = n && n < IFNAMSIZ && !memchr(name, '/', n) && !memchr(name, ' ', n);
    if (!is_one)
        daemon_settings_fault(w->s, at,
                              "must have interface names of 1 to %d characters, such as eth1, not "
                              "'%.*s'",
                              IFNAMSIZ - 1, (int)n, name);
    return is_one;
}

static void
add_port(struct wanted *w, const struct daemon_setting *at, const char *name, size_t n,
         unsigned long no)
{
    struct wanted_port *v =
        of_arena_room(&w->s->arena, w->ports, w->n_ports, &w->ports_room, sizeof *v);
    if (!v)
        return;
    w->ports = v;
    v += w->n_ports;
    *v = (struct wanted_port){.no = (uint32_t)no, .numbered = no, .at = at};
    const char *text = of_arena_text(&w->s->arena, name, n);
    if (text && !no && sw_ports_is_files(text)) {
        v->files = text;
        w->n_ports++;
        return;
    }
    if (!check_name(w, at, name, n))
        return;
    memcpy(v->name, name, n);
    struct wanted_port *twin = (struct wanted_port *)(uintptr_t)wanted_find_port(w, v->name);
    if (twin && is_interfaces(twin->at) && !is_interfaces(at)) { /* a section about one of them */
        twin->no = (uint32_t)no;
        twin->numbered = no;
        twin->at = at;
        return;
    }
    if (twin) {
        char where[480];
        daemon_settings_fault(w->s, at,
                              "must name each interface once, and %s is there already (%s)",
                              v->name, daemon_settings_where(w->s, twin->at, where, sizeof where));
        return;
    }
    w->n_ports++;
}

/* "eth1,eth2" */
static void
take_interfaces(struct wanted *w, const struct daemon_setting *at)
{
    const char *p = at->value;
    for (;;) {
        p += strspn(p, " ");
        size_t n = strcspn(p, ","), blanks = n;
        while (blanks && p[blanks - 1] == ' ')
            blanks--;
        add_port(w, at, p, blanks, 0);
        if (!p[n])
            return;
        p += n + 1;
    }
}

/* "eth1", "eth1:3"; behind a comma are its VLANs */
static void
take_port(struct wanted *w, const struct daemon_setting *at)
{
    size_t n = wanted_port_name(at->value);
    const char *number = at->value[n] == ':' ? at->value + n + 1 : NULL;
    char *end = NULL;
    unsigned long no = number ? strtoul(number, &end, 10) : 0;
    if (number &&
        (*number < '0' || *number > '9' || (*end && *end != ',') || !no || no > PORT_MAX)) {
        daemon_settings_fault(w->s, at, "must be a number from 1 to %d, not '%s'", PORT_MAX,
                              number);
        no = 0;
    }
    add_port(w, at, at->value, n, no);
}

static void
check_numbers(struct wanted *w)
{
    for (size_t i = 0; i < w->n_ports; i++)
        for (size_t k = 0; k < i; k++)
            if (w->ports[i].numbered && w->ports[i].no == w->ports[k].no)
                daemon_settings_fault(w->s, w->ports[i].at, "must be different: %s has %u already",
                                      w->ports[k].name, (unsigned)w->ports[k].no);
}

/* Ports without a number of their own keep the one that they have, or get the lowest free one, in
 * their order. */
static void
number_ports(struct wanted *w, const struct sw *sw)
{
    bool taken[PORT_MAX + 1] = {true};
    const struct sw_port *p;
    for (uint32_t no = 0; sw && (p = sw_ports_next(sw, no)); no = p->no)
        if (p->no <= PORT_MAX)
            taken[p->no] = true;
    for (size_t i = 0; i < w->n_ports; i++)
        taken[w->ports[i].no] = true;
    for (size_t i = 0; i < w->n_ports; i++) {
        struct wanted_port *want = &w->ports[i];
        const struct sw_port *there = sw && !want->files ? sw_ports_by_name(sw, want->name) : NULL;
        uint32_t no = there && there->no <= PORT_MAX ? there->no : 1;
        while (!want->no && !there && no < PORT_MAX && taken[no])
            no++;
        want->no = want->no ? want->no : no;
        taken[want->no] = true;
    }
}

static void
check_local(struct wanted *w)
{
    const char *name = w->options->sw.local_port;
    const struct daemon_setting *at = daemon_settings_next(w->s, "local-port", NULL);
    if (!name || !at || !check_name(w, at, name, strlen(name)))
        return;
    if (wanted_find_port(w, name))
        daemon_settings_fault(w->s, at, "must be a name of its own: %s is a port already", name);
}

static void
make_ports(struct wanted *w, const struct sw *sw, bool must_exist)
{
    const struct daemon_setting *t;
    for (t = NULL; (t = daemon_settings_next(w->s, "interfaces", t));)
        take_interfaces(w, t);
    for (t = NULL; (t = daemon_settings_next(w->s, "port", t));)
        take_port(w, t);
    wanted_make_vlans(w);
    check_numbers(w);
    check_local(w);
    number_ports(w, sw);
    must_exist = must_exist && !w->options->wait_for_interfaces;
    for (size_t i = 0; must_exist && i < w->n_ports; i++)
        if (w->ports[i].at->line && !w->ports[i].files && !if_nametoindex(w->ports[i].name) &&
            !(sw && sw_ports_by_name(sw, w->ports[i].name)) && !w->options->backend)
            missing_interface(w, &w->ports[i]);
}

/* "eth1:off" */
static void
take_offload(struct wanted *w, const struct daemon_setting *at)
{
    const char *word = strchr(at->value, ':');
    size_t n = strcspn(at->value, ":");
    if (!word || !n || n >= IFNAMSIZ || (strcmp(word, ":auto") && strcmp(word, ":off"))) {
        daemon_settings_fault(w->s, at, "must be auto or off, such as eth1:off, not '%s'",
                              word ? word + 1 : at->value);
        return;
    }
    if (!strcmp(word, ":auto"))
        return;
    char(*v)[IFNAMSIZ] = of_arena_room(&w->s->arena, w->offload_off, w->n_offload_off,
                                       &w->offload_off_room, sizeof *v);
    if (!v)
        return;
    w->offload_off = v;
    snprintf(v[w->n_offload_off++], IFNAMSIZ, "%.*s", (int)n, at->value);
}

bool
wanted_is_local(const struct wanted *w, const char *name, size_t n)
{
    const char *local = w->options->sw.local_port;
    return local && strlen(local) == n && !memcmp(local, name, n);
}

/* struct of_parse */
static int
find_port(struct of_parse *p, const char *what, const char *name, size_t n, uint64_t *out)
{
    const struct wanted *w = p->find_port_ctx;
    struct of_near near = of_near(name, n);
    char text[OF_NEAR_TEXT];
    if (wanted_is_local(w, name, n)) {
        *out = OFPP_LOCAL;
        return 0;
    }
    for (size_t i = 0; i < w->n_ports; i++) {
        if (strlen(w->ports[i].name) == n && !memcmp(w->ports[i].name, name, n)) {
            *out = w->ports[i].no;
            return 0;
        }
        of_near_try(&near, w->ports[i].name);
    }
    snprintf(p->why, sizeof p->why, "%s: there is no port %.*s%s", what, (int)n, name,
             of_near_text(&near, text, sizeof text));
    return -EINVAL;
}

/* ------------------------------------------------------------------ connections */

static void
check_connections(struct wanted *w, const char *name, bool passive)
{
    const char *file = w->options->tls.values[STREAM_TLS_PRIVATE_KEY];
    struct stream_address a;
    char why[256];
    for (const struct daemon_setting *t = NULL; (t = daemon_settings_next(w->s, name, t));) {
        if (stream_parse(t->value, &a, why, sizeof why))
            daemon_settings_fault(w->s, t, "is wrong: %s", why);
        else if (a.passive != passive)
            daemon_settings_fault(w->s, t, "must be %s, not '%s'; that belongs in %s",
                                  passive ? "punix:, ptcp: or ptls:" : "unix:, tcp: or tls:",
                                  t->value, passive ? "controller" : "listen");
        else if (a.tls && !file)
            daemon_settings_fault(w->s, t, "needs private-key, certificate and ca-cert for '%s'",
                                  t->value);
        else if (w->options->plain_listen == PLAIN_REFUSE && stream_is_exposed(&a))
            daemon_settings_fault(
                w->s, t,
                "'%s' is open to other machines without TLS, which plain-listen=refuse "
                "forbids: use ptls:, or 127.0.0.1",
                t->value);
    }
}

static void
check_tls(struct wanted *w)
{
    struct stream_tls *tls;
    char why[320];
    const struct daemon_setting *t = daemon_settings_next(w->s, "private-key", NULL);
    if (stream_tls_new(&w->options->tls, &tls, why, sizeof why))
        daemon_settings_fault(w->s, t, "and its certificate can't be used: %s", why);
    else
        stream_tls_free(tls);
}

/* ------------------------------------------------------------------ all of it */

void
wanted_make(struct wanted *w, struct daemon_settings *s, const struct main_options *options,
            const struct sw *sw, bool must_exist)
{
    *w = (struct wanted){.s = s, .options = options};
    w->parse = (struct of_parse){.arena = &s->arena, .find_port = find_port, .find_port_ctx = w};
    make_ports(w, sw, must_exist);
    for (const struct daemon_setting *t = NULL; (t = daemon_settings_next(s, "port-offload", t));)
        take_offload(w, t);
    wanted_make_wires(w);
    wanted_make_inside(w);
    check_connections(w, "listen", true);
    check_connections(w, "controller", false);
    if (must_exist && !options->socket && !daemon_settings_next(s, "listen", NULL) &&
        !daemon_settings_next(s, "controller", NULL))
        daemon_settings_fault(s, NULL, "no connection is given: add one such as %s",
                              s->file ? "listen = punix: or controller = tcp:127.0.0.1"
                                      : "punix: or tcp:127.0.0.1 (see --help)");
    check_tls(w);
    w->slices = of_arena_alloc(&s->arena, sizeof *w->slices);
    if (w->slices)
        wanted_make_slices(s, w->slices);
}

void
wanted_free(struct wanted *w)
{
    if (w->slices)
        slices_clear(w->slices);
}
