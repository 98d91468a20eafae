/* SPDX-License-Identifier: Apache-2.0 */
/* Ports out of files: pcap:IN:OUT[:recorded]. */
#include "port-attach.h"

#include <ports/ports.h>

#include <port/port.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "pcap:"

bool
sw_ports_is_files(const char *spec)
{
    return !strncmp(spec, PREFIX, strlen(PREFIX));
}

static bool
take(char *to, size_t size, const char **spec)
{
    size_t n = strcspn(*spec, ":");
    if (n >= size)
        return false;
    memcpy(to, *spec, n);
    to[n] = '\0';
    *spec += n + ((*spec)[n] == ':');
    return true;
}

static bool
parse(const char *spec, struct port_files *f)
{
    const char *rest = spec + strlen(PREFIX);
    char pace[16];
    if (!take(f->in, sizeof f->in, &rest) || !take(f->out, sizeof f->out, &rest) ||
        !take(pace, sizeof pace, &rest) || *rest)
        return false;
    f->recorded = !strcmp(pace, "recorded");
    return (*f->in || *f->out) && (f->recorded || !*pace) &&
           (!*f->in || strcmp(f->in, f->out) != 0);
}

/* pcap1 for the first, and so on. */
static void
choose_name(const struct sw *sw, char *name, size_t size)
{
    uint32_t no = 0;
    unsigned n = 1;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        n += p->files != NULL;
    snprintf(name, size, "pcap%u", n);
}

int
sw_ports_add_files(struct sw *sw, const char *spec, char *why, size_t why_len)
{
    char name[IFNAMSIZ];
    struct port_files *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    if (!parse(spec, f)) {
        snprintf(why, why_len,
                 "'%s' is no port out of files: write pcap:IN:OUT or pcap:IN:OUT:recorded with two "
                 "different files, one of which may be left out, such as pcap:in.pcap:out.pcap",
                 spec);
        free(f);
        return -EINVAL;
    }
    choose_name(sw, name, sizeof name);
    int err = sw_port_add(sw, name, 0, f, false, why, why_len);
    if (err)
        free(f);
    return err;
}
