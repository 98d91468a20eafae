/* SPDX-License-Identifier: Apache-2.0 */
#include <oflib/codec.h>
#include <oflib/state.h>

#include <errno.h>
#include <stdio.h>

void
of_state_mark_encode(struct of_wr *w, const struct of_state_mark *mark)
{
    of_wr8(w, OFP_VERSION);
    of_wr8(w, OFPT_EXPERIMENTER);
    of_wr16(w, OF_STATE_MARK_LEN);
    of_wr32(w, 0);
    of_wr32(w, OFP_QOS_EXPERIMENTER);
    of_wr32(w, OFP_EXP_STATE_MARK);
    of_wr16(w, mark->is_end);
    of_wr16(w, OF_STATE_VERSION);
    of_wr32(w, mark->count);
    of_wr64(w, mark->datapath_id);
    of_wr64(w, mark->time);
}

static bool
is_ours(const uint8_t *p, size_t n, uint32_t exp_type)
{
    return n >= 16 && p[1] == OFPT_EXPERIMENTER && of_get32(p + 8) == OFP_QOS_EXPERIMENTER &&
           of_get32(p + 12) == exp_type;
}

static bool
decode_mark(const uint8_t *p, size_t n, struct of_state_mark *out)
{
    if (n < OF_STATE_MARK_LEN || p[0] != OFP_VERSION || of_get16(p + 2) != OF_STATE_MARK_LEN ||
        !is_ours(p, n, OFP_EXP_STATE_MARK))
        return false;
    *out = (struct of_state_mark){.is_end = of_get16(p + 16),
                                  .count = of_get32(p + 20),
                                  .datapath_id = of_get64(p + 24),
                                  .time = of_get64(p + 32)};
    return out->is_end <= 1;
}

/* What a state may contain. */
static bool
belongs(struct of_bytes m)
{
    switch (m.p[1]) {
    case OFPT_METER_MOD:
    case OFPT_GROUP_MOD:
    case OFPT_FLOW_MOD:
    case OFPT_PORT_MOD: return m.p[0] == OFP_VERSION;
    default: return m.p[0] == OFP_VERSION && is_ours(m.p, m.n, OFP_QOS_EXP_REQUEST);
    }
}

static int
refuse(char *why, size_t n, const char *text)
{
    snprintf(why, n, "%s", text);
    return -EINVAL;
}

int
of_state_check(struct of_bytes state, struct of_state_mark *out, char *why, size_t n)
{
    struct of_state_mark end;
    uint32_t count = 0;
    if (state.n && state.p[0] != OFP_VERSION && state.p[0] >= ' ' && state.p[0] <= '~')
        return refuse(
            why, n,
            "it has commands, which dpctl restore reads; for here write it with dpctl save "
            "FILE format=bytes");
    if (!decode_mark(state.p, state.n, out) || out->is_end)
        return refuse(why, n,
                      "it is not a state that dpctl save or ofdatapath --state has written");
    if (of_get16(state.p + 18) != OF_STATE_VERSION) {
        snprintf(why, n, "its format is version %u; this program reads version %u",
                 of_get16(state.p + 18), OF_STATE_VERSION);
        return -EINVAL;
    }
    for (size_t at = OF_STATE_MARK_LEN; at < state.n; count++) {
        size_t left = state.n - at;
        struct of_bytes m = {state.p + at, left < 4 ? 0 : of_get16(state.p + at + 2)};
        if (m.n < OFP_HEADER_LEN || m.n > left)
            break;
        if (decode_mark(m.p, left, &end) && end.is_end) {
            if (m.n != left)
                return refuse(why, n, "something follows its end");
            out->count = count;
            return end.count == count ? 0 : refuse(why, n, "messages are missing in it");
        }
        if (!belongs(m)) {
            snprintf(why, n, "its message %u, at byte %zu, does not belong in a state", count + 1,
                     at);
            return -EINVAL;
        }
        at += m.n;
    }
    return refuse(why, n, "its end is missing: was it copied or written as a whole?");
}

bool
of_state_next(struct of_bytes state, size_t *at, struct of_bytes *message)
{
    if (!*at)
        *at = OF_STATE_MARK_LEN;
    if (state.n - *at <= OF_STATE_MARK_LEN)
        return false;
    *message = (struct of_bytes){state.p + *at, of_get16(state.p + *at + 2)};
    *at += message->n;
    return true;
}
