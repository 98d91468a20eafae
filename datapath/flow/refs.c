/* SPDX-License-Identifier: Apache-2.0 */
#include <flow/refs.h>

#include <shared/idmap.h>

#include <errno.h>

#define FIRST_SWEEP 1024

void
refs_init(struct refs *t)
{
    ptr_hash_init(&t->tab, id_hash_of);
    t->sweep_at = FIRST_SWEEP;
}

void
refs_free(struct refs *t)
{
    uint32_t pos = 0;
    for (void *p; (p = ptr_hash_each(&t->tab, &pos));)
        free(p);
    ptr_hash_free(&t->tab);
}

const struct id_refs *
refs_find(const struct refs *t, uint32_t id)
{
    return id_find(&t->tab, id);
}

/* Frees ids without references, so that memory follows those in use. */
static void
sweep(struct refs *t)
{
    uint32_t pos = 0;
    for (struct id_refs *r; (r = ptr_hash_each(&t->tab, &pos));) {
        if (r->flows || r->buckets || r->watchers)
            continue;
        ptr_hash_remove(&t->tab, id_hash(r->id), r);
        free(r);
    }
    t->sweep_at = t->tab.used * 2 > FIRST_SWEEP ? t->tab.used * 2 : FIRST_SWEEP;
}

struct id_refs *
refs_get(struct refs *t, uint32_t id)
{
    struct id_refs *r = id_find(&t->tab, id);
    if (r)
        return r;
    if (t->tab.used >= t->sweep_at)
        sweep(t);
    r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->id = id;
    if (ptr_hash_insert(&t->tab, id_hash(id), r)) {
        free(r);
        return NULL;
    }
    return r;
}

static void
link_use(struct id_refs *r, struct flow *f, struct flow_use *use)
{
    *use = (struct flow_use){.next = r->users, .at = &r->users, .flow = f};
    if (r->users)
        r->users->at = &use->next;
    r->users = use;
    r->flows++;
}

static void
unlink_use(struct id_refs *r, struct flow_use *use)
{
    *use->at = use->next;
    if (use->next)
        use->next->at = use->at;
    use->at = NULL;
    r->flows--;
}

void
refs_flow(struct refs *t, uint32_t id, struct flow *f, struct flow_use *use, int delta)
{
    struct id_refs *r = refs_get(t, id);
    if (r && delta > 0)
        link_use(r, f, use);
    else if (r && use->at) /* it is on no list if there was no memory for the id */
        unlink_use(r, use);
}

int
refs_remove_users(const struct refs *t, uint32_t id, uint32_t *most,
                  int (*remove)(void *ctx, struct flow *f), void *ctx)
{
    const struct id_refs *r;
    int err = 0;
    while (!err && (r = refs_find(t, id)) && r->users) {
        if (!*most)
            return -EAGAIN;
        --*most;
        err = remove(ctx, r->users->flow);
    }
    return err;
}
