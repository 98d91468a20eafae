/* SPDX-License-Identifier: Apache-2.0 */
#include "top-inside.h"

#include <core/words.h>

struct top_item *
top_add(struct top *t)
{
    struct top_item *v = words_room(t->c, t->v, t->n, &t->room, sizeof *v);
    if (!v)
        return NULL;
    t->v = v;
    v[t->n] = (struct top_item){.name = "", .detail = ""};
    return &v[t->n++];
}
