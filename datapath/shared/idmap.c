/* SPDX-License-Identifier: Apache-2.0 */
#include <shared/idmap.h>

#include <errno.h>

void
idmap_init(struct idmap *m, const struct idmap_ops *ops, void *owner)
{
    *m = (struct idmap){.ops = ops, .owner = owner};
    ptr_hash_init(&m->tab, id_hash_of);
}

void
idmap_free(struct idmap *m)
{
    uint32_t pos = 0;
    for (void *o; (o = ptr_hash_each(&m->tab, &pos));)
        m->ops->free(o);
    ptr_hash_free(&m->tab);
}

void *
idmap_seen(struct idmap_object *o, uint8_t mark)
{
    if (change_set_after(mark))
        return mark & CHANGE_SET_OLD ? NULL : o;
    while (o && change_set_mark_of(&o->mark) & CHANGE_SET_NEW)
        o = o->before;
    return o;
}

void *
idmap_each(const struct idmap *m, uint32_t *pos)
{
    struct idmap_object *o;
    while ((o = ptr_hash_each(&m->tab, pos)) && !change_set_sees(o->mark))
        continue;
    return o;
}

/* Called by whatever changes the map. */
static void
refer(struct idmap *m, void *o, int delta)
{
    m->changes++;
    if (m->ops->refer)
        m->ops->refer(m->owner, o, delta);
}

/* ------------------------------------------------------------------ adding */

static void
settle_added(void *owner, void *what, void *more, bool done)
{
    struct idmap *m = owner;
    struct idmap_object *o = what;
    if (done) {
        change_set_clear(&o->mark, CHANGE_SET_NEW);
        o->before = NULL;
        return;
    }
    refer(m, o, -1);
    if (o->before) {
        ptr_hash_replace(&m->tab, id_hash(o->id), o, o->before);
        m->leaving++;
    } else {
        ptr_hash_remove(&m->tab, id_hash(o->id), o);
    }
    rcu_defer(m->ops->free, o);
}

static int
add_noted(struct idmap *m, struct idmap_object *o)
{
    void *gone = id_find(&m->tab, o->id); /* removed by the open change set */
    if (!change_set_reserve())
        return -ENOMEM;
    o->before = gone;
    change_set_set(&o->mark, CHANGE_SET_NEW);
    if (!gone && ptr_hash_insert(&m->tab, id_hash(o->id), o))
        return -ENOMEM;
    if (gone) {
        ptr_hash_replace(&m->tab, id_hash(o->id), gone, o);
        m->leaving--;
    }
    change_set_note(settle_added, m, o, NULL);
    return 0;
}

int
idmap_add(struct idmap *m, void *what)
{
    struct idmap_object *o = what;
    int err = change_set_active() ? add_noted(m, o) : ptr_hash_insert(&m->tab, id_hash(o->id), o);
    if (!err)
        refer(m, o, 1);
    return err;
}

/* ------------------------------------------------------------------ replacing */

static void
settle_replaced(void *owner, void *what, void *more, bool done)
{
    struct idmap *m = owner;
    struct idmap_object *o = what, *old = o->before;
    if (done) {
        m->ops->inherit(o, old);
        change_set_clear(&o->mark, CHANGE_SET_NEW);
        o->before = NULL;
        rcu_defer(m->ops->free, old);
        return;
    }
    refer(m, o, -1);
    refer(m, old, 1);
    ptr_hash_replace(&m->tab, id_hash(o->id), o, old);
    rcu_defer(m->ops->free, o);
}

int
idmap_replace(struct idmap *m, void *was, void *now)
{
    struct idmap_object *o = now, *old = was;
    bool noted = change_set_active();
    if (noted && !change_set_reserve())
        return -ENOMEM;
    if (noted) {
        o->before = old;
        change_set_set(&o->mark, CHANGE_SET_NEW);
        change_set_note(settle_replaced, m, o, NULL);
    } else {
        m->ops->inherit(o, old);
    }
    ptr_hash_replace(&m->tab, id_hash(o->id), old, o);
    refer(m, o, 1);
    refer(m, old, -1);
    if (!noted)
        rcu_defer(m->ops->free, old);
    return 0;
}

/* ------------------------------------------------------------------ removing */

static void
settle_dropped(void *owner, void *what, void *more, bool done)
{
    struct idmap *m = owner;
    struct idmap_object *o = what;
    if (id_find(&m->tab, o->id) == o) /* none was added in its place */
        m->leaving--;
    if (done) {
        ptr_hash_remove(&m->tab, id_hash(o->id), o);
        rcu_defer(m->ops->free, o);
        return;
    }
    change_set_clear(&o->mark, CHANGE_SET_OLD);
    refer(m, o, 1);
}

int
idmap_drop(struct idmap *m, void *what)
{
    struct idmap_object *o = what;
    if (!change_set_active()) {
        ptr_hash_remove(&m->tab, id_hash(o->id), o);
        refer(m, o, -1);
        rcu_defer(m->ops->free, o);
        return 0;
    }
    if (!change_set_reserve())
        return -ENOMEM;
    change_set_note(settle_dropped, m, o, NULL);
    change_set_set(&o->mark, CHANGE_SET_OLD);
    m->leaving++;
    refer(m, o, -1);
    return 0;
}
