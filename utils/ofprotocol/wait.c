/* SPDX-License-Identifier: Apache-2.0 */
/* What a turn of the loop waits for. */
#include "relay.h"

unsigned
relay_wait_fd(struct relay *r, int fd, uint32_t events)
{
    r->fds[r->n_fds] = (struct pollfd){.fd = fd, .events = (short)events};
    return r->n_fds++;
}

unsigned
relay_wait_stream(struct relay *r, const struct stream *s, uint32_t wanted)
{
    return relay_wait_fd(r, stream_fd(s), stream_wait_for(s, wanted));
}

void
relay_wait_until(struct relay *r, int64_t when)
{
    if (when < r->wake)
        r->wake = when;
}

bool
relay_woken(const struct relay *r, unsigned place)
{
    return r->fds[place].revents;
}
