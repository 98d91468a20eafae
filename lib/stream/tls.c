/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's bytes over TLS, by OpenSSL (1.1.1 or later). */
#include "tls-openssl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stream_session {
    SSL *ssl;
    int fd; /* the socket, which is the stream's */
    bool open, broken;
    uint8_t head[2]; /* the peer's first bytes */
    unsigned n_head;
    int io_err;                                        /* -errno of the socket */
    bool eof;                                          /* the peer's socket has ended */
    uint32_t handshake_waits, read_waits, write_waits; /* for POLLIN or POLLOUT */
    char must[256]; /* the name that the peer must have; "": any */
    char why[512];
};

/* ------------------------------------------------------------------ the socket below
 * A BIO of our own, because OpenSSL's raises SIGPIPE. */

static int
bio_result(BIO *b, ssize_t n, int retry)
{
    struct stream_session *t = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    if (n == -EAGAIN)
        BIO_set_flags(b, retry | BIO_FLAGS_SHOULD_RETRY);
    else if (n < 0)
        t->io_err = (int)n;
    return n < 0 ? -1 : (int)n;
}

static int
bio_read(BIO *b, char *p, int n)
{
    struct stream_session *t = BIO_get_data(b);
    ssize_t got = stream_socket_read(t->fd, p, (size_t)n);
    for (int i = 0; i < got && t->n_head < sizeof t->head; i++)
        t->head[t->n_head++] = (uint8_t)p[i];
    t->eof = t->eof || !got;
    return bio_result(b, got, BIO_FLAGS_READ);
}

static int
bio_write(BIO *b, const char *p, int n)
{
    struct stream_session *t = BIO_get_data(b);
    return bio_result(b, stream_socket_write(t->fd, p, (size_t)n), BIO_FLAGS_WRITE);
}

static long
bio_ctrl(BIO *b, int command, long arg, void *p)
{
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *
new_bio_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
    if (m && BIO_meth_set_read(m, bio_read) && BIO_meth_set_write(m, bio_write) &&
        BIO_meth_set_ctrl(m, bio_ctrl))
        return m;
    BIO_meth_free(m);
    return NULL;
}

/* ------------------------------------------------------------------ why it failed, in words */

/* Alerts (RFC 8446, 6.2) that somebody is likely to see. */
static const char *
alert_words(int alert)
{
    switch (alert) {
    case SSL_AD_HANDSHAKE_FAILURE: return "handshake failure (nothing that both sides would use)";
    case SSL_AD_PROTOCOL_VERSION: return "protocol version (it has no TLS 1.2 or 1.3)";
    case SSL_AD_CERTIFICATE_EXPIRED: return "our certificate has expired";
    case SSL_AD_UNKNOWN_CA: return "it does not know the CA of our certificate";
    case SSL_AD_BAD_CERTIFICATE: return "our certificate is bad";
    case 116: /* no name in OpenSSL 1.1.1 */ return "it wants a certificate";
    default: return SSL_alert_desc_string_long(alert);
    }
}

static const char *
verify_words(long result)
{
    switch (result) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE: return "it is not signed by the CA of --ca-cert";
    case X509_V_ERR_CERT_HAS_EXPIRED: return "it has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID: return "it is not valid yet";
    default: return X509_verify_cert_error_string(result);
    }
}

static bool
is_plain(const struct stream_session *t)
{
    return t->n_head == sizeof t->head && !stream_looks_like_tls(t->head, sizeof t->head);
}

/* An OpenFlow hello of any version. */
static bool
is_hello(const uint8_t head[2])
{
    return head[0] >= 1 && head[0] <= 6 && !head[1];
}

static void
explain(struct stream_session *t, unsigned long e)
{
    struct why why = {t->why, sizeof t->why};
    int reason = ERR_GET_REASON(e), alert = reason - SSL_AD_REASON_OFFSET;
    long verify = SSL_get_verify_result(t->ssl);
    const char *words = ERR_reason_error_string(e);
    if (is_plain(t))
        stream_refuse(why, 0, "the peer does not speak TLS%s",
                      is_hello(t->head) ? ": it began with an OpenFlow hello in plain text" : "");
    else if (verify == X509_V_ERR_HOSTNAME_MISMATCH || verify == X509_V_ERR_IP_ADDRESS_MISMATCH)
        stream_refuse(
            why, 0,
            "the peer's certificate is refused: it is not for %s (--peer-name=NAME asks for "
            "another name, --peer-name=any for none)",
            t->must);
    else if (verify != X509_V_OK)
        stream_refuse(why, 0, "the peer's certificate is refused: %s", verify_words(verify));
    else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
        stream_refuse(why, 0, "the peer has shown no certificate");
    else if (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_VERSION_TOO_LOW ||
             reason == SSL_R_WRONG_SSL_VERSION)
        stream_refuse(why, 0, "the peer has no TLS 1.2 or 1.3");
    else if (alert >= 0 && alert <= 255)
        stream_refuse(why, 0, "the peer refuses our TLS: %s", alert_words(alert));
    else
        stream_refuse(why, 0, "TLS: %s", words ? words : "unknown error");
}

/* What a failed SSL_* call means: -EAGAIN and what to wait for; 0: the peer has ended; -errno. */
static int
outcome(struct stream_session *t, int ret, uint32_t *waits)
{
    static const uint8_t alert[] = {21, 3, 3, 0, 2, SSL3_AL_FATAL, SSL_AD_PROTOCOL_VERSION};
    switch (SSL_get_error(t->ssl, ret)) {
    case SSL_ERROR_WANT_READ: *waits = POLLIN; return -EAGAIN;
    case SSL_ERROR_WANT_WRITE: *waits = POLLOUT; return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN: return 0;
    case SSL_ERROR_SYSCALL:
        t->broken = true;
        if (t->eof && !t->io_err) /* without a farewell; messages have lengths, none gets lost */
            return 0;
        t->io_err = t->io_err ? t->io_err : -EIO;
        snprintf(t->why, sizeof t->why, "%s", strerror(-t->io_err));
        return t->io_err;
    default:
        t->broken = true;
        explain(t, ERR_peek_error());
        ERR_clear_error();
        if (is_plain(t))
            stream_socket_write(t->fd, alert,
                                sizeof alert); /* OpenSSL sends no alert to a peer without TLS */
        return -EPROTO;
    }
}

/* ------------------------------------------------------------------ a session */

/* Of a connecting stream: the name that the peer must have, and the server name to ask for. */
static bool
set_names(const struct stream_tls *tls, struct stream_session *t, const char *host)
{
    struct in6_addr ip;
    const char *asked = tls->options.values[STREAM_TLS_PEER_NAME];
    X509_VERIFY_PARAM *param = SSL_get0_param(t->ssl);
    bool number = inet_pton(AF_INET, host, &ip) == 1 || strchr(host, ':');
    if (!number && !SSL_set_tlsext_host_name(t->ssl, host))
        return false;
    if (asked && !strcmp(asked, "any"))
        return true;
    snprintf(t->must, sizeof t->must, "%s", asked ? asked : host);
    if (!asked)
        t->must[strcspn(t->must, "%")] = '\0'; /* of fe80::1%eth0, the interface is our affair */
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (!*t->must) /* to OpenSSL that would be any name */
        return false;
    return X509_VERIFY_PARAM_set1_ip_asc(param, t->must) ||
           X509_VERIFY_PARAM_set1_host(param, t->must, 0);
}

int
stream_session_start(struct stream_tls *tls, int fd, const char *host, struct stream_session **out)
{
    stream_tls_load_again(tls);
    if (!tls->bio && !(tls->bio = new_bio_method()))
        return -ENOMEM;
    struct stream_session *t = calloc(1, sizeof *t);
    BIO *bio = t ? BIO_new(tls->bio) : NULL;
    if (!bio || !(t->ssl = SSL_new(tls->ctx)) || (host && !set_names(tls, t, host))) {
        BIO_free(bio);
        stream_session_free(t);
        return -ENOMEM;
    }
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    t->fd = fd;
    t->handshake_waits = host ? POLLOUT : POLLIN;
    t->read_waits = POLLIN;
    t->write_waits = POLLOUT;
    if (host)
        SSL_set_connect_state(t->ssl);
    else
        SSL_set_accept_state(t->ssl);
    *out = t;
    return 0;
}

void
stream_session_free(struct stream_session *t)
{
    if (!t)
        return;
    if (t->open)
        stream_session_end(t);
    SSL_free(t->ssl);
    free(t);
}

int
stream_session_open(struct stream_session *t)
{
    ERR_clear_error();
    int ret = SSL_do_handshake(t->ssl);
    if (ret == 1) {
        t->open = true;
        return 0;
    }
    int err = outcome(t, ret, &t->handshake_waits);
    if (err)
        return err;
    snprintf(t->why, sizeof t->why, "the peer closed the connection during the TLS handshake");
    return -EPROTO;
}

ssize_t
stream_session_read(struct stream_session *t, void *p, size_t n)
{
    size_t got;
    ERR_clear_error();
    t->read_waits = POLLIN;
    return SSL_read_ex(t->ssl, p, n, &got) ? (ssize_t)got : outcome(t, 0, &t->read_waits);
}

/* The socket takes no more data.  True: the peer sent an alert before it closed. */
static bool
last_words(struct stream_session *t)
{
    uint8_t byte;
    size_t got;
    uint32_t waits;
    ERR_clear_error();
    return !SSL_read_ex(t->ssl, &byte, 1, &got) && outcome(t, 0, &waits) == -EPROTO;
}

ssize_t
stream_session_write(struct stream_session *t, const void *p, size_t n)
{
    size_t sent;
    ERR_clear_error();
    t->write_waits = POLLOUT;
    if (SSL_write_ex(t->ssl, p, n, &sent))
        return (ssize_t)sent;
    int err = outcome(t, 0, &t->write_waits);
    if (err != -EAGAIN && err != -EPROTO && last_words(t))
        return -EPROTO;
    return err ? err : -EPIPE;
}

void
stream_session_end(struct stream_session *t)
{
    ERR_clear_error();
    if (!t->broken)
        SSL_shutdown(t->ssl);
    ERR_clear_error();
}

bool
stream_session_pending(const struct stream_session *t)
{
    return t->open && SSL_pending(t->ssl) > 0;
}

uint32_t
stream_session_wait_for(const struct stream_session *t, uint32_t wanted)
{
    if (!t->open)
        return t->handshake_waits;
    return (wanted & POLLIN ? t->read_waits : 0) | (wanted & POLLOUT ? t->write_waits : 0);
}

const char *
stream_session_why(const struct stream_session *t)
{
    return t->why;
}

static bool
copy_name(const ASN1_STRING *name, char *out, size_t n)
{
    unsigned char *text = NULL;
    int len = ASN1_STRING_to_UTF8(&text, name);
    bool good = len > 0 && (size_t)len < n;
    /* A zero would end the name earlier for whoever reads it as text.  Control characters: U+0000 to
     * U+001F, U+007F to U+009F. */
    for (int i = 0; good && i < len; i++)
        good = text[i] >= ' ' && text[i] != 127 && !(text[i] == 0xc2 && text[i + 1] < 0xa0);
    if (good) {
        memcpy(out, text, (size_t)len);
        out[len] = '\0';
    }
    OPENSSL_free(text);
    return good;
}

bool
stream_session_name(const struct stream_session *t, char *out, size_t n)
{
    X509 *cert = t->open ? SSL_get_peer_certificate(t->ssl) : NULL;
    X509_NAME *subject = cert ? X509_get_subject_name(cert) : NULL;
    int at = subject ? X509_NAME_get_index_by_NID(subject, NID_commonName, -1) : -1;
    /* Exactly one: with two names, somebody who looks elsewhere may take the other one. */
    bool one = at >= 0 && X509_NAME_get_index_by_NID(subject, NID_commonName, at) < 0;
    bool good =
        one && copy_name(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), out, n);
    X509_free(cert);
    return good;
}
