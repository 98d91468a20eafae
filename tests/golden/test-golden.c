/* SPDX-License-Identifier: Apache-2.0 */
/* Each golden file (see README.md here) is decoded, and encodes to the same bytes again; its text
 * and JSON are not empty.
 *
 *   test-golden DIRECTORY [of10]    of10: they are messages of OpenFlow 1.0
 */
#include "../support/hex.h"

#include <oflib/messages10.h>
#include <oflib/text.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static bool
read_golden(const char *path, struct of_wr *out)
{
    static char text[1 << 20];
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    long len = hex_bytes(text, out->buf, out->cap);
    out->len = len < 0 ? 0 : (size_t)len;
    return len >= 0;
}

static size_t
text_len(void (*print)(struct of_wr *, const struct of_msg *), const struct of_msg *m)
{
    struct of_wr w = of_wr_grow(1 << 20);
    print(&w, m);
    size_t n = w.overflow ? 0 : w.len;
    of_wr_free(&w);
    return n;
}

/* The data of an experimenter's message that has a row, by that row; NULL, or what is wrong. */
static const char *
check_experimenter(const struct of_experimenter *m, struct of_arena *arena)
{
    static uint8_t buf[OF_MSG_MAX];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    const struct of_exp_row *row = of_exp_row(m);
    void *body;
    if (!row)
        return NULL;
    if (of_decode_struct(m->data, row->body, arena, &body) ||
        of_encode_struct(&w, row->body, body) || w.len != m->data.n)
        return "the experimenter's data don't decode and encode";
    return memcmp(buf, m->data.p, w.len) ? "the experimenter's data are encoded otherwise" : NULL;
}

/* NULL, or what is wrong. */
static const char *
check(const struct of_dialect *dialect, struct of_bytes raw, struct of_arena *arena)
{
    static uint8_t buf[OF_MSG_MAX];
    static char why[100];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    struct of_msg m;
    int err = of_decode_as(dialect, raw, arena, &m);
    if (err) {
        snprintf(why, sizeof why, "decode: %d, error type %u code %u", err, of_err_type(err),
                 of_err_code(err));
        return why;
    }
    if (of_encode(&w, &m))
        return "does not encode";
    for (size_t i = 0; i < w.len && i < raw.n; i++)
        if (buf[i] != raw.p[i]) {
            snprintf(why, sizeof why, "offset %zu: %02x, encoded %02x", i, raw.p[i], buf[i]);
            return why;
        }
    if (w.len != raw.n)
        return "encoded length differs";
    if (!text_len(of_print_msg, &m) || !text_len(of_json_msg, &m))
        return "no text";
    return m.body_row == &of_row_experimenter ? check_experimenter(m.body, arena) : NULL;
}

int
main(int argc, char **argv)
{
    static uint8_t buf[OF_MSG_MAX];
    struct of_arena arena;
    struct dirent **names;
    int failed = 0, passed = 0;
    bool of10 = argc == 3 && !strcmp(argv[2], "of10");
    int n = argc == 2 + of10 ? scandir(argv[1], &names, NULL, alphasort) : -1;
    if (n < 0) {
        fprintf(stderr, "usage: test-golden DIRECTORY [of10]\n");
        return 2;
    }
    of_arena_init(&arena, 1 << 20);
    for (int i = 0; i < n; i++) {
        char path[4096];
        size_t len = strlen(names[i]->d_name);
        if (len > 4 && !strcmp(names[i]->d_name + len - 4, ".hex")) {
            struct of_wr raw = of_wr_fixed(buf, sizeof buf);
            snprintf(path, sizeof path, "%s/%s", argv[1], names[i]->d_name);
            of_arena_reset(&arena);
            const char *why = read_golden(path, &raw)
                                  ? check(of10 ? &of_dialect_10 : &of_dialect_13,
                                          (struct of_bytes){buf, raw.len}, &arena)
                                  : "not a golden file";
            if (why)
                printf("not ok %s: %s\n", names[i]->d_name, why);
            failed += why != NULL;
            passed += !why;
        }
        free(names[i]);
    }
    free(names);
    of_arena_free(&arena);
    printf("%d files passed, %d failed\n", passed, failed);
    return failed || !passed;
}
