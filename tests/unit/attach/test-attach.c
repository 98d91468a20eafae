/* SPDX-License-Identifier: Apache-2.0 */
/* Ports come and go without memory: what workers read is never freed. */
#include <megaflow/megaflow.h>
#include <megaflow/wire.h>
#include <ports/ports.h>
#include <queues/latency.h>
#include <switch/switch.h>

#include <shared/rcu.h>

#include "liveness.h"
#include "port-attach.h"
#include "port-owner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PORTS 5

static struct sw *sw;
static int allocations_left = -1; /* then there is no more memory; -1: always */

/* ------------------------------------------------------------------ memory that runs out */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);

static bool
out_of_memory(void)
{
    if (allocations_left > 0)
        allocations_left--;
    else if (!allocations_left)
        return true;
    return false;
}

void *
__wrap_malloc(size_t n)
{
    return out_of_memory() ? NULL : __real_malloc(n);
}

void *
__wrap_calloc(size_t n, size_t size)
{
    return out_of_memory() ? NULL : __real_calloc(n, size);
}

/* ------------------------------------------------------------------ ports without interfaces */

struct port {
    uint32_t no;
    bool up;
};

int
port_open(const struct port_config *c, struct port **out, char *why, size_t why_len)
{
    *out = __real_calloc(1, sizeof **out);
    (*out)->no = c->port_no;
    return 0;
}

/* No worker may find it any more. */
void
port_close(struct port *p)
{
    for (uint32_t i = 0; sw->dp.ports && i < sw->dp.ports->n; i++)
        assert_ptr_not_equal(sw->dp.ports->v[i], p);
    assert_ptr_not_equal(dp_port(&sw->dp, p->no), p);
    free(p);
}

void
port_set_flags(struct port *p, uint32_t ofppc_config, bool link_down)
{
    p->up = !link_down && !(ofppc_config & OFPPC_PORT_DOWN);
}

void
port_set_config(struct port *p, uint32_t ofppc_config)
{
}

int
sw_port_own(struct sw *of, struct sw_port *p, const struct qos_link_info *link, char *why,
            size_t why_len)
{
    return 0;
}

void
sw_port_disown(struct sw_port *p)
{
}

void
sw_latency_forget_port(struct sw *of, uint32_t port_no)
{
}

void
sw_liveness_add(struct sw *of, const struct sw_port *p)
{
    p->port->up = p->link.flags & IFF_UP && p->link.flags & IFF_RUNNING;
}

void
sw_liveness_del(struct sw *of, const struct sw_port *p)
{
}

void
sw_liveness_sync(struct sw *of)
{
}

void
port_set_mtu(struct port *p, uint32_t mtu)
{
}

void
port_read_counters(const struct port *p, struct port_counters *out)
{
    *out = (struct port_counters){0};
}

void
port_counters_add(struct port_counters *sum, const struct port_counters *n)
{
}

void
port_shaper_read_counters(const struct port_shaper *s, struct port_counters *out)
{
    *out = (struct port_counters){0};
}

uint32_t
port_config_bits(const struct port *p)
{
    return 0;
}

bool
sw_offload_is_for(const struct sw *of, const char *name)
{
    return false;
}

bool
sw_wire_has(const struct sw *of, const char *name)
{
    return false;
}

void
sw_offload_port_add(struct sw *of, struct sw_port *p)
{
}

void
sw_offload_port_del(struct sw *of, struct sw_port *p)
{
}

void
sw_offload_shaper_del(struct sw *of, struct sw_port *p)
{
}

void
sw_offload_shaper_add(struct sw *of, struct sw_port *p)
{
}

void
sw_offload_settle(struct sw *of)
{
}

void
sw_offload_forget_port(struct sw *of, uint32_t no)
{
}

bool
port_is_up(const struct port *p)
{
    return p->up;
}

void
port_watch(struct port *p, bool on)
{
}

struct port_shaper *
port_shaper_take(struct port *p)
{
    return NULL;
}

void
port_shaper_close(struct port_shaper *s)
{
}

int
port_shaper_open(struct port *p, const char *to, const char *from, char *why, size_t why_len)
{
    return -1;
}

int
qos_link_get_stats(struct qos_link *l, int ifindex, struct qos_link_stats *out)
{
    return 0;
}

int
qos_link_get_by_name(struct qos_link *l, const char *name, struct qos_link_info *out)
{
    *out = (struct qos_link_info){.ifindex = 1, .flags = IFF_UP | IFF_RUNNING};
    return 0;
}

int
qos_link_get_by_index(struct qos_link *l, int ifindex, struct qos_link_info *out)
{
    return qos_link_get_by_name(l, "", out);
}

int
qos_link_set_flag(struct qos_link *l, int ifindex, unsigned flag, bool on)
{
    return 0;
}

void
channel_async(struct channel *c, enum async_kind kind, uint8_t reason, uint8_t type,
              const void *body)
{
}

void
worker_wake_all(struct dp *dp)
{
}

/* ------------------------------------------------------------------ tests */

static int
setup(void **state)
{
    sw = calloc(1, sizeof *sw);
    sw->dp.normal = normal_new();
    sw->n_ports = PORTS;
    for (uint32_t no = 1; no <= PORTS; no++) {
        sw->ports[no] = calloc(1, sizeof *sw->ports[no]);
        sw->ports[no]->no = no;
    }
    return 0;
}

static int
teardown(void **state)
{
    allocations_left = -1;
    rcu_wait();
    for (uint32_t no = 1; no <= PORTS; no++) {
        sw_port_detach(sw, sw->ports[no]);
        free(sw->ports[no]);
        sw->ports[no] = NULL;
    }
    rcu_wait();
    free(sw->dp.ports);
    free(sw->spare_list);
    normal_free(sw->dp.normal);
    free(sw);
    return 0;
}

static int
attach(uint32_t no)
{
    char why[200];
    return sw_port_attach(sw, sw->ports[no], why, sizeof why);
}

/* What workers see are the ports that are attached. */
static void
check(unsigned n)
{
    assert_int_equal(sw->dp.ports ? sw->dp.ports->n : 0, n);
    for (uint32_t no = 1; no <= PORTS; no++)
        assert_ptr_equal(dp_port(&sw->dp, no), sw->ports[no]->port);
}

static void
test_detach_without_memory(void **state)
{
    for (uint32_t no = 1; no <= PORTS; no++)
        assert_int_equal(attach(no), 0);
    check(PORTS);
    allocations_left = 0;
    for (uint32_t no = 1; no <= PORTS; no++) {
        sw_port_detach(sw, sw->ports[no]);
        assert_null(sw->ports[no]->port);
        check(PORTS - no);
    }
}

static void
test_attach_without_memory(void **state)
{
    assert_int_equal(attach(1), 0);
    for (int left = 0; left < 2; left++) {
        allocations_left = left;
        assert_int_equal(attach(2), -ENOMEM);
        assert_null(sw->ports[2]->port);
        check(1);
        sw_port_detach(sw, sw->ports[1]); /* the room for that is still there */
        check(0);
        allocations_left = -1;
        assert_int_equal(attach(1), 0);
    }
    assert_int_equal(attach(2), 0);
    check(2);
}

/* A port's stations are forgotten when it goes; when its link does is the liveness thread's business. */
static void
test_stations_are_forgotten(void **state)
{
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1}, other[6] = {2, 0, 0, 0, 0, 2};
    assert_int_equal(attach(1), 0);
    assert_int_equal(attach(2), 0);
    normal_learn(sw->dp.normal, other, 0, 2, 10);
    normal_learn(sw->dp.normal, mac, 0, 1, 10);
    sw_port_apply_flags(sw, sw->ports[1]); /* nothing has changed */
    assert_int_equal(normal_find(sw->dp.normal, mac, 0, 10), 1);
    sw_port_detach(sw, sw->ports[1]);
    assert_int_equal(normal_find(sw->dp.normal, mac, 0, 10), 0);
    assert_int_equal(normal_find(sw->dp.normal, other, 0, 10), 2);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(detach_without_memory),
        TEST(attach_without_memory),
        TEST(stations_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
