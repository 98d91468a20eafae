/* SPDX-License-Identifier: Apache-2.0 */
/* A control channel with a toy switch behind it, and peers that speak to it over sockets. */
#ifndef TEST_CHANNEL_FIXTURE_H
#define TEST_CHANNEL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../../datapath/control/conn-async.h"
#include "../../../datapath/control/conn-life.h"

struct fixture {
    struct loop *loop;
    struct channel *ch;
    char dir[64];    /* the test's own */
    char socket[96]; /* punix: */
    /* what the toy switch was asked */
    unsigned connected, disconnected, handled, flow_mods, done;
    uint32_t n_ports;         /* entries of its port description */
    uint32_t tables;          /* in the last table features request */
    size_t body_bytes;        /* of the last experimenter multipart */
    uint32_t removes;         /* flows that each flow-mod tells of as removed */
    uint32_t step_size;       /* entries a dump's step appends */
    struct deferred deferred; /* the last meter-mod: the toy never answers it itself */
    struct deferred_copy
        *copy; /* of the last get-config or port description, which the toy says ask the kernel */
    bool asks_kernel;
};

struct peer {
    struct fixture *fixture;
    int fd;
    uint8_t buf[256 << 10];
    size_t at, len;
    bool closed;
};

/* For cmocka: the fixture is *state. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

void fixture_turns(struct fixture *f, int ms); /* lets the loop run for so long */
int fixture_free_port(int family);             /* a TCP port that nobody uses */

/* Connected by the fixture's unix socket; `peer_open` after the hello exchange too. */
struct peer *peer_new(struct fixture *f);
struct peer *peer_open(struct fixture *f);
struct peer *peer_of_fd(struct fixture *f, int fd);
void peer_free(struct peer *p);

void peer_send_raw(struct peer *p, const void *bytes, size_t n);
void peer_send(struct peer *p, uint8_t type, uint32_t xid, const void *body, size_t n);
void peer_request(struct peer *p, uint8_t type, uint32_t xid, const void *body); /* by its row */
void peer_multipart(struct peer *p, uint16_t type, uint16_t flags, uint32_t xid, const void *body,
                    size_t n);

/* The next message, within two seconds; .n 0: none, the switch has closed. Valid until the next. */
struct of_bytes peer_recv(struct peer *p);
void peer_expect(struct peer *p, uint8_t type, uint32_t xid);
void peer_expect_error(struct peer *p, uint32_t xid, uint16_t type, uint16_t code);
void peer_expect_close(struct peer *p);
void peer_expect_nothing(struct peer *p); /* a barrier is the next that is answered */

#endif
