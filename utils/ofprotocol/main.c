/* SPDX-License-Identifier: Apache-2.0 */
/* ofprotocol: connects controllers, and whoever asks, to a datapath.  ofdatapath does all of that
 * itself; this is for scripts that start two programs, with BOFUSS's command line. */
#include "relay.h"

#include <daemon/daemon.h>
#include <stream/tls.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage_text[] =
    "usage: ofprotocol [OPTION]... DATAPATH [CONTROLLER[,CONTROLLER]...]\n"
    "Relays OpenFlow between controllers and a datapath (ofdatapath, which can do without: give it\n"
    "the same addresses).\n"
    "\n"
    "DATAPATH and CONTROLLER are unix:PATH, tcp:HOST[:PORT] or tls:HOST[:PORT] (6653)\n"
    "\n"
    "      --fail=closed|open       while no controller is there: the flows go on, or the switch\n"
    "                               forwards by itself (as ofdatapath was told)\n"
    "  -l, --listen=ADDRESS         accept connections, such as dpctl's, at punix:PATH or\n"
    "                               ptcp:[PORT][:IP] (with TLS ptls:); may be given again\n"
    "      --inactivity-probe=SECS  silence after which a controller is probed, and after as much\n"
    "                               again given up (15; 0: never)\n"
    "      --max-backoff=SECS       the longest wait before connecting again (8)\n" STREAM_TLS_USAGE
        DAEMON_USAGE "  -h, --help\n"
    "  -V, --version\n"
    "\n"
    "Read and of no effect, for BOFUSS's scripts: --max-idle, --monitor, --accept-vconn,\n"
    "--no-resolv-conf, --rate-limit, --burst-limit, --stp, --no-stp, --in-band, --out-of-band,\n"
    "-v, --verbose.\n"
    "\n"
    "SIGTERM, SIGINT and SIGQUIT end it.  SIGHUP opens the --log-file anew.\n";

enum { OPT_FAIL = 'F', OPT_PROBE = 256, OPT_BACKOFF, OPT_NOTHING };

static const struct option options[] = {
    {"fail", required_argument, NULL, OPT_FAIL},
    {"listen", required_argument, NULL, 'l'},
    {"inactivity-probe", required_argument, NULL, OPT_PROBE},
    {"max-backoff", required_argument, NULL, OPT_BACKOFF},
    {"max-idle", required_argument, NULL, OPT_NOTHING},
    {"monitor", required_argument, NULL, 'm'},
    {"accept-vconn", required_argument, NULL, OPT_NOTHING},
    {"no-resolv-conf", no_argument, NULL, OPT_NOTHING},
    {"rate-limit", optional_argument, NULL, OPT_NOTHING},
    {"burst-limit", required_argument, NULL, OPT_NOTHING},
    {"stp", no_argument, NULL, OPT_NOTHING},
    {"no-stp", no_argument, NULL, OPT_NOTHING},
    {"in-band", no_argument, NULL, OPT_NOTHING},
    {"out-of-band", no_argument, NULL, OPT_NOTHING},
    DAEMON_LONG_OPTIONS,
    /* clang-format off */
    STREAM_TLS_LONGS
    /* clang-format on */
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {0},
};

static void
listen_at(struct relay *r, const char *address)
{
    char why[256];
    if (r->n_listeners == LISTENERS_MAX)
        daemon_die("--listen %s: may be given %d times", address, LISTENERS_MAX);
    if (stream_listen(address, r->tls, &r->listeners[r->n_listeners], why, sizeof why)) {
        relay_free(r);
        daemon_die("%s", why);
    }
    r->n_listeners++;
}

struct args {
    struct daemon daemon;
    const char *listen[LISTENERS_MAX + 1];
    unsigned n_listen;
    struct stream_tls_options tls;
};

static void
take_option(struct relay *r, struct args *a, int opt)
{
    switch (opt) {
    case OPT_FAIL: r->fail = daemon_arg_fail(optarg) ? OFP_FAIL_OPEN : OFP_FAIL_CLOSED; break;
    case 'l':
        if (a->n_listen <= LISTENERS_MAX) /* one too many is refused when listening */
            a->listen[a->n_listen++] = optarg;
        break;
    case OPT_PROBE:
        r->probe_ms = daemon_arg_seconds("--inactivity-probe", optarg, ", or 0 for never");
        break;
    case OPT_BACKOFF: r->backoff_max_ms = daemon_arg_seconds("--max-backoff", optarg, ""); break;
    case OPT_NOTHING:
    case 'm': break;
    case 'h': fputs(usage_text, stdout); exit(0);
    case 'V': puts("ofprotocol (ofqos) " OFQOS_VERSION); exit(0);
    default:
        if (daemon_option(&a->daemon, opt, optarg) || stream_tls_option(&a->tls, opt, optarg))
            break;
        fputs("try: ofprotocol --help\n", stderr);
        exit(1);
    }
}

static void
parse_addresses(struct relay *r, char **words, int n)
{
    char why[256];
    if (n < 1 || n > 2)
        daemon_die("the datapath's address, then the controllers' is right: such as unix:/tmp/s1 "
                   "tcp:127.0.0.1:6653 (see --help)");
    r->datapath_text = words[0];
    if (stream_resolve(words[0], r->tls, &r->datapath, why, sizeof why))
        daemon_die("%s", why);
    for (char *list = n > 1 ? words[1] : NULL, *one; (one = strsep(&list, ","));)
        if (*one && target_add(r, one, why, sizeof why))
            daemon_die("%s", why);
}

int
main(int argc, char **argv)
{
    static struct relay r = {.probe_ms = 15000, .backoff_max_ms = 8000, .fail = OFP_FAIL_OWN};
    struct args a = {0};
    char why[256];
    int opt;
    while ((opt = getopt_long(argc, argv, "l:m:F:hV" DAEMON_SHORT_OPTIONS, options, NULL)) != -1)
        take_option(&r, &a, opt);
    if (stream_tls_new(&a.tls, &r.tls, why, sizeof why))
        daemon_die("%s", why);
    parse_addresses(&r, argv + optind, argc - optind);
    daemon_begin(&a.daemon);
    int signals = daemon_signals();
    for (unsigned i = 0; i < a.n_listen; i++)
        listen_at(&r, a.listen[i]);
    daemon_ready(&a.daemon);
    relay_loop(&r, &a.daemon, signals);
    relay_free(&r);
    close(signals);
    daemon_end(&a.daemon);
    return 0;
}
