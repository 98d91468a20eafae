/* SPDX-License-Identifier: Apache-2.0 */
/* Where a stream goes to, or listens: addresses in text, and looked up.
 *
 *   unix:PATH    tcp:HOST[:PORT]    tls:HOST[:PORT]     to connect to
 *   punix:PATH   ptcp:[PORT][:IP]   ptls:[PORT][:IP]    to listen at
 *
 * unix: and punix: without a path mean one place for all, stream_default_socket.
 * ssl: and pssl: are other names of tls: and ptls:.
 *
 * The port is 6653 where none is given (OpenFlow 1.3.5, 6.3.1), the listening address all there
 * are.  IPv6 addresses with a port stand in brackets.
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

/* Its directory is made when somebody listens there. */
extern const char stream_default_socket[];

/* Whether text begins as one of the addresses above does. */
bool stream_is_address(const char *text);

int stream_parse(const char *text, struct stream_address *out, char *why, size_t why_len);

union stream_sockaddr {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
    struct sockaddr_storage any;
};

/* Somebody to connect to: a name may have several addresses. */
#define STREAM_ADDRS_MAX 8
struct stream_remote {
    struct stream_address name;
    struct stream_tls *tls; /* not NULL where name.tls */
    unsigned n;             /* addresses; 0: the name is still to be looked up */
    socklen_t len[STREAM_ADDRS_MAX];
    union stream_sockaddr addr[STREAM_ADDRS_MAX];
};

/* The text of an address to connect to.  A host name, which isn't looked up, has no addresses yet.
 * `tls` (it must outlive *out) is needed for tls: addresses only, else NULL will do. */
int stream_remote_of(const char *text, struct stream_tls *tls, struct stream_remote *out, char *why,
                     size_t why_len);

/* Looks up r->name in a thread of its own.  -errno: it couldn't be begun. */
struct stream_lookup;
int stream_lookup_begin(const struct stream_remote *r, struct stream_lookup **out);
int stream_lookup_fd(const struct stream_lookup *l); /* readable: it is done */
/* *r is the name with its addresses; or -errno with a sentence in `why`, -EAGAIN where it isn't done
 * and nobody is interested any more.  Frees l (NULL is allowed). */
int stream_lookup_end(struct stream_lookup *l, struct stream_remote *r, char *why, size_t why_len);

/* The same, looked up.  Host names are by getaddrinfo, which may block
 * for as long as the resolver does; numeric addresses never block. */
int stream_resolve(const char *text, struct stream_tls *tls, struct stream_remote *out, char *why,
                   size_t why_len);

#endif
