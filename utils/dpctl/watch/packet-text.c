/* SPDX-License-Identifier: Apache-2.0 */
#include "packet-text.h"

#include <core/ask.h>
#include <core/say.h>

#include <oflib/near.h>

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum status
packet_drops_ask(struct ctx *c, struct of_list *out)
{
    struct of_bytes reply;
    void *body;
    enum status st = ask_experimenter(c, OFP_EXP_DROPS, (struct of_bytes){NULL, 0}, &reply);
    if (st)
        return st;
    if (of_decode_struct(reply, &of_row_drops, &c->arena, &body))
        return say_malformed(c);
    *out = ((const struct of_drops *)body)->drops;
    return DPCTL_OK;
}

const struct of_drop *
packet_drops_row(const struct of_list *drops, uint32_t reason)
{
    for (uint32_t i = 0; i < drops->n; i++) {
        const struct of_drop *d = drops->v[i];
        if (d->reason == reason)
            return d;
    }
    return NULL;
}

bool
packet_drops_is(const struct of_list *drops, const char *name)
{
    for (uint32_t i = 0; i < drops->n; i++)
        if (!strcmp(OF_AT(drops, i, struct of_drop)->name, name))
            return true;
    return false;
}

enum status
packet_drops_find(struct ctx *c, const struct of_list *drops, const char *name,
                  const struct of_drop **out)
{
    struct of_near near = of_near(name, strlen(name));
    char text[OF_NEAR_TEXT];
    for (uint32_t i = 0; i < drops->n; i++) {
        *out = drops->v[i];
        if (!strcmp((*out)->name, name))
            return DPCTL_OK;
        of_near_try(&near, (*out)->name);
    }
    if (!drops->n)
        return say_failed(c, "this switch does not report reasons of drops, such as '%s'", name);
    return say_usage(c, "there is no reason '%s'%s; dpctl why-dropped all=yes lists them", name,
                     of_near_text(&near, text, sizeof text));
}

void
packet_print_place(struct of_wr *w, const struct packet_place *p)
{
    const char *comma = "";
    if (p->in_port != OFPP_ANY) {
        of_printf(w, "in_port=");
        of_print_number(w, &of_fmt_PORT, p->in_port);
        comma = " ";
    }
    if (p->table_id != OFPTT_ALL)
        of_printf(w, "%stable=%u", comma, p->table_id), comma = " ";
    if (p->cookie != UINT64_MAX)
        of_printf(w, "%scookie=0x%" PRIx64, comma, p->cookie), comma = " ";
    if (p->out_port != OFPP_ANY) {
        of_printf(w, "%sout=", comma);
        of_print_number(w, &of_fmt_PORT, p->out_port);
        comma = " ";
    }
    if (p->queue_id)
        of_printf(w, "%squeue=%" PRIu32, comma, p->queue_id), comma = " ";
    if (p->reason)
        of_printf(w, "%sreason=%s", comma, p->reason);
}

void
packet_print_time(struct of_wr *w, uint64_t ns)
{
    time_t s = (time_t)(ns / 1000000000);
    struct tm tm;
    char text[16] = "";
    if (localtime_r(&s, &tm))
        strftime(text, sizeof text, "%H:%M:%S", &tm);
    of_printf(w, "%s.%06u", text, (unsigned)(ns % 1000000000 / 1000));
}
