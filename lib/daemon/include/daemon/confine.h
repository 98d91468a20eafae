/* SPDX-License-Identifier: Apache-2.0 */
/* What the process may do once it runs (docs/explanation/security.md): capabilities, its user, no new rights
 * by execve, system calls, and where it may write.  Children inherit all of it.
 *
 * If the kernel or the build lacks something, the log says so, and the program goes on without it.
 * A user is the exception: if the process can't become it, the program ends. */
#ifndef DAEMON_CONFINE_H
#define DAEMON_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum confine_how {
    CONFINE_ON,     /* a system call that isn't on the list fails with EPERM; the kernel logs it */
    CONFINE_STRICT, /* it ends the process */
    CONFINE_OFF     /* capabilities, system calls and files stay as they are */
};

struct confine {
    const char *user; /* USER[:GROUP], names or numbers; NULL: it stays who it is */
    unsigned how;     /* enum confine_how */
    bool core_dumps;  /* also lets other processes of the same user read its memory */
};

/* A file that the program will use. */
struct confine_path {
    const char *path;
    enum confine_use {
        CONFINE_READ,
        CONFINE_WRITE, /* or make and remove, and others in its directory */
        CONFINE_OPEN,  /* written where it is, or made */
        CONFINE_CONNECT
    } use;
};

struct confine_needs {
    uint64_t capabilities; /* CONFINE_CAP() */
    const struct confine_path *paths;
    size_t n_paths;
    gid_t group; /* that it gives sockets to; (gid_t)-1: none */
    bool bpf;    /* it loads programs into the kernel */
    bool pcap;   /* libpcap asks nl80211 what an interface is */
    bool again;  /* a process before it, which may be confined already, has started this one */
};

#define CONFINE_CAP(number) (UINT64_C(1) << (number))

/* What loading programs needs: since Linux 5.8 CAP_BPF, and CAP_PERFMON for arithmetic with pointers, which
 * the verifier refuses to others; before that CAP_SYS_ADMIN. */
uint64_t confine_bpf_capabilities(void);

/* To be called before secrets are in memory: no core dumps, and nobody but root can read the
 * memory. */
void confine_memory(const struct confine *c);

/* To be called before threads are made.  Files that the new user must own have to be given to it
 * before. */
void confine_process(const struct confine *c, const struct confine_needs *n);

/* The user and group to run as: *uid and *gid change if c->user says so.  -EINVAL: there is no
 * such user or group. */
int confine_user(const struct confine *c, uid_t *uid, gid_t *gid);

#endif
