/* SPDX-License-Identifier: Apache-2.0 */
/* A profile of any text: never crashes; what is refused is refused with a sentence. */
#include <qos/profile/profile.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LINES_MAX 512

static void
hear(void *ctx, const char *file, unsigned line, const char *text)
{
    if (!*text || line > LINES_MAX)
        abort();
}

struct told {
    size_t lines;
    unsigned n;
};

static void
hear_mistake(void *ctx, enum qos_profile_fault fault, unsigned line, const char *text)
{
    struct told *told = ctx;
    if (!*text || line > told->lines)
        abort();
    told->n++;
}

static int
read_profile(struct of_parse *p, const char *const *lines, size_t n, struct qos_profile *out)
{
    struct qos_profile_text text = {.file = "fuzz.qos", .lines = lines, .n_lines = n};
    struct told told = {n, 0};
    struct qos_profile_report report = {.mistake = hear_mistake, .warn = hear, .ctx = &told};
    int err = qos_profile_read(p, &text, out, &report);
    if ((err == -EINVAL) != (told.n > 0) || told.n > QOS_PROFILE_MISTAKES)
        abort();
    return err;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct of_arena arena;
    struct qos_profile profile;
    const char *lines[LINES_MAX];
    size_t n = 0;
    char *copy = malloc(size + 1), *rest = copy;
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    copy[size] = '\0';
    for (char *line; n < LINES_MAX && (line = strsep(&rest, "\n"));)
        lines[n++] = line;
    of_arena_init(&arena, 64u << 20);
    struct of_parse p = {.arena = &arena};
    if (!read_profile(&p, lines, n, &profile))
        for (int dir = 0; dir < 2; dir++)
            for (size_t i = 0; i < profile.part[dir].n; i++)
                if (!profile.part[dir].line[i] || profile.part[dir].line[i] > n)
                    abort();
    of_arena_free(&arena);
    free(copy);
    return 0;
}
