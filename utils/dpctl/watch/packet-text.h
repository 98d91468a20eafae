/* SPDX-License-Identifier: Apache-2.0 */
/* What why-dropped and capture share: the reasons of drops, and a packet on a line. */
#ifndef DPCTL_WATCH_PACKET_TEXT_H
#define DPCTL_WATCH_PACKET_TEXT_H

#include <core/context.h>

/* DROPS: a list of struct of_drop in the arena. */
enum status packet_drops_ask(struct ctx *c, struct of_list *out);
enum status packet_drops_find(struct ctx *c, const struct of_list *drops, const char *name,
                              const struct of_drop **out);
bool packet_drops_is(const struct of_list *drops, const char *name); /* is it one's name? */
/* NULL: the switch has no such reason. */
const struct of_drop *packet_drops_row(const struct of_list *drops, uint32_t reason);

/* Where a packet was on its way; reason NULL: it was not dropped.  "in_port=1 table=0 cookie=0x7" */
struct packet_place {
    uint64_t cookie;
    uint32_t in_port, out_port, queue_id;
    uint8_t table_id;
    const char *reason;
};
void packet_print_place(struct of_wr *w, const struct packet_place *p);

/* "12:34:56.789012", in local time; ns since 1970 */
void packet_print_time(struct of_wr *w, uint64_t ns);

#endif
