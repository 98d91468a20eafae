/* SPDX-License-Identifier: Apache-2.0 */
/* TLS for streams: keys and certificates (docs/how-to/tls.md).
 *
 * Both sides must show a certificate that is signed by the CA; TLS 1.2 and 1.3 only.  A build
 * without TLS refuses the options and the addresses with a sentence that says so.
 */
#ifndef STREAM_TLS_H
#define STREAM_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stream_tls;

/* The options of every program that has TLS.  O(ID, name, argument, help) */
#define STREAM_TLS_OPTIONS(O)                                                                      \
    O(PRIVATE_KEY, "private-key", "FILE", "our private key, PEM, without a password")              \
    O(CERTIFICATE, "certificate", "FILE", "our certificate, PEM, and those between it and its CA") \
    O(CA_CERT, "ca-cert", "FILE", "the CA's certificate, PEM: the peer's must be signed by it")    \
    O(PEER_NAME, "peer-name", "NAME",                                                              \
      "with tls:, the peer's certificate must be for this name instead of HOST; any: for none in particular")

#define STREAM_TLS_ID(id, name, arg, help) STREAM_TLS_##id,
enum stream_tls_id { STREAM_TLS_OPTIONS(STREAM_TLS_ID) STREAM_TLS_N };
#undef STREAM_TLS_ID
#define STREAM_TLS_FILES (STREAM_TLS_CA_CERT + 1) /* the first of them name files; all are needed */

/* For getopt_long: the options' rows, and what it returns for them: the first, and so on. */
#define STREAM_TLS_FIRST 2000
#define STREAM_TLS_LONG(id, name, arg, help)                                                       \
    {name, required_argument, NULL, STREAM_TLS_FIRST + STREAM_TLS_##id},
#define STREAM_TLS_LONGS STREAM_TLS_OPTIONS(STREAM_TLS_LONG)

struct stream_tls_options {
    const char *values[STREAM_TLS_N]; /* NULL: not given */
    void (*warn)(const char *text);   /* for an operator; NULL: not reported */
};

/* Takes one of these options (getopt's value and optarg); false: it is none of them. */
static inline bool
stream_tls_option(struct stream_tls_options *o, int opt, const char *arg)
{
    if (opt < STREAM_TLS_FIRST || opt >= STREAM_TLS_FIRST + STREAM_TLS_N)
        return false;
    o->values[opt - STREAM_TLS_FIRST] = arg;
    return true;
}

/* Loads the files.  Without any option *out is NULL and there is no TLS.  -EINVAL, -ENOENT, ...
 * with a sentence in `why`.  Files that are changed later are loaded again for the next connection.
 * Where they are no good, what was loaded before stays in use, and `warn` is called once. */
int stream_tls_new(const struct stream_tls_options *o, struct stream_tls **out, char *why,
                   size_t why_len);

/* Whether a peer's first bytes on a plain stream are TLS; no OpenFlow message begins so. */
static inline bool
stream_looks_like_tls(const uint8_t *p, size_t n)
{
    return n >= 2 && p[0] >= 20 && p[0] <= 23 && p[1] == 3;
}

/* After the last stream and listener that use it.  NULL is allowed. */
void stream_tls_free(struct stream_tls *tls);

#endif
