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
write_all(int fd, struct of_bytes content)
{
    for (size_t at = 0; at < content.n;) {
        ssize_t n = write(fd, content.p + at, content.n - at);
        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int
write_to(const char *path, struct of_bytes content)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = write_all(fd, content);
    return close(fd) && !err ? -errno : err;
}

/* The temporary file begins with a dot and ends in no suffix, so that a program that reads the
 * directory's *.prom does not take it. */
static int
replace(const char *path, struct of_bytes content)
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
    int err = write_all(fd, content);
    if (!err && (fchmod(fd, 0666 & ~mask) || fsync(fd)))
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
file_replace(struct ctx *c, const char *path, struct of_bytes content)
{
    struct stat st;
    bool special = !stat(path, &st) && !S_ISREG(st.st_mode);
    if (special && S_ISDIR(st.st_mode))
        return say_failed(c, "%s: a directory; name a file in it", path);
    int err = !strcmp(path, "-") ? write_all(STDOUT_FILENO, content)
              : special          ? write_to(path, content)
                                 : replace(path, content);
    return err ? say_failed(c, "%s: %s", path, strerror(-err)) : DPCTL_OK;
}

enum status
file_read(struct ctx *c, const char *path, size_t most, struct of_wr *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return say_failed(c, "%s can't be opened: %s", path, strerror(errno));
    uint8_t buf[16384];
    ssize_t n = 0;
    *out = of_wr_grow(most);
    while (!out->overflow && ((n = read(fd, buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0)
            of_wr_bytes(out, buf, (size_t)n);
    int err = n < 0 ? errno : 0;
    close(fd);
    if (!err && !out->overflow)
        return DPCTL_OK;
    of_wr_free(out);
    return err ? say_failed(c, "%s can't be read: %s", path, strerror(err))
               : say_failed(c, "%s is larger than %zu MB", path, most >> 20);
}
