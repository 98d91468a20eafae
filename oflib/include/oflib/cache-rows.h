/* SPDX-License-Identifier: Apache-2.0 */
/* The structures of STATS_CACHE (docs/reference/extensions.md), as messages.h has all others. */
#ifndef OFLIB_CACHE_ROWS_H
#define OFLIB_CACHE_ROWS_H

/* What follows exp_type in the request. */
#define OF_F_cache_request(F, S) F(S, u32, port_no, PORT) F(S, u32, most, DEC)

/* What follows it in the reply. */
#define OF_F_cache_reply(F, S) F(S, list, parts, cache_parts)

#define OFP_CACHE_REASON_LEN 32
#define OFP_CACHE_TEXT_LEN   96
#define OFP_CACHE_WHY_LEN    160

#define OF_F_cache_entry(F, S)                                                                     \
    F(S, u32, in_port, PORT)                                                                       \
    F(S, u64, packets, DEC)                                                                        \
    F(S, u64, bytes, DEC)                                                                          \
    F(S, u64, frames, DEC)                                                                         \
    F(S, u64, dropped, DEC)                                                                        \
    F(S, u64, dropped_bytes, DEC)                                                                  \
    F(S, u64, age_ns, DEC)                                                                         \
    F(S, u64, idle_ns, DEC)                                                                        \
    F(S, u32, meter_id, METER)                                                                     \
    F(S, pad, _0, 4)                                                                               \
    F(S, match, match, any)                                                                        \
    F(S, list, actions, actions)

#define OF_F_cache_refused(F, S)                                                                   \
    F(S, u32, in_port, PORT) F(S, str, reason, OFP_CACHE_REASON_LEN) F(S, match, match, any)

#define OF_F_cache_reason(F, S)                                                                    \
    F(S, pad, _0, 4)                                                                               \
    F(S, u64, requests, DEC)                                                                       \
    F(S, str, reason, OFP_CACHE_REASON_LEN)                                                        \
    F(S, str, text, OFP_CACHE_TEXT_LEN)

/* reason "": the kernel handles the port's packets. */
#define OF_F_cache_port(F, S)                                                                      \
    F(S, u32, port_no, PORT)                                                                       \
    F(S, str, reason, OFP_CACHE_REASON_LEN)                                                        \
    F(S, str, text, OFP_CACHE_TEXT_LEN)

#define OF_F_cache_worker(F, S)                                                                    \
    F(S, u32, worker, DEC)                                                                         \
    F(S, u64, packets, DEC)                                                                        \
    F(S, u64, hits, DEC)                                                                           \
    F(S, u64, misses, DEC)                                                                         \
    F(S, u64, bypassed, DEC)                                                                       \
    F(S, u64, withdrawn, DEC)                                                                      \
    F(S, u32, masks, DEC)                                                                          \
    F(S, u32, used, DEC)                                                                           \
    F(S, u32, entries, DEC)                                                                        \
    F(S, pad, _0, 4)

/* reason "": the kernel handles packets. */
#define OF_F_cache_kernel(F, S)                                                                    \
    F(S, u32, entries, DEC)                                                                        \
    F(S, u32, most, DEC)                                                                           \
    F(S, u32, masks, DEC)                                                                          \
    F(S, u32, left_out, DEC)                                                                       \
    F(S, pad, _0, 4)                                                                               \
    F(S, u64, hits, DEC)                                                                           \
    F(S, u64, misses, DEC)                                                                         \
    F(S, u64, other, DEC)                                                                          \
    F(S, u64, held, DEC)                                                                           \
    F(S, u64, too_long, DEC)                                                                       \
    F(S, u64, host, DEC)                                                                           \
    F(S, u64, unclaimed, DEC)                                                                      \
    F(S, u64, no_verdict, DEC)                                                                     \
    F(S, u64, failed, DEC)                                                                         \
    F(S, u64, asked, DEC)                                                                          \
    F(S, u64, inserted, DEC)                                                                       \
    F(S, u64, withdrawn, DEC)                                                                      \
    F(S, u64, aged, DEC)                                                                           \
    F(S, u64, all, DEC)                                                                            \
    F(S, u64, mended, DEC)                                                                         \
    F(S, str, reason, OFP_CACHE_REASON_LEN)                                                        \
    F(S, str, text, OFP_CACHE_WHY_LEN)

/* clang-format off */
#define OF_CACHE_STRUCTS(STRUCT, TAG)                                                              \
    STRUCT(cache_request) STRUCT(cache_reply) TAG(cache_entry) TAG(cache_refused)                  \
    TAG(cache_reason) TAG(cache_port) TAG(cache_worker) TAG(cache_kernel)
/* clang-format on */

#endif
