/* SPDX-License-Identifier: Apache-2.0 */
#include <daemon/daemon.h>
#include <daemon/log.h>
#include <daemon/notify.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIDFILE_TRIES 100

void
daemon_die(const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

/* The file that was named, or DIRECTORY/PROGRAM.SUFFIX, for as long as the process lives. */
static const char *
path_of(const char *named, const char *directory, const char *suffix)
{
    char *path;
    if (!named || *named)
        return named;
    if (asprintf(&path, "%s/%s.%s", directory, program_invocation_short_name, suffix) < 0)
        daemon_die("out of memory");
    return path;
}

/* The first process waits until the child is ready or has failed; the child prints why. */
__attribute__((noreturn)) static void
wait_for(pid_t child, int fd)
{
    char byte;
    int status = 0;
    if (read(fd, &byte, 1) == 1)
        _exit(0);
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1);
}

static void
detach(struct daemon *d)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        daemon_die("pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        daemon_die("fork: %s", strerror(errno));
    if (child) {
        close(ends[1]);
        wait_for(child, ends[0]);
    }
    close(ends[0]);
    d->ready_fd = ends[1];
    setsid();
}

/* Is it a plain file?  Somebody else may have put it there, so root neither writes through a
 * link nor gives away a file that has another name, too. */
static bool
is_plain_file(int fd)
{
    struct stat st;
    return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1;
}

static bool
is_still(const char *path, int fd)
{
    struct stat named, opened;
    return !lstat(path, &named) && !fstat(fd, &opened) && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

__attribute__((noreturn)) static void
die_of_owner(const struct daemon *d)
{
    char pid[16] = "";
    long owner = read(d->pid_fd, pid, sizeof pid - 1) > 0 ? strtol(pid, NULL, 10) : 0;
    daemon_die("%s is in use by process %ld: end it, name another --pidfile, or use --force",
               d->pidfile, owner);
}

/* The lock shows whether the owner still runs.  An owner that ends removes the file, so what is locked
 * may be nobody's any more. */
static void
lock_pidfile(struct daemon *d)
{
    int lock = d->takes_over ? LOCK_EX : LOCK_EX | LOCK_NB, tries = 0;
    do {
        if (d->pid_fd >= 0)
            close(d->pid_fd);
        d->pid_fd = open(d->pidfile, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (d->pid_fd < 0)
            daemon_die("%s: %s", d->pidfile,
                       errno == ELOOP ? "this is a symbolic link: remove it" : strerror(errno));
        if (flock(d->pid_fd, lock) && !d->force)
            die_of_owner(d);
    } while (!is_still(d->pidfile, d->pid_fd) && ++tries < PIDFILE_TRIES);
    if (!is_plain_file(d->pid_fd))
        daemon_die("%s: this is no plain file, or it has a second name (hard link): remove it",
                   d->pidfile);
}

static void
drop_pidfile(const struct daemon *d)
{
    int ignored = 0;
    if (d->pidfile && unlink(d->pidfile)) /* its directory is root's, and this is --user */
        ignored = ftruncate(d->pid_fd, 0);
    (void)ignored;
}

static const struct daemon *starting; /* it has its pidfile, and may still fail */

static void
drop_if_it_failed(void)
{
    if (starting)
        drop_pidfile(starting);
}

static void
write_pidfile(struct daemon *d)
{
    char pid[16];
    d->pid_fd = -1;
    lock_pidfile(d);
    starting = d;
    atexit(drop_if_it_failed);
    int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(d->pid_fd, 0) || write(d->pid_fd, pid, (size_t)n) != n)
        daemon_die("%s: %s", d->pidfile, strerror(errno));
}

void
daemon_begin(struct daemon *d)
{
    d->pidfile = path_of(d->pidfile, "/run", "pid");
    d->log_file = path_of(d->log_file, "/var/log", "log");
    if (d->log_file && log_to_is_chosen())
        daemon_die("--log-file and --log-to=%s exclude each other: leave one out", log_to_name());
    log_to_begin(d->log_file);
    d->detach &= !d->takes_over; /* the older one did */
    if (d->detach)
        detach(d);
    if (d->pidfile && !d->takes_over)
        write_pidfile(d);
}

/* What is no file, such as /dev/null, stays whose it is. */
static int
give(int fd, uid_t uid, gid_t gid)
{
    return is_plain_file(fd) && fchown(fd, uid, gid) ? -errno : 0;
}

static int
give_log(const char *file, uid_t uid, gid_t gid)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd < 0) /* through a link the new user opens a file with his own rights */
        return errno == ELOOP || errno == ENXIO ? 0 : -errno;
    int err = give(fd, uid, gid);
    close(fd);
    return err;
}

void
daemon_give(const struct daemon *d, uid_t uid, gid_t gid)
{
    int err = d->log_file ? give_log(d->log_file, uid, gid) : 0;
    if (!err && d->pidfile && !d->takes_over)
        err = give(d->pid_fd, uid, gid);
    if (err)
        log_warning(DAEMON, "the log or the pidfile stays another user's: %s", strerror(-err));
}

void
daemon_take_over(struct daemon *d)
{
    if (d->pidfile && d->takes_over)
        write_pidfile(d);
}

static void
become(int fd, int copy)
{
    if (fd >= 0 && fd != copy)
        dup2(fd, copy);
}

static int
open_log(const struct daemon *d)
{
    return open(d->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

void
daemon_ready(struct daemon *d)
{
    int null = d->detach ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1, log = null;
    if (d->log_file)
        log = open_log(d);
    if (d->log_file && log < 0)
        daemon_die("%s: %s", d->log_file, strerror(errno));
    if (d->detach && !d->log_file)
        log_to_background();
    become(null, STDIN_FILENO);
    become(null, STDOUT_FILENO);
    become(log, STDERR_FILENO);
    if (null > STDERR_FILENO)
        close(null);
    if (log > STDERR_FILENO && log != null)
        close(log);
    if (d->detach) {
        while (write(d->ready_fd, "", 1) < 0 && errno == EINTR)
            ;
        close(d->ready_fd);
    }
    starting = NULL;
    notify_send("READY=1");
}

int
daemon_signals(void)
{
    static const int events[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};
    static const int ignored[] = {SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGXFSZ};
    sigset_t s;
    sigemptyset(&s);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        sigaddset(&s, events[i]);
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        signal(ignored[i], SIG_IGN);
    sigprocmask(SIG_BLOCK, &s, NULL);
    int fd = signalfd(-1, &s, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        daemon_die("cannot wait for signals: %s", strerror(errno));
    return fd;
}

/* For logrotate, which has renamed the file. */
static void
reopen_log(const struct daemon *d)
{
    if (!d->log_file && d->reloads)
        return;
    if (!d->log_file) {
        log_notice(DAEMON, "SIGHUP: ignored, as there is no --log-file to open anew");
        return;
    }
    int log = open_log(d);
    if (log < 0) {
        log_error(DAEMON, "SIGHUP: %s: %s; the old file stays in use", d->log_file,
                  strerror(errno));
        return;
    }
    become(log, STDERR_FILENO);
    close(log);
    log_notice(DAEMON, "SIGHUP: the log goes on here");
}

void
daemon_reloaded(struct daemon *d)
{
    d->reload = false;
    notify_send("READY=1");
}

bool
daemon_is_over(struct daemon *d, int signals)
{
    struct signalfd_siginfo s;
    bool over = false;
    while (read(signals, &s, sizeof s) == sizeof s) {
        if (s.ssi_signo == SIGHUP) {
            notify_reloading();
            reopen_log(d);
            d->reload = true;
            if (!d->reloads)
                daemon_reloaded(d);
        } else {
            notify_send("STOPPING=1");
            log_notice(DAEMON, "ends: %s", strsignal((int)s.ssi_signo));
            over = true;
        }
    }
    return over;
}

void
daemon_end(struct daemon *d)
{
    log_end();
    starting = NULL;
    drop_pidfile(d);
}
