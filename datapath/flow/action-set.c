/* SPDX-License-Identifier: Apache-2.0 */
#include <flow/action-set.h>

#include <string.h>

void
action_set_write(struct action_set *s, struct act_list l)
{
    ACTS_EACH(a, l) {
        uint8_t place = action_rows[a->op].place;
        s->present |= 1u << place;
        s->slot[place] = a;
        if (a->op == OFPAT_SET_FIELD) {
            s->fields |= UINT64_C(1) << a->extra;
            s->field[a->extra] = a;
        }
    }
}

unsigned
action_set_order(const struct action_set *s, const struct act **out)
{
    unsigned n = 0;
    uint32_t left = s->present;
    if (left >> action_rows[OFPAT_GROUP].place & 1)
        left &= ~(1u << action_rows[OFPAT_OUTPUT].place);
    for (; left; left &= left - 1) {
        const struct act *a = s->slot[__builtin_ctz(left)];
        if (a->op != OFPAT_SET_FIELD)
            out[n++] = a;
        else
            for (uint64_t f = s->fields; f; f &= f - 1)
                out[n++] = s->field[__builtin_ctzll(f)];
    }
    return n;
}

void
action_set_sort(struct program *p)
{
    struct action_set s;
    const struct act *sorted[ACTION_TYPES + OXM_N];
    action_set_clear(&s);
    action_set_write(&s, program_apply(p));
    unsigned n = action_set_order(&s, sorted);
    uint64_t tmp[ACTION_TYPES + OXM_N * 3], *to = tmp;
    for (unsigned i = 0; i < n; i++) {
        memcpy(to, sorted[i], sorted[i]->units * 8u);
        to += sorted[i]->units;
    }
    p->n_apply = (uint16_t)(to - tmp);
    memcpy(p->acts, tmp, p->n_apply * 8u);
}
