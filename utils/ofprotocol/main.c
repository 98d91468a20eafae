/* SPDX-License-Identifier: Apache-2.0 */
/* ofprotocol: relays OpenFlow between controllers and a datapath.  ofdatapath does all of that
 * itself; this is for scripts that start two programs, with BOFUSS's command line. */
#include "relay.h"

#include <daemon/confine.h>
#include <daemon/daemon.h>
#include <daemon/log.h>
#include <daemon/options.h>
#include <stream/tls.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
    struct daemon daemon;
    struct stream_tls_options tls;
    const char *listen[LISTENERS_MAX];
    unsigned n_listen, fail, probe_ms, backoff_max_ms;
} args = {
    .tls.warn = log_tls_warning, .fail = OFP_FAIL_OWN, .probe_ms = 15000, .backoff_max_ms = 8000};

static bool
take_listen(const char *address, char *why, size_t n)
{
    snprintf(why, n, "may be given %d times", LISTENERS_MAX);
    if (args.n_listen == LISTENERS_MAX)
        return false;
    args.listen[args.n_listen++] = address;
    return true;
}

static const struct daemon_word fail_words[] = {{"closed", OFP_FAIL_CLOSED},
                                                {"open", OFP_FAIL_OPEN},
                                                {"secure", OFP_FAIL_CLOSED},
                                                {"standalone", OFP_FAIL_OPEN},
                                                {0}};

#define TLS_OPTION(id, name, arg, help)                                                            \
    {name, 0, arg, help, NULL, OPTION_TEXT(args.tls.values[STREAM_TLS_##id])},

static const struct daemon_option options[] = {
    OPTION_GROUP("Controllers and other peers"),
    {"fail", 'F', "closed|open",
     "what becomes of packets that match no flow while no controller is connected: closed drops them, "
     "open forwards them as a learning switch does",
     "as ofdatapath was told", OPTION_WORD(args.fail, fail_words)},
    {"listen", 'l', "ADDRESS",
     "accept connections, such as dpctl's, at punix:PATH, ptcp:[PORT][:IP] or ptls:[PORT][:IP]; "
     "may be given again",
     NULL, OPTION_CALL(take_listen)},
    {"inactivity-probe", 0, "SECS",
     "seconds of silence before an echo request, and again before the connection is closed", NULL,
     OPTION_SECONDS_OR(args.probe_ms, 0)},
    {"max-backoff", 0, "SECS", "the longest wait before connecting again", NULL,
     OPTION_SECONDS(args.backoff_max_ms)},

    OPTION_GROUP("TLS"),
    STREAM_TLS_OPTIONS(TLS_OPTION)

        DAEMON_OPTIONS(args.daemon, "with --pidfile: start even if another one runs", NULL),

    {"max-idle", 0, "SECS", NULL, NULL, OPTION_IGNORED},
    {"monitor", 'm', "ADDRESS", NULL, NULL, OPTION_IGNORED},
    {"accept-vconn", 0, "REGEX", NULL, NULL, OPTION_IGNORED},
    {"no-resolv-conf", 0, NULL, NULL, NULL, OPTION_IGNORED},
    {"rate-limit", 0, "[RATE]", NULL, NULL, OPTION_IGNORED},
    {"burst-limit", 0, "N", NULL, NULL, OPTION_IGNORED},
    {"stp", 0, NULL, NULL, NULL, OPTION_IGNORED},
    {"no-stp", 0, NULL, NULL, NULL, OPTION_IGNORED},
    {"in-band", 0, NULL, NULL, NULL, OPTION_IGNORED},
    {"out-of-band", 0, NULL, NULL, NULL, OPTION_IGNORED},
    OPTION_END,
};

static const struct daemon_program program = {
    .name = "ofprotocol",
    .version = "ofprotocol (ofqos) " OFQOS_VERSION,
    .before =
        "usage: ofprotocol [OPTION]... DATAPATH [CONTROLLER[,CONTROLLER]...]\n"
        "Relays OpenFlow between controllers and a datapath (ofdatapath, which can do without:\n"
        "give it the same addresses).\n"
        "\n"
        "DATAPATH and CONTROLLER are unix:PATH, tcp:HOST[:PORT] or tls:HOST[:PORT] (6653)\n",
    .after = "\n"
             "SIGTERM, SIGINT and SIGQUIT end it.  SIGHUP opens the --log-file anew.\n",
    .words = "unix:|tcp:|tls:",
    .options = options,
};

static void
listen_at(struct relay *r, const char *address)
{
    char why[256];
    if (stream_listen(address, r->tls, &r->listeners[r->n_listeners], why, sizeof why)) {
        relay_free(r);
        daemon_die("%s", why);
    }
    r->n_listeners++;
}

static void
parse_addresses(struct relay *r, char **words, int n)
{
    char why[256];
    if (n < 1 || n > 2)
        daemon_die("give the datapath's address, then the controllers': ofprotocol unix:/tmp/s1 "
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
    static struct relay r;
    char why[256];
    int first = daemon_options(&program, argc, argv);
    r.fail = (uint8_t)args.fail;
    r.probe_ms = args.probe_ms;
    r.backoff_max_ms = args.backoff_max_ms;
    confine_memory(&(struct confine){.how = CONFINE_ON}); /* it has a key, too */
    if (stream_tls_new(&args.tls, &r.tls, why, sizeof why))
        daemon_die("%s", why);
    parse_addresses(&r, argv + first, argc - first);
    daemon_begin(&args.daemon);
    int signals = daemon_signals();
    for (unsigned i = 0; i < args.n_listen; i++)
        listen_at(&r, args.listen[i]);
    daemon_ready(&args.daemon);
    relay_loop(&r, &args.daemon, signals);
    relay_free(&r);
    close(signals);
    daemon_end(&args.daemon);
    return 0;
}
