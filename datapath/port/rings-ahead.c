/* SPDX-License-Identifier: Apache-2.0 */
/* Rings that are made before their ports are opened, many at once.
 *
 * In each PACKET_RX_RING the kernel waits for all of its RCU readers (synchronize_net): 12 ms, so 12 s for 1,000
 * ports.  Threads that wait at the same time wait together. */
#include "af-packet.h"

#include <pthread.h>

#define AT_ONCE 64                   /* rings, and threads that make them */
#define BYTES   (UINT64_C(64) << 20) /* of them, at most */

struct job {
    pthread_t thread;
    struct packet_ring_want want;
    struct rx_ring *ring;
};

static struct packet_ring_want made_for;
static struct rx_ring *made[AT_ONCE];
static unsigned n_made;
static unsigned expected; /* ports that are still to be opened */

static void *
make_one(void *arg)
{
    struct job *j = arg;
    if (packet_ring_new(&j->want, &j->ring, NULL, 0))
        j->ring = NULL; /* whoever opens the port learns why */
    return NULL;
}

static void
make_some(const struct packet_ring_want *want, unsigned n)
{
    struct job job[AT_ONCE];
    unsigned begun = 0;
    for (; begun < n; begun++) {
        job[begun] = (struct job){.want = *want};
        if (pthread_create(&job[begun].thread, NULL, make_one, &job[begun]))
            break;
    }
    for (unsigned i = 0; i < begun; i++) {
        pthread_join(job[i].thread, NULL);
        if (job[i].ring)
            made[n_made++] = job[i].ring;
    }
    made_for = *want;
}

static void
drop_all(void)
{
    int fd[AT_ONCE];
    unsigned n = n_made;
    for (unsigned i = 0; i < n; i++)
        fd[i] = packet_ring_free(made[i]);
    n_made = 0;
    backend_close_later(fd, n);
}

struct rx_ring *
rings_ahead_take(const struct packet_ring_want *want, unsigned each)
{
    uint64_t n = (uint64_t)expected * each, most = BYTES / want->bytes;
    if (n_made && (want->slot != made_for.slot || want->bytes != made_for.bytes ||
                   want->copies != made_for.copies))
        drop_all();
    n = n < most ? n : most;
    if (!n_made && n > 1)
        make_some(want, (unsigned)(n < AT_ONCE ? n : AT_ONCE));
    return n_made ? made[--n_made] : NULL;
}

void
rings_ahead_done(void)
{
    if (expected && !--expected)
        drop_all();
}

void
rings_ahead_expect(unsigned ports)
{
    expected = ports;
    if (!ports)
        drop_all();
}
