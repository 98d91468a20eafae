/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and certificates in files, and how OpenSSL uses them. */
#include "tls-openssl.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What TLS 1.2 may use; 1.3 has nothing else. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

const char stream_tls_missing[] = "TLS needs --private-key, --certificate and --ca-cert";

static const char *const option_names[] = {
#define NAME(id, name, arg, help) "--" name,
    STREAM_TLS_OPTIONS(NAME)};

/* A daemon has nobody to type a password. */
static int
no_password(char *buf, int size, int writing, void *asked)
{
    *(bool *)asked = true;
    return 0;
}

/* The file of an option can't be used. */
static int
bad_file(const struct stream_tls_options *o, enum stream_tls_id id, const char *what,
         struct why why)
{
    unsigned long e = ERR_peek_error();
    bool none = ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE;
#ifdef ERR_LIB_OSSL_DECODER /* OpenSSL 3 says so of a key */
    none = none || ERR_GET_LIB(e) == ERR_LIB_OSSL_DECODER;
#endif
    const char *reason = ERR_reason_error_string(e);
    if (none || !reason)
        return stream_refuse(why, -EINVAL, "%s %s: the file has no %s in PEM format",
                             option_names[id], o->values[id], what);
    return stream_refuse(why, -EINVAL, "%s %s: the %s can't be used: %s", option_names[id],
                         o->values[id], what, reason);
}

static int
check_files(const struct stream_tls_options *o, struct why why)
{
    for (int i = 0; i < STREAM_TLS_FILES; i++) {
        if (!o->values[i])
            return stream_refuse(why, -EINVAL, "%s is missing: %s", option_names[i],
                                 stream_tls_missing);
        FILE *f = fopen(o->values[i], "re");
        if (!f)
            return stream_refuse(why, -errno, "%s %s: %s", option_names[i], o->values[i],
                                 strerror(errno));
        fclose(f);
    }
    return 0;
}

static int
load_key(SSL_CTX *ctx, const struct stream_tls_options *o, struct why why)
{
    const char *file = o->values[STREAM_TLS_PRIVATE_KEY];
    bool asked = false;
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, &asked);
    int ok = SSL_CTX_use_PrivateKey_file(ctx, file, SSL_FILETYPE_PEM);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
    if (asked)
        return stream_refuse(why, -EINVAL, "%s %s: it is encrypted: give one without a password",
                             option_names[STREAM_TLS_PRIVATE_KEY], file);
    bool other = ok != 1 && ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
    if (ok != 1 && !other)
        return bad_file(o, STREAM_TLS_PRIVATE_KEY, "private key", why);
    if (other || SSL_CTX_check_private_key(ctx) != 1)
        return stream_refuse(why, -EINVAL, "%s %s: not the key of the certificate %s",
                             option_names[STREAM_TLS_PRIVATE_KEY], file,
                             o->values[STREAM_TLS_CERTIFICATE]);
    return 0;
}

static int
load_into(SSL_CTX *ctx, const struct stream_tls_options *o, struct why why)
{
    const char *ca = o->values[STREAM_TLS_CA_CERT];
    if (SSL_CTX_use_certificate_chain_file(ctx, o->values[STREAM_TLS_CERTIFICATE]) != 1)
        return bad_file(o, STREAM_TLS_CERTIFICATE, "certificate", why);
    int err = load_key(ctx, o, why);
    if (err)
        return err;
    ERR_clear_error();
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(ca);
    if (!names || SSL_CTX_load_verify_locations(ctx, ca, NULL) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return bad_file(o, STREAM_TLS_CA_CERT, "certificate", why);
    }
    SSL_CTX_set_client_CA_list(ctx, names);
    return 0;
}

static SSL_CTX *
new_context(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_method());
    if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) ||
        !SSL_CTX_set_cipher_list(ctx, CIPHERS)) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    /* Trusts the certificate of --ca-cert itself, even if another CA has signed it. */
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    /* Every connection proves anew who it is: nothing is resumed or negotiated again. */
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_num_tickets(ctx, 0);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY); /* one record a call */
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    return ctx;
}

/* Loads the files.  If they are no good, what was loaded before stays. */
static int
load_files(struct stream_tls *tls, struct why why)
{
    SSL_CTX *ctx = NULL;
    ERR_clear_error();
    int err = check_files(&tls->options, why);
    if (!err && !(ctx = new_context()))
        err = stream_refuse(why, -ENOMEM, "out of memory");
    if (!err)
        err = load_into(ctx, &tls->options, why);
    ERR_clear_error();
    if (err) {
        SSL_CTX_free(ctx);
        return err;
    }
    SSL_CTX_free(tls->ctx); /* connections that use it have their share of it */
    tls->ctx = ctx;
    return 0;
}

/* Whether the files have changed since the last call. */
static bool
files_changed(struct stream_tls *tls)
{
    bool changed = false;
    for (int i = 0; i < STREAM_TLS_FILES; i++) {
        struct stamp *was = &tls->loaded[i];
        struct stat st;
        if (stat(tls->options.values[i], &st))
            continue; /* it is being replaced just now */
        changed = changed || st.st_ino != was->ino || st.st_mtim.tv_sec != was->mtime.tv_sec ||
                  st.st_mtim.tv_nsec != was->mtime.tv_nsec;
        *was = (struct stamp){st.st_ino, st.st_mtim};
    }
    return changed;
}

void
stream_tls_load_again(struct stream_tls *tls)
{
    static const char stay[] = "; the files as they were stay in use";
    char why[256 + sizeof stay];
    if (!files_changed(tls) || !load_files(tls, (struct why){why, 256}) || !tls->options.warn)
        return;
    strcat(why, stay);
    tls->options.warn(why);
}

static bool
copy_options(const struct stream_tls_options *from, struct stream_tls_options *to)
{
    for (int i = 0; i < STREAM_TLS_N; i++)
        if (from->values[i] && !(to->values[i] = strdup(from->values[i])))
            return false;
    to->warn = from->warn;
    return true;
}

int
stream_tls_new(const struct stream_tls_options *o, struct stream_tls **out, char *why_text,
               size_t why_len)
{
    struct why why = {why_text, why_len};
    bool any = false;
    *out = NULL;
    for (int i = 0; i < STREAM_TLS_N; i++)
        any = any || o->values[i];
    int err = any ? check_files(o, why) : 0;
    const char *name = o->values[STREAM_TLS_PEER_NAME];
    if (!err && name && !*name)
        err =
            stream_refuse(why, -EINVAL, "--peer-name is empty: give a host name or an IP address");
    if (err || !any)
        return err;
    struct stream_tls *tls = calloc(1, sizeof *tls);
    if (!tls || !copy_options(o, &tls->options))
        err = stream_refuse(why, -ENOMEM, "out of memory");
    else
        files_changed(tls); /* before reading, so that a change meanwhile is not missed */
    if (!err)
        err = load_files(tls, why);
    if (err)
        stream_tls_free(tls);
    else
        *out = tls;
    return err;
}

void
stream_tls_free(struct stream_tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->ctx);
    BIO_meth_free(tls->bio);
    for (int i = 0; i < STREAM_TLS_N; i++)
        free((char *)(uintptr_t)tls->options.values[i]);
    free(tls);
}
