/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts the lists of answers, which a switch may send in any order. */
#include <core/view.h>

#include <stdlib.h>

/* The fields that each kind of element is sorted by; "-": from the highest down. */
static const struct order {
    const struct of_struct_row *row;
    const char *keys[3];
} orders[] = {
    {&of_row_flow_stats, {"table_id", "-priority", "match"}},
    {&of_row_table_stats, {"table_id"}},
    {&of_row_table_features, {"table_id"}},
    {&of_row_group_desc, {"group_id"}},
    {&of_row_group_stats, {"group_id"}},
    {&of_row_meter_config, {"meter_id"}},
    {&of_row_meter_stats, {"meter_id"}},
    {&of_row_port, {"port_no"}},
    {&of_row_port_stats, {"port_no"}},
    {&of_row_queue_stats, {"port_no", "queue_id"}},
    {&of_row_packet_queue, {"port", "queue_id"}},
};

static const struct order *sorting; /* qsort passes its comparison no argument */

static int
by_match(const struct of_match *a, const struct of_match *b)
{
    for (uint32_t i = 0; i < a->n && i < b->n; i++) {
        const struct of_oxm *x = &a->v[i], *y = &b->v[i];
        if (x->row != y->row)
            return x->row < y->row ? -1 : 1;
        int order = memcmp(x->value, y->value, x->row->bytes);
        order = order ? order : memcmp(x->mask, y->mask, x->row->bytes);
        if (order)
            return order;
    }
    return (a->n > b->n) - (a->n < b->n);
}

static int
by_field(const char *key, const void *a, const void *b)
{
    bool down = *key == '-';
    key += down;
    const struct of_field_row *f = of_field_by_name(sorting->row, key, strlen(key));
    if (f->kind == OFK_MATCH)
        return by_match((const void *)((const uint8_t *)a + f->off),
                        (const void *)((const uint8_t *)b + f->off));
    uint64_t x = of_field_number(f, a), y = of_field_number(f, b);
    return down ? (x < y) - (x > y) : (x > y) - (x < y);
}

static int
compare(const void *a, const void *b)
{
    int order = 0;
    for (size_t i = 0; i < 3 && sorting->keys[i] && !order; i++)
        order = by_field(sorting->keys[i], *(void *const *)a, *(void *const *)b);
    return order;
}

void
view_order(const struct of_msg *msg)
{
    const struct of_struct_row *row = msg->body_row;
    for (int i = 0; i < row->n_fields; i++) {
        const struct of_field_row *f = &row->fields[i];
        for (size_t k = 0; f->kind == OFK_LIST && k < sizeof orders / sizeof orders[0]; k++) {
            struct of_list *list = (void *)((uint8_t *)msg->body + f->off);
            sorting = &orders[k];
            if (f->list->elem == sorting->row && list->n)
                qsort(list->v, list->n, sizeof *list->v, compare);
        }
    }
}
