/* SPDX-License-Identifier: Apache-2.0 */
#include <packet/drop-log.h>
#include <shared/atomics.h>

#include <string.h>

#define WORDS (sizeof((struct drop_slot *)NULL)->words / sizeof(uint32_t))

/* A reader that sees a word of this sample sees the odd number before it as well: each word is
 * released, and acquired.  (Fences would do with less, but the thread sanitizer knows none.) */
static void
write_slot(struct drop_slot *slot, const struct drop_sample *s)
{
    uint32_t words[WORDS] = {0}, sequence = slot->sequence;
    memcpy(words, s, sizeof *s);
    store_relaxed(&slot->sequence, sequence + 1);
    for (size_t i = 0; i < WORDS; i++)
        store_release(&slot->words[i], words[i]);
    sequence += 2;
    store_release(&slot->sequence, sequence ? sequence : 2);
}

void
drop_log_add(struct drop_log *l, enum drop_reason why, const struct packet_at *at,
             const struct packet_frame *frame)
{
    if (l->seen && frame->data)
        l->seen(l->ctx, why, at, frame);
    if (l->now < l->next[why])
        return;
    l->next[why] = l->now + DROP_SAMPLE_NS;
    struct drop_sample s = {
        .at = *at, .time = l->now, .len = frame->len, .segments = frame->segments};
    if (frame->data) {
        s.n = frame->len < sizeof s.data ? frame->len : (uint32_t)sizeof s.data;
        memcpy(s.data, frame->data, s.n);
    }
    write_slot(&l->slot[why][l->n[why]++ % DROP_SAMPLES], &s);
}

bool
drop_log_read(const struct drop_log *l, enum drop_reason why, unsigned i, struct drop_sample *out)
{
    const struct drop_slot *slot = &l->slot[why][i];
    uint32_t words[WORDS], sequence = load_acquire(&slot->sequence);
    if (!sequence || sequence & 1)
        return false;
    for (size_t k = 0; k < WORDS; k++)
        words[k] = load_acquire(&slot->words[k]);
    if (load_relaxed(&slot->sequence) != sequence)
        return false;
    memcpy(out, words, sizeof *out);
    return true;
}
