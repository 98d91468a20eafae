/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections that each carry one request and one answer.
 *
 *     connect -s PORT [PORT]...    answers until it is ended
 *     connect ADDRESS CLIENTS SECONDS PORT [PORT]...
 *                                  CLIENTS at a time, each to the next of the ports in turn; prints
 *                                  "N P50 P99" (connections, microseconds from SYN to the end)
 */
#include "clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BYTES   64
#define EVENTS  64
#define SAMPLES (1u << 22)
#define MOST    1024        /* clients */
#define GIVE_UP 1000000000u /* ns: a connection that has lost its SYN */

static int
open_socket(void)
{
    return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
}

static void
watch(int ep, int fd, uint32_t events, uint32_t n)
{
    struct epoll_event e = {.events = events, .data.u64 = (uint64_t)n << 32 | (uint32_t)fd};
    epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
}

/* ------------------------------------------------------------------ the server */

static int
listen_at(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = open_socket(), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 4096)) {
        perror("listen");
        exit(1);
    }
    return fd;
}

/* Answers what is there and closes, so that the server has the connections that wait for their end and the client's
 * ports are free again. */
static void
answer(int fd)
{
    char buf[BYTES];
    ssize_t n = recv(fd, buf, sizeof buf, 0);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n > 0 && send(fd, buf, (size_t)n, MSG_NOSIGNAL) < 0)
        perror("send");
    close(fd);
}

static _Noreturn void
serve(int n, char **ports)
{
    int ep = epoll_create1(0);
    struct epoll_event e[EVENTS];
    for (int i = 0; i < n; i++)
        watch(ep, listen_at((uint16_t)atoi(ports[i])), EPOLLIN, 1);
    for (;;)
        for (int i = epoll_wait(ep, e, EVENTS, -1); i-- > 0;) {
            int fd = (int)(uint32_t)e[i].data.u64, client;
            if (!(e[i].data.u64 >> 32))
                answer(fd);
            else
                while ((client = accept4(fd, NULL, NULL, SOCK_NONBLOCK)) >= 0)
                    watch(ep, client, EPOLLIN, 0);
        }
}

/* ------------------------------------------------------------------ the clients */

static struct sockaddr_in server;
static uint16_t ports[64];
static unsigned n_ports, next_port;
static struct client {
    int fd;
    uint64_t begun;
    int asked;
} clients[MOST];
static uint32_t samples[SAMPLES], n_samples;

static void
begin(int ep, uint32_t n)
{
    struct client *c = &clients[n];
    *c = (struct client){.fd = open_socket(), .begun = now_ns()};
    server.sin_port = htons(ports[next_port++ % n_ports]);
    if (c->fd < 0 ||
        (connect(c->fd, (struct sockaddr *)&server, sizeof server) && errno != EINPROGRESS)) {
        perror("connect");
        exit(1);
    }
    watch(ep, c->fd, EPOLLIN | EPOLLOUT | EPOLLET, n);
}

static void
go_on(int ep, uint32_t n, uint32_t events)
{
    static char buf[BYTES];
    struct client *c = &clients[n];
    ssize_t got = 1;
    if (!c->asked && events & EPOLLOUT)
        c->asked = send(c->fd, buf, sizeof buf, MSG_NOSIGNAL) > 0;
    while (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && got > 0)
        got = recv(c->fd, buf, sizeof buf, 0);
    if (got > 0 || (got < 0 && errno == EAGAIN))
        return;
    close(c->fd);
    if (!got && c->asked && n_samples < SAMPLES)
        samples[n_samples++] = (uint32_t)(now_ns() - c->begun);
    begin(ep, n);
}

static int
by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int
ask(uint32_t n, double seconds)
{
    int ep = epoll_create1(0);
    struct epoll_event e[EVENTS];
    uint64_t start = now_ns(), end = start + (uint64_t)(seconds * 1e9);
    for (uint32_t i = 0; i < n; i++)
        begin(ep, i);
    for (uint64_t now; (now = now_ns()) < end;) {
        int got = epoll_wait(ep, e, EVENTS, 100);
        for (int i = 0; i < got; i++)
            go_on(ep, (uint32_t)(e[i].data.u64 >> 32), e[i].events);
        for (uint32_t i = 0; !got && i < n; i++)
            if (now - clients[i].begun > GIVE_UP) {
                close(clients[i].fd);
                begin(ep, i);
            }
    }
    if (!n_samples)
        return 1;
    qsort(samples, n_samples, sizeof samples[0], by_value);
    printf("%u %.1f %.1f\n", n_samples, samples[n_samples / 2] / 1e3,
           samples[n_samples - n_samples / 100 - 1] / 1e3);
    return 0;
}

int
main(int argc, char **argv)
{
    if (argc >= 3 && !strcmp(argv[1], "-s"))
        serve(argc - 2, argv + 2);
    server.sin_family = AF_INET;
    if (argc < 5 || argc > 68 || inet_pton(AF_INET, argv[1], &server.sin_addr) != 1) {
        fprintf(stderr, "usage: %s -s PORT... | ADDRESS CLIENTS SECONDS PORT...\n", argv[0]);
        return 2;
    }
    for (int i = 4; i < argc; i++)
        ports[n_ports++] = (uint16_t)atoi(argv[i]);
    uint32_t n = (uint32_t)atoi(argv[2]);
    return ask(n < 1 ? 1 : n > MOST ? MOST : n, strtod(argv[3], NULL));
}
