/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a switch: framing, hello, echo. */
#ifndef DPCTL_REMOTE_H
#define DPCTL_REMOTE_H

#include <oflib/codec.h>
#include <stream/stream.h>
#include <stream/tls.h>

#include <signal.h>

#define REMOTE_ADDRESSES                                                                           \
    "unix:PATH, tcp:HOST[:PORT] or tls:HOST[:PORT] (default port 6653, IPv6 addresses in "         \
    "brackets), the path of a socket, or NAME of a service ofdatapath@NAME"

/* The environment variable that names the switch where the command line does not. */
#define REMOTE_VARIABLE "DPCTL_SWITCH"

struct remote {
    struct stream *stream;   /* NULL: not connected */
    struct stream_tls *tls;  /* for tls: addresses, or NULL; the caller's */
    uint32_t xid;            /* of the last request */
    int timeout_ms;          /* for each answer */
    const sigset_t *sigmask; /* while waiting; NULL: as always */
    const char *address;     /* that it was opened with; the caller's */
    size_t have;             /* bytes in buf */
    size_t taken;            /* bytes of the message that remote_recv returned last */
    char why[256];           /* a sentence, after a failure */
    uint8_t buf[OF_MSG_MAX + 1];
};

/* Does the first word look like an address (rather than a command)? */
bool remote_is_address(const char *text);

/* Is a word behind a command an address and not an argument?  `needed`: a path counts as an
 * address, unless it is the path of something that is no socket. */
bool remote_may_be_address(const char *text, bool needed);

/* The address of the only switch of this machine, if none listens at the default socket; else
 * "unix:", the default socket. */
const char *remote_usual(void);

/* Connects and says hello.  <0: -errno and a sentence in why. */
int remote_open(struct remote *r, const char *address, int timeout_ms);
/* Closes it and connects to the same address again; likewise. */
int remote_reopen(struct remote *r);
void remote_close(struct remote *r);

int remote_send(struct remote *r, const uint8_t *p, size_t n);

/* The next message, valid until the next call.  Answers echo requests itself.  `until`:
 * CLOCK_MONOTONIC in ms, -1: no limit.  -ETIMEDOUT, -EINTR (a signal), -ECONNRESET (the switch
 * closed the connection), ... */
int remote_recv(struct remote *r, int64_t until, struct of_bytes *msg);

/* Likewise, for an answer that may take longer than the timeout: sends echo requests, whose
 * replies move *until on.  -ETIMEDOUT: the switch answers no echo. */
int remote_recv_alive(struct remote *r, int64_t *until, struct of_bytes *msg);

/* Waits this long, or until fd is readable (1; -1: none).  Answers echo requests and drops what else
 * comes.  0: the time is over; -EINTR: a signal that `mask` lets through; <0: the connection is
 * lost.  Without a connection it waits all the same. */
int remote_idle(struct remote *r, int64_t ms, const sigset_t *mask, int fd);

int64_t remote_now_ms(void);

#endif
