/* SPDX-License-Identifier: Apache-2.0 */
#include <flow/actions.h>

#include <string.h>

void
action_body(const struct act *a, union action_body *out)
{
    *out = (union action_body){.any = {of_tag_row(&of_list_actions, a->op)}};
    const struct of_struct_row *body = out->any.row->body;
    if (body == &of_row_action_output) {
        out->output.port = a->arg;
        out->output.max_len = a->extra;
    } else if (body == &of_row_action_ttl) {
        out->ttl.ttl = (uint8_t)a->arg;
    } else if (body == &of_row_action_push) {
        out->push.ethertype = (uint16_t)a->arg;
    } else if (body == &of_row_action_set_queue) {
        out->set_queue.queue_id = a->arg;
    } else if (body == &of_row_action_group) {
        out->group.group_id = a->arg;
    } else if (body == &of_row_action_set_field) {
        struct of_oxm *o = &out->set_field.field;
        o->row = &oxm_rows[a->extra];
        memset(o->mask, 0xff, sizeof o->mask);
        memcpy(o->value, a->data, o->row->bytes);
    }
}
