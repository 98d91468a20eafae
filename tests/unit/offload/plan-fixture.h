/* SPDX-License-Identifier: Apache-2.0 */
/* A switch whose flows, groups and meters are set in dpctl's words, and the plan of one packet in it. */
#ifndef PLAN_FIXTURE_H
#define PLAN_FIXTURE_H

#include "../pipeline/fixture.h"

#include <megaflow/plan.h>

extern struct fixture *fx;
extern struct offload_plan plan;  /* the last one */
extern const struct meter *asked; /* the last one that asked for a place */
extern int place;                 /* what it gets */

int plan_setup(void **state);
int plan_teardown(void **state);
#define PLAN_TEST(name) cmocka_unit_test_setup_teardown(test_##name, plan_setup, plan_teardown)

/* One flow in the table; instructions are separated by blanks. */
void flow(uint8_t table, const char *match, const char *instructions);
void table_miss(uint8_t table, const char *instructions);
/* Buckets in words, as dpctl has them. */
void group(uint8_t type, uint32_t id, const char *buckets);
void change_meter(const char *bands);

enum { UNTAGGED = 0, TAGGED = OFPVID_PRESENT | 7 };

/* 02:..:02 <- 02:..:01, from 10.0.0.1:7 to 10.0.0.2:8, or of IPv6 */
struct flow_key key_of(uint16_t type, uint8_t proto, uint16_t vid);
struct flow_key udp(void);

enum offload_reason plan_of(const struct flow_key *k);
enum offload_reason plan_at(const struct flow_key *k, enum offload_stage stage);
void assert_planned(struct flow_key k);
#define assert_refused(key, name)                                                                  \
    do {                                                                                           \
        struct flow_key k_ = key;                                                                  \
        assert_string_equal(offload_reason_name[plan_of(&k_)], #name);                             \
    } while (0)
void assert_op(unsigned i, uint32_t kind, uint32_t arg, uint64_t value);
void assert_output(unsigned i, uint32_t port);
/* The bits of the rule's mask as a key's. */
struct flow_key mask_of(void);
uint64_t bytes(const void *p, size_t n); /* as a number */

#endif
