/* SPDX-License-Identifier: Apache-2.0 */
/* What the watched copy of the pipeline (pipeline-inside.h) tells a trace, when it happens.  The
 * functions are in trace-*.c.  They change nothing of the step or of its packet, but watch_meter,
 * which remarks it. */
#ifndef DATAPLANE_PIPELINE_WATCH_H
#define DATAPLANE_PIPELINE_WATCH_H

#include <dataplane/dp.h>
#include <flow/action-set.h>

struct step;

/* The trace holds no more: go on no further than needed. */
bool watch_full(const struct step *s);

void watch_standalone(const struct step *s);
void watch_table(const struct step *s, uint8_t id, const struct flow *f); /* f NULL: no match */
/* What the meter would do now: 0 or EDIT_DROP(meter).  Takes nothing out of it. */
int watch_meter(const struct step *s, const struct meter *m);
void watch_written(const struct step *s, const struct program *prog, const struct action_set *set);
void watch_metadata(const struct step *s, const struct program *prog);

/* The action set is carried out: n actions in this order. */
void watch_action_set(const struct step *s, const struct act *const v[], unsigned n);
void watch_action(const struct step *s, const struct act *a); /* before it */
void watch_acted(const struct step *s, const struct act *a);  /* behind it */

void watch_group(const struct step *s, uint32_t id, const struct group *g); /* NULL: none */
/* Which bucket a group that is not OFPGT_ALL takes; b NULL: none. */
void watch_chosen(const struct step *s, const struct group *g, const struct bucket *b);
void watch_bucket(const struct step *s, const struct group *g, const struct bucket *b);
void watch_no_more_buckets(const struct step *s, const struct group *g, const struct bucket *b);

void watch_flood(const struct step *s, uint32_t without); /* as flood() */
/* A packet may meet NORMAL again, which knows then what the first one has learnt. */
void watch_learn(const struct step *s, uint16_t vid);
uint16_t watch_find(const struct step *s, uint16_t vid, uint32_t now);
void watch_normal(const struct step *s, uint16_t vid, const struct port *to); /* NULL: floods */
void watch_port(const struct step *s, struct port *port);                     /* NULL: none */
void watch_no_packet_in(const struct step *s);
/* A packet-in, or one of a super-packet's, which is padded with zeros. */
void watch_packet_in(const struct step *s, const uint8_t *data, uint32_t len, uint32_t padding,
                     uint16_t max_len);
void watch_drop(const struct step *s, enum drop_reason why);

#endif
