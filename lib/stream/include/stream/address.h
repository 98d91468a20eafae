/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of streams: parsed, and looked up.
 *
 *   unix:PATH    tcp:HOST[:PORT]    tls:HOST[:PORT]     to connect to
 *   punix:PATH   ptcp:[PORT][:IP]   ptls:[PORT][:IP]    to listen at
 *
 * unix: and punix: without a path mean one place for all, stream_default_socket.
 * ssl: and pssl: are other names of tls: and ptls:.
 *
 * Without a port it is 6653 (OpenFlow 1.3.5, 6.3.1); without an IP address to listen at, 127.0.0.1, with
 * TLS all.  An IPv6 address with a port is written in brackets.
 *
 * All functions here: 0, or -errno with a sentence in `why` (of why_len bytes).
 */
#ifndef STREAM_ADDRESS_H
#define STREAM_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

struct stream_tls; /* tls.h */

struct stream_address {
    bool passive; /* to listen at */
    bool local;   /* a Unix socket */
    bool tls;
    char host[256]; /* without brackets; "": all addresses; of a Unix socket: its path */
    char port[8];   /* decimal; of a Unix socket: "" */
};

/* stream_listen makes its directory. */
extern const char stream_default_socket[];

/* Whether text begins as one of the addresses above does. */
bool stream_is_address(const char *text);

/* To listen in plain text where others than this machine's own may reach it. */
bool stream_is_exposed(const struct stream_address *a);

int stream_parse(const char *text, struct stream_address *out, char *why, size_t why_len);

union stream_sockaddr {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
    struct sockaddr_storage any;
};

/* A peer to connect to: a name may have several addresses. */
#define STREAM_ADDRS_MAX 8
struct stream_remote {
    struct stream_address name;
    struct stream_tls *tls; /* not NULL where name.tls */
    unsigned n;             /* addresses; 0: the name is still to be looked up */
    socklen_t len[STREAM_ADDRS_MAX];
    union stream_sockaddr addr[STREAM_ADDRS_MAX];
};

/* Parses an address to connect to.  A host name is not looked up: n is 0.  `tls`, which must
 * outlive *out, is needed for tls: addresses only; else it may be NULL. */
int stream_remote_of(const char *text, struct stream_tls *tls, struct stream_remote *out, char *why,
                     size_t why_len);

/* Begins to look r->name up in a thread of its own. */
struct stream_lookup;
int stream_lookup_begin(const struct stream_remote *r, struct stream_lookup **out);
int stream_lookup_fd(const struct stream_lookup *l); /* readable: it is done */
/* Sets *r to the name with its addresses, and frees l (NULL is allowed).  -errno with a sentence in
 * `why`; -EAGAIN: it was not done, and is given up. */
int stream_lookup_end(struct stream_lookup *l, struct stream_remote *r, char *why, size_t why_len);

/* stream_remote_of, and looks a host name up at once: getaddrinfo may block as long as the resolver
 * does.  Numeric addresses never block. */
int stream_resolve(const char *text, struct stream_tls *tls, struct stream_remote *out, char *why,
                   size_t why_len);

#endif
