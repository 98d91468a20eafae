/* SPDX-License-Identifier: Apache-2.0 */
#include <switch/offload-plan.h>

#define NAME(name, text) [OFFLOAD_WHY_##name] = #name,
const char *const offload_reason_name[OFFLOAD_REASON_N] = {"offloaded", OFFLOAD_REASONS(NAME)};
#define TEXT(name, text) [OFFLOAD_WHY_##name] = text,
const char *const offload_reason_text[OFFLOAD_REASON_N] = {"handled in the kernel",
                                                           OFFLOAD_REASONS(TEXT)};

bool
offload_meter_fits(const struct meter *m)
{
    for (uint32_t i = 0; i < m->n_bands; i++)
        if (m->bands[i].type != OFPMBT_DROP)
            return false;
    return m->n_bands <= OFFLOAD_BANDS;
}

enum offload_reason
offload_plan_make(struct dp *dp, const struct flow_key *key, const struct offload_meters *meters,
                  struct offload_plan *out)
{
    return OFFLOAD_WHY_kind; /* until it is written */
}
