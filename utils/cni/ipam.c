/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam.h"
#include "conf.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_ROOM 4096

/* The first in CNI_PATH that may be executed. */
static bool
find(const struct cni *c, char path[PATH_ROOM])
{
    for (const char *dir = c->path; *dir;) {
        int n = (int)strcspn(dir, ":");
        if (n && snprintf(path, PATH_ROOM, "%.*s/%s", n, dir, c->conf.ipam) < PATH_ROOM &&
            !access(path, X_OK))
            return true;
        dir += n + (dir[n] == ':');
    }
    return false;
}

/* The configuration as a file, so that a plugin that writes before it has read blocks nobody. */
static int
open_input(const struct cni_conf *f)
{
    int fd = memfd_create("conf", MFD_CLOEXEC);
    for (size_t at = 0; fd >= 0 && at < f->len;) {
        ssize_t n = write(fd, f->text + at, f->len - at);
        if (n < 0) {
            close(fd);
            return -1;
        }
        at += (size_t)n;
    }
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    return fd;
}

__attribute__((noreturn)) static void
become(const char *path, int in, int out, pid_t parent)
{
    char *argv[] = {(char *)(uintptr_t)path, NULL};
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
        execv(path, argv);
    _exit(127);
}

/* Its whole output; *status as waitpid() has it.  -errno. */
static int
run(const struct cni *c, const char *path, char **text, size_t *len, int *status)
{
    int out[2], in = open_input(&c->conf), err;
    pid_t parent = getpid(), pid;
    *text = NULL;
    if (in < 0 || pipe2(out, O_CLOEXEC)) {
        err = -errno;
        if (in >= 0)
            close(in);
        return err;
    }
    if (!(pid = fork()))
        become(path, in, out[1], parent);
    err = pid < 0 ? -errno : 0;
    close(in);
    close(out[1]);
    if (!err) {
        err = conf_read_all(out[0], text, len);
        if (err)
            kill(pid, SIGKILL);
        while (waitpid(pid, status, 0) < 0 && errno == EINTR)
            ;
    }
    close(out[0]);
    return err;
}

/* Passes its error on: {"code": 11, "msg": ..., "details": ...}. */
static int
pass_on(struct cni *c, const char *command, const json_t *answer, int status)
{
    const char *msg = json_string_value(json_object_get(answer, "msg"));
    const char *details = json_string_value(json_object_get(answer, "details"));
    json_int_t code = json_integer_value(json_object_get(answer, "code"));
    char how[60];
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "ended by signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof how, "exit status %d, and no error as JSON", WEXITSTATUS(status));
    cni_fail(c, code > 0 && code < UINT32_MAX ? (unsigned)code : CNI_IO, "IPAM plugin %s, %s: %s",
             c->conf.ipam, command, msg ? msg : how);
    snprintf(c->error.details, sizeof c->error.details, "%s", details ? details : "");
    return -1;
}

int
ipam_run(struct cni *c, const char *command, json_t **answer)
{
    char path[PATH_ROOM], *text;
    size_t len = 0;
    int status = 0;
    *answer = NULL;
    if (!c->conf.ipam)
        return 0;
    if (!find(c, path))
        return cni_fail(c, CNI_BAD_CONFIG, "ipam.type: there is no program %s in CNI_PATH=%.300s",
                        c->conf.ipam, c->path);
    if (setenv("CNI_COMMAND", command, 1))
        return cni_no_memory(c);
    int err = run(c, path, &text, &len, &status);
    if (err)
        return cni_fail(c, CNI_IO, "running IPAM plugin %s: %s", path, strerror(-err));
    json_t *json = json_loadb(text, len, 0, NULL);
    free(text);
    if (status)
        err = pass_on(c, command, json, status);
    else if (!strcmp(command, "ADD") && !json)
        err =
            cni_fail(c, CNI_BAD_JSON, "IPAM plugin %s: its answer to ADD is no JSON", c->conf.ipam);
    if (err || strcmp(command, "ADD")) {
        json_decref(json);
        json = NULL;
    }
    *answer = json;
    return err;
}
