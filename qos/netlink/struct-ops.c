/* SPDX-License-Identifier: Apache-2.0 */
#include "struct-ops.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* The type that a kernel has if `struct Qdisc_ops` can be registered.  The release number would
 * not tell: distributions leave CONFIG_NET_SCH_BPF out, and others backport it. */
static const char type_name[] = "\0bpf_struct_ops_Qdisc_ops";

#define CHUNK 16384

/* Are the n bytes of a file from `at` on read?  Else -errno. */
static int
read_all(int fd, uint64_t at, char *to, size_t n)
{
    for (size_t got = 0; got < n;) {
        ssize_t r = pread(fd, to + got, n - got, (off_t)(at + got));
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return r ? -errno : -EBADMSG;
        got += (size_t)r;
    }
    return 0;
}

/* Each chunk begins with the end of the one before, where the name may begin. */
static int
find_name(int fd, uint64_t at, uint64_t left)
{
    char buf[sizeof type_name + CHUNK];
    size_t kept = 0;
    while (left) {
        size_t n = left < CHUNK ? (size_t)left : CHUNK;
        int err = read_all(fd, at, buf + kept, n);
        if (err)
            return err;
        if (memmem(buf, kept + n, type_name, sizeof type_name))
            return 1;
        size_t all = kept + n;
        kept = all < sizeof type_name ? all : sizeof type_name;
        memmove(buf, buf + all - kept, kept);
        at += n;
        left -= n;
    }
    return 0;
}

/* struct_ops need a kernel with BTF: if sysfs is there and the file isn't, the kernel has none. */
int
netlink_struct_ops(const char *btf)
{
    struct btf_header h;
    int fd = open(btf, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT && !access("/sys/kernel", F_OK) ? 0 : -errno;
    int err = read_all(fd, 0, (char *)&h, sizeof h);
    if (!err && (h.magic != BTF_MAGIC || h.hdr_len < sizeof h))
        err = -EBADMSG;
    err = err ? err : find_name(fd, (uint64_t)h.hdr_len + h.str_off, h.str_len);
    close(fd);
    return err;
}
