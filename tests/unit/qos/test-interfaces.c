/* SPDX-License-Identifier: Apache-2.0 */
/* What rtnetlink and ethtool say of interfaces: what is on top of them, shapers that are none, events, drivers that know little. */
#include "answering-rtnetlink.c"

#include "ethtool.h"

#include <oflib/openflow.h>
#include <qos-netlink/kernel.h>
#include <qos-netlink/link.h>
#include <qos-netlink/upper.h>

#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define EGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)

static int uppers_changed;

static void
upper_changed(void *ctx, int ifindex)
{
    uppers_changed += ifindex;
}

/* Interface `above` on top of `below`; a bridge's word about its port tells nothing. */
static size_t
put_upper(uint8_t *buf, int above, int below, uint8_t family)
{
    struct {
        struct ifinfomsg link;
        struct nlattr head;
        int32_t below;
    } m = {.link = {.ifi_index = above, .ifi_family = family},
           .head = {NLA_HDRLEN + sizeof m.below, IFLA_LINK},
           .below = below};
    return put(buf, RTM_NEWLINK, NLM_F_MULTI, &m, sizeof m);
}

/* An address that interface 5 accepts, a tunnel's entry, a group's. */
static size_t
put_neighbour(uint8_t *buf, uint8_t first, uint8_t flags, uint16_t type)
{
    struct {
        struct ndmsg m;
        struct nlattr head;
        uint8_t mac[6], pad[2];
        struct nlattr more_head;
        uint32_t more;
    } n = {.m = {.ndm_family = AF_BRIDGE,
                 .ndm_ifindex = 5,
                 .ndm_flags = flags,
                 .ndm_state = NUD_PERMANENT},
           .head = {NLA_HDRLEN + sizeof n.mac, NDA_LLADDR},
           .mac = {first, 2, 3, 4, 5, 6},
           .more_head = {NLA_HDRLEN + sizeof n.more, type}};
    return put(buf, RTM_NEWNEIGH, NLM_F_MULTI, &n, sizeof n);
}

static size_t
uppers_there(unsigned n, struct rtnetlink_datagram *d)
{
    size_t at = put_upper(d->buf, 7, 5, AF_UNSPEC);
    at += put_upper(d->buf + at, 8, 6, AF_BRIDGE);
    at += put_upper(d->buf + at, 9, 9, AF_UNSPEC);
    at += put(d->buf + at, RTM_NEWLINK, NLM_F_MULTI, &at, 2);
    return at + put_end(d->buf + at);
}

static size_t
events_were_lost(unsigned n, struct rtnetlink_datagram *d)
{
    d->cut = n == 0;
    return n < 2 ? put_end(d->buf) : 0;
}

static size_t
neighbours(unsigned n, struct rtnetlink_datagram *d)
{
    size_t at = put_neighbour(d->buf, 2, NTF_SELF, NDA_CACHEINFO);
    at += put_neighbour(d->buf + at, 2, NTF_SELF, NDA_DST);
    at += put_neighbour(d->buf + at, 2, NTF_MASTER, NDA_CACHEINFO);
    at += put_neighbour(d->buf + at, 1, NTF_SELF, NDA_CACHEINFO);
    at += put(d->buf + at, RTM_NEWNEIGH, NLM_F_MULTI, &at, 2);
    return at + put_end(d->buf + at);
}

static void
test_uppers(void **state)
{
    struct qos_uppers *u;
    begin(uppers_there);
    assert_int_equal(qos_uppers_open(&u, upper_changed, NULL), 0);
    assert_int_equal(qos_uppers_of(u, 5), QOS_UPPER_ANY);
    assert_int_equal(qos_uppers_of(u, 6) | qos_uppers_of(u, 9), 0);
    uppers_changed = 0;
    begin(neighbours);
    assert_int_equal(qos_uppers_hidden(u, upper_changed, NULL), 0);
    assert_int_equal(uppers_changed, 5);
    begin(events_were_lost);
    assert_int_equal(qos_uppers_read(u), 1);
    assert_int_equal(qos_uppers_of(u, 5), QOS_UPPER_ANY);
    assert_int_equal(qos_uppers_read_again(u), 0);
    assert_int_equal(qos_uppers_of(u, 5), 0);
    qos_uppers_close(u);
    qos_uppers_close(NULL);
}

/* The interfaces with the names of port 7's shaper. */
static struct named {
    int ifindex, peer;
    const char *kind;
} named[2];

static size_t
put_named(uint8_t *buf, const struct named *is)
{
    struct {
        struct ifinfomsg link;
        struct nlattr name_head;
        char name[8];
        struct nlattr peer_head;
        int32_t peer;
        struct nlattr info_head, kind_head;
        char kind[8];
    } m = {.link = {.ifi_index = is->ifindex},
           .name_head = {NLA_HDRLEN + sizeof m.name, IFLA_IFNAME},
           .name = "of-7",
           .peer_head = {NLA_HDRLEN + sizeof m.peer, IFLA_LINK},
           .peer = is->peer,
           .info_head = {2 * NLA_HDRLEN + sizeof m.kind, IFLA_LINKINFO},
           .kind_head = {NLA_HDRLEN + sizeof m.kind, IFLA_INFO_KIND}};
    snprintf(m.kind, sizeof m.kind, "%s", is->kind);
    return put(buf, RTM_NEWLINK, 0, &m, sizeof m);
}

static size_t
named_interfaces(unsigned n, struct rtnetlink_datagram *d)
{
    const struct named *is = &named[n % 2];
    return is->ifindex ? put_named(d->buf, is) : put_error(d->buf, rtnetlink_asked.seq, ENODEV);
}

/* A shaper is two interfaces that lead to each other; whatever else has their names is none. */
static void
test_what_is_no_shaper(void **state)
{
    static const struct {
        struct named is[2];
        int result;
    } cases[] = {
        {{{20, 21, "veth"}, {21, 20, "veth"}}, 0},
        {{{20, 21, "veth"}, {21, 9, "veth"}}, -ENOENT},
        {{{20, 9, "veth"}, {21, 20, "veth"}}, -ENOENT},
        {{{20, 0, "dummy"}, {21, 20, "veth"}}, -ENOENT},
        {{{20, 21, "veth"}, {0, 0, NULL}}, -ENOENT},
    };
    struct qos_kernel *k;
    assert_int_equal(qos_netlink_new(&k), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct qos_shaper s = {0};
        memcpy(named, cases[i].is, sizeof named);
        begin(named_interfaces);
        assert_int_equal(k->ops->shaper_find(k, 7, false, &s), cases[i].result);
        assert_int_equal(s.tx_ifindex, cases[i].result ? 0 : 20);
    }
    qos_netlink_free(k);
}

static unsigned events;
static struct qos_link_event last;

static void
on_event(void *ctx, const struct qos_link_event *e)
{
    events++;
    last = *e;
}

static size_t
not_the_kernels(unsigned n, struct rtnetlink_datagram *d)
{
    const struct ifinfomsg link = {.ifi_index = 7};
    d->from = 99;
    return n ? 0 : put(d->buf, RTM_DELLINK, 0, &link, sizeof link);
}

static size_t
too_short(unsigned n, struct rtnetlink_datagram *d)
{
    static const int zero;
    return n ? 0 : put(d->buf, RTM_NEWQDISC, 0, &zero, sizeof zero);
}

static void
test_events_that_are_none(void **state)
{
    struct qos_link_monitor *w;
    assert_int_equal(qos_link_monitor_open(&w, on_event, NULL), 0);
    events = 0;
    begin(not_the_kernels);
    assert_int_equal(qos_link_monitor_read(w), 0);
    assert_int_equal(events, 0);
    begin(too_short); /* whatever it was, nobody takes it for interface 0's queues */
    assert_int_equal(qos_link_monitor_read(w), 0);
    qos_link_monitor_close(w);
    qos_link_monitor_close(NULL);
}

static uint16_t event_type;
static uint32_t preference; /* of the filter that went */

static size_t
one_event(unsigned n, struct rtnetlink_datagram *d)
{
    const struct ifinfomsg link = {.ifi_index = 7};
    const struct tcmsg tc = {.tcm_ifindex = 7, .tcm_parent = EGRESS, .tcm_info = preference << 16};
    bool about_link = event_type == RTM_DELLINK;
    return n ? 0
             : put(d->buf, event_type, 0, about_link ? (const void *)&link : &tc,
                   about_link ? sizeof link : sizeof tc);
}

/* An interface, a qdisc, a filter that led packets to a tree; somebody else's filter is no matter of queues. */
static void
test_what_goes_is_told(void **state)
{
    static const struct {
        uint16_t type;
        uint32_t preference;
        unsigned told;
        enum qos_link_event_kind kind;
    } cases[] = {
        {RTM_DELLINK, 0, 1, QOS_LINK_GONE},
        {RTM_DELQDISC, 0, 1, QOS_LINK_TC},
        {RTM_DELTFILTER, 64 + QOS_TREES_MAX - 2, 1, QOS_LINK_TC},
        {RTM_DELTFILTER, 3, 0, 0},
        {RTM_NEWADDR, 0, 0, 0},
    };
    struct qos_link_monitor *w;
    assert_int_equal(qos_link_monitor_open(&w, on_event, NULL), 0);
    qos_link_monitor_ignore(w, 12345);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        event_type = cases[i].type;
        preference = cases[i].preference;
        events = 0;
        begin(one_event);
        assert_int_equal(qos_link_monitor_read(w), 0);
        assert_int_equal(events, cases[i].told);
        assert_true(!events || (last.kind == cases[i].kind && last.ifindex == 7));
    }
    qos_link_monitor_close(w);
}

/* ------------------------------------------------------------------ ethtool */

static struct ethtool_link_settings driver;
static int words; /* of the kernel's masks; 0: it does not say */

FOR_ALL int ioctl(int fd, unsigned long request, ...);

int
ioctl(int fd, unsigned long request, ...)
{
    va_list ap;
    va_start(ap, request);
    struct ifreq *ifr = va_arg(ap, struct ifreq *);
    va_end(ap);
    uint32_t cmd;
    memcpy(&cmd, ifr->ifr_data, sizeof cmd);
    struct ethtool_link_settings *s = (void *)ifr->ifr_data;
    if (cmd == ETHTOOL_GTSO && words) {
        ((struct ethtool_value *)(void *)ifr->ifr_data)->data = 1;
        return 0;
    }
    if (cmd != ETHTOOL_GLINKSETTINGS)
        return -1;
    if (s->link_mode_masks_nwords == 0) {
        s->link_mode_masks_nwords = (int8_t)-words;
        return 0;
    }
    uint32_t supported = UINT32_C(1) << ETHTOOL_LINK_MODE_1000baseT_Full_BIT |
                         UINT32_C(1) << ETHTOOL_LINK_MODE_Autoneg_BIT;
    *s = driver;
    s->link_mode_masks_nwords = (int8_t)words;
    memcpy((uint8_t *)s + sizeof *s, &supported, sizeof supported);
    return 0;
}

static void
test_what_drivers_say(void **state)
{
    struct qos_link_info info = {.name = "eth"};
    netlink_ethtool_get(-1, &info); /* nothing at all */
    assert_true(!info.speed && !info.supported && !info.curr && !info.cuts_tcp);
    words = 3;
    driver = (struct ethtool_link_settings){.speed = (uint32_t)SPEED_UNKNOWN};
    netlink_ethtool_get(-1, &info);
    assert_int_equal(info.supported, OFPPF_1GB_FD | OFPPF_AUTONEG);
    assert_int_equal(info.advertised | info.peer, 0);
    assert_true(info.cuts_tcp);
    assert_true(!info.speed && !info.curr);
    driver =
        (struct ethtool_link_settings){.speed = 10000, .duplex = DUPLEX_FULL, .port = PORT_FIBRE};
    netlink_ethtool_get(-1, &info);
    assert_true(info.speed == 10000000000 && info.full_duplex);
    assert_int_equal(info.curr, OFPPF_10GB_FD | OFPPF_FIBER);
    driver = (struct ethtool_link_settings){
        .speed = 100, .duplex = DUPLEX_HALF, .port = PORT_TP, .autoneg = AUTONEG_ENABLE};
    netlink_ethtool_get(-1, &info);
    assert_false(info.full_duplex);
    assert_int_equal(info.curr, OFPPF_100MB_HD | OFPPF_COPPER | OFPPF_AUTONEG);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uppers),
        cmocka_unit_test(test_what_is_no_shaper),
        cmocka_unit_test(test_events_that_are_none),
        cmocka_unit_test(test_what_goes_is_told),
        cmocka_unit_test(test_what_drivers_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
