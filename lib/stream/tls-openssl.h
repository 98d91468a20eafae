/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that see OpenSSL share. */
#ifndef STREAM_TLS_OPENSSL_H
#define STREAM_TLS_OPENSSL_H

#include "inside.h"

#include <openssl/ssl.h>

/* A file as it was when it was loaded. */
struct stamp {
    ino_t ino;
    struct timespec mtime;
};

struct stream_tls {
    SSL_CTX *ctx;
    BIO_METHOD *bio;                   /* NULL: no session has been begun */
    struct stream_tls_options options; /* copies */
    struct stamp loaded[STREAM_TLS_FILES];
};

/* tls-files.c: to be called before a session is begun, since certificates are renewed while the
 * program runs. */
void stream_tls_load_again(struct stream_tls *tls);

#endif
