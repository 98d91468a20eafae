/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a key, a certificate and a CA of any bytes: they are loaded, or refused with a sentence.
 *
 * An input is three texts with "\n----\n" between them: key, certificate, CA. */
#include <stream/tls.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char between[] = "\n----\n";

/* The text up to the next mark; what follows stays in *data. */
static int
file_of(const uint8_t **data, size_t *size, char path[32])
{
    const uint8_t *end = memmem(*data, *size, between, sizeof between - 1);
    size_t n = end ? (size_t)(end - *data) : *size, skip = end ? n + sizeof between - 1 : n;
    int fd = memfd_create("pem", MFD_CLOEXEC);
    if (fd < 0 || (n && write(fd, *data, n) != (ssize_t)n))
        abort();
    *data += skip;
    *size -= skip;
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[STREAM_TLS_FILES][32], why[512] = "";
    int fd[STREAM_TLS_FILES];
    struct stream_tls_options o = {0};
    struct stream_tls *tls = NULL;
    for (int i = 0; i < STREAM_TLS_FILES; i++) {
        fd[i] = file_of(&data, &size, path[i]);
        o.values[i] = path[i];
    }
    int err = stream_tls_new(&o, &tls, why, sizeof why);
    if (err ? tls || !why[0] : !tls)
        abort();
    stream_tls_free(tls);
    for (int i = 0; i < STREAM_TLS_FILES; i++)
        close(fd[i]);
    return 0;
}
