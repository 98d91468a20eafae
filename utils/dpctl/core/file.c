/* SPDX-License-Identifier: Apache-2.0 */
#include <core/file.h>
#include <core/say.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int
write_all(int fd, const struct of_wr *text)
{
    for (size_t at = 0; at < text->len;) {
        ssize_t n = write(fd, text->buf + at, text->len - at);
        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int
write_to(const char *path, const struct of_wr *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = write_all(fd, text);
    return close(fd) && !err ? -errno : err;
}

/* The temporary file begins with a dot and ends in no suffix, so that a program that reads the
 * directory's *.prom does not take it. */
static int
replace(const char *path, const struct of_wr *text)
{
    char temporary[4096 + 16];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    mode_t mask = umask(0);
    umask(mask);
    if ((size_t)snprintf(temporary, sizeof temporary, "%.*s.%s.XXXXXX", (int)(name - path), path,
                         name) >= sizeof temporary)
        return -ENAMETOOLONG;
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = write_all(fd, text);
    if (!err && fchmod(fd, 0666 & ~mask))
        err = -errno;
    if (close(fd) && !err)
        err = -errno;
    if (!err && rename(temporary, path))
        err = -errno;
    if (err)
        unlink(temporary);
    return err;
}

enum status
file_replace(struct ctx *c, const char *path, const struct of_wr *text)
{
    struct stat st;
    if (text->overflow)
        return say_memory(c);
    bool special = !stat(path, &st) && !S_ISREG(st.st_mode);
    if (special && S_ISDIR(st.st_mode))
        return say_failed(c, "--to %s: a directory; name a file in it", path);
    int err = !strcmp(path, "-") ? write_all(STDOUT_FILENO, text)
              : special          ? write_to(path, text)
                                 : replace(path, text);
    return err ? say_failed(c, "--to %s: %s", path, strerror(-err)) : DPCTL_OK;
}
