/* SPDX-License-Identifier: Apache-2.0 */
#include <table/action-set.h>

#include <stdlib.h>
#include <string.h>

/* 5.10; the fields to set come where SET_FIELD stands, with the other setters beside them. */
static const uint8_t order[] = {
    OFPAT_COPY_TTL_IN,  OFPAT_POP_VLAN,   OFPAT_POP_MPLS,     OFPAT_POP_PBB,
    OFPAT_PUSH_MPLS,    OFPAT_PUSH_PBB,   OFPAT_PUSH_VLAN,    OFPAT_COPY_TTL_OUT,
    OFPAT_DEC_MPLS_TTL, OFPAT_DEC_NW_TTL, OFPAT_SET_MPLS_TTL, OFPAT_SET_NW_TTL,
    OFPAT_SET_FIELD,    OFPAT_SET_QUEUE,  OFPAT_GROUP,        OFPAT_OUTPUT,
};

void
action_set_write(struct action_set *s, struct act_list l)
{
    ACTS_EACH(a, l) {
        if (a->op == OFPAT_SET_FIELD) {
            s->fields |= UINT64_C(1) << a->extra;
            s->field[a->extra] = a;
        } else {
            s->present |= 1u << a->op;
            s->slot[a->op] = a;
        }
    }
}

unsigned
action_set_order(const struct action_set *s, const struct act **out)
{
    unsigned n = 0;
    for (size_t i = 0; i < sizeof order; i++) {
        uint8_t op = order[i];
        if (op == OFPAT_SET_FIELD)
            for (uint64_t f = s->fields; f; f &= f - 1)
                out[n++] = s->field[__builtin_ctzll(f)];
        else if (s->present >> op & 1 && !(op == OFPAT_OUTPUT && s->present >> OFPAT_GROUP & 1))
            out[n++] = s->slot[op];
    }
    return n;
}

void
action_set_sort(struct program *p)
{
    struct action_set s;
    const struct act *sorted[ACTION_OPS + OXM_N];
    action_set_clear(&s);
    action_set_write(&s, program_apply(p));
    unsigned n = action_set_order(&s, sorted);
    uint64_t tmp[ACTION_OPS + OXM_N * 3], *to = tmp;
    for (unsigned i = 0; i < n; i++) {
        memcpy(to, sorted[i], sorted[i]->units * 8u);
        to += sorted[i]->units;
    }
    p->n_apply = (uint16_t)(to - tmp);
    memcpy(p->acts, tmp, p->n_apply * 8u);
}
