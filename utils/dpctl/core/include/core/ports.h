/* SPDX-License-Identifier: Apache-2.0 */
/* The switch's ports, by number and by name.  Names are asked for when the first one is met, and
 * again when one is not among them. */
#ifndef DPCTL_CORE_PORTS_H
#define DPCTL_CORE_PORTS_H

#include <core/context.h>

/* OFPMP_PORT_DESC: a list of struct of_port in the arena. */
enum status ports_ask(struct ctx *c, struct of_list *ports);

const struct of_port *ports_desc(const struct of_list *ports, uint32_t no); /* NULL */
uint64_t ports_speed(const struct of_port *port); /* bit/s; 0: unknown, also of NULL */

/* "5", "local", "eth1": a port as a person writes it. */
/* Is the word a port's number or name?  Says nothing; c->parse.why has why it isn't. */
bool ports_is(struct ctx *c, const char *word, uint32_t *no);

enum status ports_number(struct ctx *c, const char *word, uint32_t *no);

/* The switch's port of this number or name; in the arena. */
enum status ports_get(struct ctx *c, const char *word, const struct of_port **out);

/* of_parse.find_port: a port's number by its name.  find_port_ctx is the context. */
int ports_find(struct of_parse *p, const char *what, const char *name, size_t n, uint64_t *out);

/* Forgets the names, because ports have come or gone. */
void ports_forget(struct ctx *c);

#endif
