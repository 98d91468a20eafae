/* SPDX-License-Identifier: Apache-2.0 */
/* Printing and parsing: whatever message can be decoded can be printed, as text and as JSON; the
 * text of its match, actions and instructions parses, and to the same; and no text crashes the
 * parsers. */
#include "structure.h"

#include <oflib/text.h>

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

const struct fuzz_format fuzz_format = FUZZ_OPENFLOW(0);

static struct of_arena arena;
static struct of_parse parse;

static void
broken(const char *what, const struct of_wr *w)
{
    fprintf(stderr, "%s: %s (%.*s)\n", what, parse.why, (int)w->len, (const char *)w->buf);
    abort();
}

static void
check_match(const struct of_match *m)
{
    struct of_wr w = of_wr_grow(1 << 20);
    struct of_match again;
    of_print_match(&w, m);
    of_wr8(&w, 0);
    if (of_parse_match(&parse, (const char *)w.buf, &again) || again.n != m->n)
        broken("match", &w);
    for (uint32_t i = 0; i < m->n; i++) { /* sorted by field now */
        const struct of_oxm *o = of_match_find(&again, (enum oxm_field)m->v[i].row->field);
        if (!o || o->has_mask != m->v[i].has_mask ||
            memcmp(o->value, m->v[i].value, o->row->bytes) ||
            memcmp(o->mask, m->v[i].mask, o->row->bytes))
            broken("match changed", &w);
    }
    of_wr_free(&w);
}

/* Both lists encode to the same bytes. */
static void
same_list(const struct of_list_row *row, const struct of_list *a, const struct of_list *b,
          const struct of_wr *text)
{
    struct of_wr x = of_wr_grow(1 << 20), y = of_wr_grow(1 << 20);
    of_encode_list(&x, row, a);
    of_encode_list(&y, row, b);
    if (x.len != y.len || (x.len && memcmp(x.buf, y.buf, x.len)))
        broken("list changed", text);
    of_wr_free(&x);
    of_wr_free(&y);
}

static void
check_actions(const struct of_list *list)
{
    struct of_wr w = of_wr_grow(1 << 20);
    struct of_list again;
    of_print_list(&w, &of_list_actions, list);
    of_wr8(&w, 0);
    if (of_parse_actions(&parse, (const char *)w.buf, &again))
        broken("actions", &w);
    same_list(&of_list_actions, list, &again, &w);
    of_wr_free(&w);
}

static void
check_instructions(const struct of_list *list)
{
    struct of_wr w = of_wr_grow(1 << 20);
    struct of_list again = {0};
    char *save;
    of_print_list(&w, &of_list_instructions, list);
    of_wr8(&w, 0);
    for (char *word = strtok_r((char *)w.buf, " ", &save); word; word = strtok_r(NULL, " ", &save))
        if (!of_is_instruction(word) || of_parse_instruction(&parse, word, &again))
            broken("instructions", &w);
    if (list->n)
        same_list(&of_list_instructions, list, &again, &w);
    of_wr_free(&w);
}

static void
check_message(struct of_bytes raw)
{
    struct of_msg m;
    struct of_wr w = of_wr_grow(1 << 24);
    if (!of_decode(raw, &arena, &m)) {
        of_print_msg(&w, &m);
        of_json_msg(&w, &m);
        if (m.type == OFPT_FLOW_MOD) {
            const struct of_flow_mod *fm = m.body;
            check_match(&fm->match);
            check_instructions(&fm->instructions);
        } else if (m.type == OFPT_PACKET_OUT) {
            check_actions(&((const struct of_packet_out *)m.body)->actions);
        }
    }
    of_wr_free(&w);
}

/* A name that is known is no other one; a number is what its text comes to. */
static void
check_word(char *word, size_t n)
{
    uint64_t number;
    char again[32];
    of_is_action(word, n);
    of_is_match_field(word, n);
    if (of_parse_number(&parse, "number", word, &of_fmt_DEC, 32, &number))
        return;
    snprintf(again, sizeof again, "%llu", (unsigned long long)number);
    uint64_t same = number;
    if (of_parse_number(&parse, "number", again, &of_fmt_DEC, 32, &same) || same != number)
        abort();
}

static void
check_text(const uint8_t *data, size_t n)
{
    char *text = of_arena_alloc(&arena, n + 1);
    struct of_match m;
    struct of_list l = {0};
    struct of_flow_mod fm;
    memcpy(text, data, n);
    of_parse_match(&parse, text, &m);
    of_parse_actions(&parse, text, &l);
    of_parse_instruction(&parse, text, &l);
    of_parse_band(&parse, text, &l);
    of_parse_buckets(&parse, &text, 1, &l);
    of_parse_fields(&parse, &of_row_flow_mod, text, &fm);
    memcpy(text, data, n);
    check_word(text, n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n + 1);
    of_arena_init(&arena, 64 << 20);
    parse.arena = &arena;
    memcpy(copy, data, n);
    if (n >= OFP_HEADER_LEN) { /* a header that fits, so that most inputs get further */
        copy[0] = OFP_VERSION;
        of_set16(copy + 2, (uint16_t)n);
        check_message((struct of_bytes){copy, n});
    }
    check_text(data, n < 4096 ? n : 4096);
    of_arena_free(&arena);
    free(copy);
    return 0;
}
