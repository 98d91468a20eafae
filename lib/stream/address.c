/* SPDX-License-Identifier: Apache-2.0 */
#include <stream/address.h>

#include "inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PORT "6653"
#define LOOPBACK     "127.0.0.1"

const char stream_default_socket[] = DEFAULT_SOCKET;

static const struct kind {
    const char *prefix;
    bool passive, local, tls;
} kinds[] = {
    {"punix:", true, true, false}, {"unix:", false, true, false}, {"ptcp:", true, false, false},
    {"tcp:", false, false, false}, {"ptls:", true, false, true},  {"tls:", false, false, true},
    {"pssl:", true, false, true},  {"ssl:", false, false, true},
};

static const struct kind *
kind_of(const char *text)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strncmp(text, kinds[i].prefix, strlen(kinds[i].prefix)))
            return &kinds[i];
    return NULL;
}

bool
stream_is_address(const char *text)
{
    return kind_of(text) != NULL;
}

/* ------------------------------------------------------------------ parsing */

static int
parse_path(const char *path, struct stream_address *a, struct why why)
{
    size_t max = sizeof((struct sockaddr_un *)0)->sun_path - 1;
    path = *path ? path : stream_default_socket;
    if (strlen(path) > max)
        return stream_refuse(why, -ENAMETOOLONG, "%s: a socket's path has at most %zu characters",
                             path, max);
    strcpy(a->host, path);
    return 0;
}

static bool
port_ok(const char *s, size_t n, long min)
{
    if (!n || n > 5 || strspn(s, "0123456789") < n)
        return false;
    long port = strtol(s, NULL, 10);
    return port >= min && port <= 65535;
}

/* [HOST] or HOST, as it is there: without its brackets. */
static bool
host_of(const char *s, size_t n, struct stream_address *a)
{
    if (n >= 2 && s[0] == '[' && s[n - 1] == ']') {
        s++;
        n -= 2;
    } else if (memchr(s, ':', n)) {
        return false;
    }
    if (n >= sizeof a->host)
        return false;
    memcpy(a->host, s, n);
    a->host[n] = '\0';
    return true;
}

/* [PORT][:IP] */
static int
parse_passive(const char *text, const char *rest, struct stream_address *a, struct why why)
{
    size_t n = strcspn(rest, ":");
    if (n && !port_ok(rest, n, 0))
        return stream_refuse(
            why, -EINVAL, "%s: the port must be a number from 0 to 65535, such as 6653, not '%.*s'",
            text, (int)n, rest);
    if (n)
        snprintf(a->port, sizeof a->port, "%.*s", (int)n, rest);
    if (rest[n] && !host_of(rest + n + 1, strlen(rest + n + 1), a))
        return stream_refuse(why, -EINVAL,
                             "%s: write an IPv6 address in brackets, such as [2001:db8::1]:6653",
                             text);
    return 0;
}

/* HOST[:PORT] */
static int
parse_active(const char *text, const char *rest, struct stream_address *a, struct why why)
{
    const char *bracket = *rest == '[' ? strchr(rest, ']') : NULL;
    const char *colon = strchr(bracket ? bracket : rest, ':');
    size_t n = colon ? (size_t)(colon - rest) : strlen(rest);
    if (colon && strchr(colon + 1, ':'))
        return stream_refuse(why, -EINVAL,
                             "%s: write an IPv6 address in brackets, such as [2001:db8::1]:6653",
                             text);
    if (!n || !host_of(rest, n, a) || !*a->host)
        return stream_refuse(why, -EINVAL,
                             "%s: the host is missing: give one, such as tcp:192.0.2.1:6653", text);
    if (colon && !port_ok(colon + 1, strlen(colon + 1), 1))
        return stream_refuse(
            why, -EINVAL, "%s: the port must be a number from 1 to 65535, such as 6653, not '%s'",
            text, colon + 1);
    if (colon)
        snprintf(a->port, sizeof a->port, "%s", colon + 1);
    return 0;
}

int
stream_parse(const char *text, struct stream_address *out, char *why_text, size_t why_len)
{
    struct why why = {why_text, why_len};
    const struct kind *k = kind_of(text);
    if (!k)
        return stream_refuse(
            why, -EINVAL,
            "%s: an address must begin with punix:, ptcp:, ptls:, unix:, tcp: or tls:", text);
    *out = (struct stream_address){.passive = k->passive, .local = k->local, .tls = k->tls};
    const char *rest = text + strlen(k->prefix);
    if (k->local)
        return parse_path(rest, out, why);
    strcpy(out->port, DEFAULT_PORT);
    if (k->passive && !k->tls) /* nobody has to prove who he is */
        strcpy(out->host, LOOPBACK);
    return k->passive ? parse_passive(text, rest, out, why) : parse_active(text, rest, out, why);
}

bool
stream_is_exposed(const struct stream_address *a)
{
    struct in6_addr six;
    struct in_addr four;
    if (!a->passive || a->local || a->tls)
        return false;
    if (inet_pton(AF_INET, a->host, &four) == 1)
        return ntohl(four.s_addr) >> IN_CLASSA_NSHIFT != IN_LOOPBACKNET;
    return inet_pton(AF_INET6, a->host, &six) != 1 || !IN6_IS_ADDR_LOOPBACK(&six);
}

/* ------------------------------------------------------------------ looking up */

int
stream_remote_of(const char *text, struct stream_tls *tls, struct stream_remote *out,
                 char *why_text, size_t why_len)
{
    struct why why = {why_text, why_len};
    *out = (struct stream_remote){.tls = NULL};
    int err = stream_parse(text, &out->name, why_text, why_len);
    if (err)
        return err;
    if (out->name.passive)
        return stream_refuse(why, -EINVAL,
                             "%s: this is an address to listen at; to connect, use unix:, tcp: or "
                             "tls:",
                             text);
    if (out->name.tls && !tls)
        return stream_refuse(why, -EINVAL, "%s: %s", text, stream_tls_missing);
    out->tls = out->name.tls ? tls : NULL;
    if (!out->name.local) {
        err = stream_look_up(out, AI_NUMERICHOST, why);
        return err == -EAGAIN ? 0 : err;
    }
    out->n = 1;
    out->len[0] = sizeof out->addr[0].un;
    out->addr[0].un.sun_family = AF_UNIX;
    strcpy(out->addr[0].un.sun_path, out->name.host);
    return 0;
}

int
stream_resolve(const char *text, struct stream_tls *tls, struct stream_remote *out, char *why_text,
               size_t why_len)
{
    char reason[320];
    int err = stream_remote_of(text, tls, out, why_text, why_len);
    if (!err && !out->n && (err = stream_look_up(out, 0, (struct why){reason, sizeof reason})))
        return stream_refuse((struct why){why_text, why_len}, err, "%s: %s", text, reason);
    return err;
}
