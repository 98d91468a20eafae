/* SPDX-License-Identifier: Apache-2.0 */
#include <core/ask.h>
#include <core/ports.h>
#include <core/say.h>

#include <oflib/near.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum status
ports_ask(struct ctx *c, struct of_list *ports)
{
    return ask_list(c, OFPMP_PORT_DESC, NULL, ports);
}

const struct of_port *
ports_desc(const struct of_list *ports, uint32_t no)
{
    for (uint32_t i = 0; i < ports->n; i++) {
        const struct of_port *port = OF_AT(ports, i, struct of_port);
        if (port->port_no == no)
            return port;
    }
    return NULL;
}

uint64_t
ports_speed(const struct of_port *port)
{
    return port ? (uint64_t)port->curr_speed * 1000 : 0;
}

/* ------------------------------------------------------------------------- names */

void
ports_forget(struct ctx *c)
{
    free(c->ports.v);
    c->ports = (struct port_names){0};
}

static enum status
ask_names(struct ctx *c)
{
    struct of_list ports;
    enum status st = ports_ask(c, &ports);
    if (st)
        return st;
    ports_forget(c);
    c->ports.v = calloc(ports.n + 1, sizeof *c->ports.v);
    if (!c->ports.v)
        return say_memory(c);
    for (uint32_t i = 0; i < ports.n; i++) {
        const struct of_port *p = OF_AT(&ports, i, struct of_port);
        struct port_name *to = &c->ports.v[c->ports.n++];
        to->no = p->port_no;
        memcpy(to->name, p->name, sizeof to->name);
    }
    return DPCTL_OK;
}

static const struct port_name *
find(const struct port_names *ports, const char *name, size_t n)
{
    for (size_t i = 0; i < ports->n; i++)
        if (strlen(ports->v[i].name) == n && !memcmp(ports->v[i].name, name, n))
            return &ports->v[i];
    return NULL;
}

/* Names the nearest ports, reserved ones included, or lists the ports. */
static int
unknown(struct ctx *c, struct of_parse *p, const char *what, const char *name, size_t n)
{
    enum { LISTED = 12 };
    struct of_near near = of_near(name, n);
    struct of_wr w = of_wr_fixed(p->why, sizeof p->why - 1);
    char text[OF_NEAR_TEXT], reserved[32];
    for (size_t i = 0; i < c->ports.n; i++)
        of_near_try(&near, c->ports.v[i].name);
    for (size_t i = 0; i < of_fmt_PORT.n; i++)
        of_near_try(&near, of_short_name(&of_fmt_PORT, of_fmt_PORT.names[i].name, reserved,
                                         sizeof reserved));
    of_printf(&w, "%s=%.*s: the switch has no port with this name", what, (int)(n < 60 ? n : 60),
              name);
    of_printf(&w, "%s", of_near_text(&near, text, sizeof text));
    for (size_t i = 0; i < c->ports.n && i < LISTED && !near.count; i++) {
        of_printf(&w, "%s", i ? ", " : ": it has ");
        of_print_text(&w, c->ports.v[i].name, strlen(c->ports.v[i].name));
        of_printf(&w, " (%u)", (unsigned)c->ports.v[i].no);
    }
    if (!near.count)
        of_printf(&w,
                  "%s; reserved names are in_port, all, flood, controller, local, any and normal",
                  c->ports.n > LISTED ? ", ..." : "");
    p->why[w.len] = '\0';
    return -EINVAL;
}

int
ports_find(struct of_parse *p, const char *what, const char *name, size_t n, uint64_t *out)
{
    struct ctx *c = p->find_port_ctx;
    const struct port_name *found = find(&c->ports, name, n);
    if (!found && !c->ports.fresh && ask_names(c)) {
        snprintf(p->why, sizeof p->why,
                 "%s=%.*s: the switch does not report its ports' names: use a number", what,
                 (int)(n < 60 ? n : 60), name);
        return -EINVAL;
    }
    c->ports.fresh = true;
    found = found ? found : find(&c->ports, name, n);
    if (!found)
        return unknown(c, p, what, name, n);
    *out = found->no;
    return 0;
}

bool
ports_is(struct ctx *c, const char *word, uint32_t *no)
{
    uint64_t v;
    if (of_parse_number(&c->parse, "port", word, &of_fmt_PORT, 32, &v))
        return false;
    *no = (uint32_t)v;
    return true;
}

enum status
ports_number(struct ctx *c, const char *word, uint32_t *no)
{
    return ports_is(c, word, no) ? DPCTL_OK : say_parse(c, -EINVAL);
}

enum status
ports_get(struct ctx *c, const char *word, const struct of_port **out)
{
    struct of_list ports;
    uint32_t no = 0;
    enum status st;
    if ((st = ports_number(c, word, &no)) || (st = ports_ask(c, &ports)))
        return st;
    *out = ports_desc(&ports, no);
    return *out ? DPCTL_OK : say_failed(c, "the switch has no port %s", word);
}
