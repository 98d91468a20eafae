/* SPDX-License-Identifier: Apache-2.0 */
/* Completion: whatever is typed, each way to go on keeps what is kept of the word, and is short. */
#include <oflib/complete.h>
#include <oflib/messages.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
offer(void *ctx, size_t keep, const char *text, const char *help)
{
    if (keep > strlen(ctx) || strlen(text) > 80)
        abort();
}

static void
number(void *ctx, size_t keep, const struct of_fmt *fmt)
{
    if (keep > strlen(ctx) || !fmt)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct of_struct_row *const rows[] = {
        &of_row_flow_mod, &of_row_group_mod, &of_row_meter_mod, &of_row_packet_out, &of_row_async};
    char *word = malloc(n + 1);
    if (!word)
        return 0;
    if (n)
        memcpy(word, data, n);
    word[n] = '\0';
    struct of_complete k = {.word = word, .ctx = word, .offer = offer, .number = number};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        of_complete_row(&k, rows[i]);
    free(word);
    return 0;
}
