/* SPDX-License-Identifier: Apache-2.0 */
/* STATUS and COUNTERS: the switch itself, its workers, controllers, drops. */
#include "metrics-inside.h"

#include <core/ask.h>
#include <core/counters.h>
#include <core/say.h>
#include <core/words.h>

#include <stdio.h>
#include <stdlib.h>

/* --------------------------------------------------------------------- STATUS */

/* The value of a line "key=value", in the arena; NULL: there is none. */
static const char *
value_of(const struct metrics *m, const char *text, const char *key)
{
    size_t n = strlen(key);
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        if (!strncmp(text, key, n) && text[n] == '=')
            return words_keep(m->c, text + n + 1, strcspn(text + n + 1, "\n"));
    return NULL;
}

static uint64_t
number_of(const struct metrics *m, const char *text, const char *key)
{
    const char *value = value_of(m, text, key);
    char *end;
    if (!value)
        return METRICS_UNKNOWN;
    if (!strcmp(value, "true") || !strcmp(value, "false"))
        return *value == 't';
    uint64_t v = strtoull(value, &end, 10);
    return end > value && !*end ? v : METRICS_UNKNOWN;
}

static void
take_switch(struct metrics *m, const char *text)
{
    const char *version = value_of(m, text, "version");
    metrics_label(m, "version", "%s", version ? version : "");
    uint64_t *info = metrics_object(m, METRICS_OF_VERSION);
    uint64_t *v = metrics_object(m, METRICS_OF_SWITCH);
    if (!info || !v)
        return;
    info[VERSION_INFO] = 1;
    v[SWITCH_UPTIME] = number_of(m, text, "uptime");
    v[SWITCH_FLOWS] = number_of(m, text, "flows");
    v[SWITCH_MEMORY] = number_of(m, text, "memory");
    v[SWITCH_MEMORY_LIMIT] = number_of(m, text, "memory.limit");
    v[SWITCH_RINGS] = number_of(m, text, "ring-memory");
    v[SWITCH_STANDALONE] = number_of(m, text, "standalone");
}

static const char *
conn_value(const struct metrics *m, const char *text, unsigned i, const char *what)
{
    char key[64];
    snprintf(key, sizeof key, "connection.%u.%s", i, what);
    return value_of(m, text, key);
}

static uint64_t
conn_number(const struct metrics *m, const char *text, unsigned i, const char *what)
{
    char key[64];
    snprintf(key, sizeof key, "connection.%u.%s", i, what);
    return number_of(m, text, key);
}

static void
take_role(struct metrics *m, const char *text, unsigned i, const char *peer, unsigned aux)
{
    static const char *const roles[] = {"equal", "master", "slave"};
    const char *role = conn_value(m, text, i, "role");
    for (int r = 0; role && r < 3; r++) {
        metrics_label(m, "peer", "%s", peer);
        metrics_label(m, "aux", "%u", aux);
        metrics_label(m, "role", "%s", roles[r]);
        uint64_t *v = metrics_object(m, METRICS_OF_ROLE);
        if (v)
            v[ROLE_IS] = !strcmp(role, roles[r]);
    }
}

static void
take_controller(struct metrics *m, const char *text, unsigned i, const char *peer, unsigned aux)
{
    const char *state = conn_value(m, text, i, "state");
    metrics_label(m, "peer", "%s", peer);
    metrics_label(m, "aux", "%u", aux);
    uint64_t *v = metrics_object(m, METRICS_OF_CONTROLLER);
    if (!v)
        return;
    v[CONTROLLER_CONNECTED] = state && !strcmp(state, "open");
    v[CONTROLLER_IN] = conn_number(m, text, i, "messages-in");
    v[CONTROLLER_OUT] = conn_number(m, text, i, "messages-out");
    v[CONTROLLER_DROPPED] = conn_number(m, text, i, "dropped");
    take_role(m, text, i, peer, aux);
}

/* An accepted connection's address without its port or number, which is another one each time. */
static void
take_accepted(struct metrics *m, char *peer)
{
    struct metrics_objects *all = &m->of[METRICS_OF_PEER];
    bool local = !strncmp(peer, "unix:", 5);
    char *end = strrchr(peer, local ? '#' : ':'); /* unix:/run/s#7, tcp:192.0.2.1:40000 */
    if (end && end != strchr(peer, ':'))
        *end = '\0';
    metrics_label(m, "peer", "%s", peer);
    for (size_t i = 0; i < all->n; i++)
        if (strlen(all->v[i].labels) == m->labels.len &&
            !memcmp(all->v[i].labels, m->labels.buf, m->labels.len)) {
            all->v[i].v[PEER_CONNECTIONS]++;
            m->labels.len = 0;
            return;
        }
    uint64_t *v = metrics_object(m, METRICS_OF_PEER);
    if (v)
        v[PEER_CONNECTIONS] = 1;
}

/* The controllers that the switch connects to come first, each with its auxiliary connections,
 * which have the same peer; then the accepted connections. */
static void
take_connections(struct metrics *m, const char *text)
{
    uint64_t left = number_of(m, text, "controllers");
    const char *last = NULL, *peer;
    unsigned aux = 0;
    bool ours = true;
    for (unsigned i = 1; (peer = conn_value(m, text, i, "peer")); i++) {
        aux = last && !strcmp(last, peer) ? aux + 1 : 0;
        if (ours && !aux)
            ours = left != METRICS_UNKNOWN && left--;
        last = peer;
        if (ours)
            take_controller(m, text, i, peer, aux);
        else
            take_accepted(m, words_keep(m->c, peer, strlen(peer)));
    }
}

enum status
metrics_collect_status(struct metrics *m)
{
    char *text;
    bool refused;
    enum status st = metrics_allow(m, ask_status(m->c, &text), &refused);
    if (st || refused)
        return st;
    take_switch(m, text);
    take_connections(m, text);
    return DPCTL_OK;
}

/* ------------------------------------------------------------------- COUNTERS */

/* Counters that a row of families.h stands for: of ports and of workers. */
static const struct known {
    enum metrics_group group;
    unsigned row;
    const char *what;
} known[] = {
    {METRICS_OF_PORT, PORT_TX_NO_QUEUE, "tx_no_queue"},
    {METRICS_OF_PORT, PORT_RX_NO_QUEUE, "rx_no_queue"},
    {METRICS_OF_PORT, PORT_PACKET_IN_DROPPED, "packet_in_dropped"},
    {METRICS_OF_PORT, PORT_QUEUE_SOCKETS, "queue_sockets"},
    {METRICS_OF_PORT, PORT_RINGS, "ring_bytes"},
    {METRICS_OF_KERNEL, KERNEL_ENTRIES, "entries"},
    {METRICS_OF_KERNEL, KERNEL_MASKS, "masks"},
    {METRICS_OF_KERNEL, KERNEL_HITS, "hits"},
    {METRICS_OF_KERNEL, KERNEL_MISSES, "misses"},
    {METRICS_OF_KERNEL, KERNEL_INSERTED, "inserted"},
    {METRICS_OF_KERNEL, KERNEL_WITHDRAWN, "withdrawn"},
    {METRICS_OF_WORKER, WORKER_CPU, "cpu_ns"},
    {METRICS_OF_WORKER, WORKER_PACKETS, "packets"},
    {METRICS_OF_WORKER, WORKER_BATCHES, "batches"},
    {METRICS_OF_WORKER, WORKER_WAKEUPS, "wakeups"},
    {METRICS_OF_WORKER, WORKER_CACHE_HITS, "cache_hits"},
    {METRICS_OF_WORKER, WORKER_CACHE_MISSES, "cache_misses"},
    {METRICS_OF_WORKER, WORKER_CACHE_BYPASSED, "cache_bypassed"},
    {METRICS_OF_WORKER, WORKER_CACHE_WITHDRAWN, "cache_withdrawn"},
    {METRICS_OF_WORKER, WORKER_CACHE_MASKS, "cache_masks"},
    {METRICS_OF_WORKER, WORKER_CACHE_USED, "cache_used"},
    {METRICS_OF_WORKER, WORKER_CACHE_SIZE, "cache_entries"},
};

static bool
set_known(enum metrics_group group, const char *what, uint64_t *v, uint64_t value)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].group == group && !strcmp(known[i].what, what)) {
            v[known[i].row] = value;
            return true;
        }
    return false;
}

/* "eth1.tx_no_queue"; a name may have dots. */
static void
take_port_counter(struct metrics *m, const char *name, uint64_t value)
{
    const struct metrics_objects *ports = &m->of[METRICS_OF_PORT];
    const char *dot = strrchr(name, '.');
    if (!dot)
        return;
    metrics_label(m, "name", "%.*s", (int)(dot - name), name);
    for (size_t i = 0; i < ports->n; i++) {
        const char *labels = ports->v[i].labels; /* end in the name */
        size_t n = strlen(labels), mine = m->labels.len;
        if (n > mine && !memcmp(labels + n - mine, m->labels.buf, mine))
            set_known(METRICS_OF_PORT, dot + 1, ports->v[i].v, value);
    }
    m->labels.len = 0;
}

/* "0.cpu_ns"; workers come one after the other. */
static void
take_worker_counter(struct metrics *m, const char *name, uint64_t value)
{
    struct metrics_objects *workers = &m->of[METRICS_OF_WORKER];
    char *end;
    unsigned long id = strtoul(name, &end, 10);
    if (*end != '.' || id > workers->n)
        return;
    if (id == workers->n) {
        metrics_label(m, "worker", "%lu", id);
        if (!metrics_object(m, METRICS_OF_WORKER))
            return;
    }
    set_known(METRICS_OF_WORKER, end + 1, workers->v[id].v, value);
}

static void
take_labelled(struct metrics *m, enum metrics_group group, const char *label, const char *name,
              uint64_t value)
{
    metrics_label(m, label, "%s", name);
    uint64_t *v = metrics_object(m, group);
    if (v)
        v[0] = value;
}

/* "hits" */
static void
take_kernel_counter(struct metrics *m, const char *name, uint64_t value)
{
    struct metrics_objects *kernel = &m->of[METRICS_OF_KERNEL];
    if (!kernel->n && !metrics_object(m, METRICS_OF_KERNEL))
        return;
    if (!set_known(METRICS_OF_KERNEL, name, kernel->v[0].v, value))
        take_labelled(m, METRICS_OF_KERNEL_EVENT, "event", name, value);
}

static bool
is_of(const char *name, const char *room, const char **rest)
{
    size_t n = strlen(room);
    *rest = name + n;
    return !strncmp(name, room, n);
}

/* A counter of one connection is in the sum, channel.WHAT.  Peers come and go, so they are no
 * labels.  One of a processor is in kernel_WHAT. */
static void
take_counter(void *to, const char *name, uint64_t value)
{
    struct metrics *m = to;
    struct metrics_objects *own = &m->of[METRICS_OF_SWITCH];
    const char *rest;
    if (is_of(name, "drop.", &rest))
        take_labelled(m, METRICS_OF_DROP, "reason", rest, value);
    else if (is_of(name, "kernel_refused.", &rest))
        take_labelled(m, METRICS_OF_REFUSED, "reason", rest, value);
    else if (is_of(name, "kernel_", &rest))
        take_kernel_counter(m, rest, value);
    else if (is_of(name, "channel.", &rest))
        take_labelled(m, METRICS_OF_CHANNEL, "event", rest, value);
    else if (is_of(name, "port.", &rest))
        take_port_counter(m, rest, value);
    else if (is_of(name, "worker.", &rest) && *rest >= '0' && *rest <= '9')
        take_worker_counter(m, rest, value);
    else if (!strcmp(name, "worker.stack_used") && own->n)
        own->v[0].v[SWITCH_STACK] = value;
    else if (!strcmp(name, "worker.stack_size") && own->n)
        own->v[0].v[SWITCH_STACK_SIZE] = value;
    else if (strcmp(name, "worker.wakeups") != 0 && !is_of(name, "connection.", &rest) &&
             !is_of(name, "processor.", &rest))
        take_labelled(m, METRICS_OF_EVENT, "event", name, value);
}

enum status
metrics_collect_counters(struct metrics *m)
{
    struct of_bytes entries = {0};
    bool refused;
    enum status st = metrics_allow(
        m, ask_experimenter(m->c, OFP_EXP_COUNTERS, (struct of_bytes){NULL, 0}, &entries),
        &refused);
    if (st || refused)
        return st;
    return counters_each(entries, take_counter, m) ? DPCTL_OK : say_malformed(m->c);
}
