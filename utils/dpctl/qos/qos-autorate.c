/* SPDX-License-Identifier: Apache-2.0 */
/* qos-autorate: a class's rate follows what its link carries. */
#include <autorate/autorate.h>
#include <core/command.h>

static enum status
qos_autorate(struct ctx *c, const struct command *self, char **words, int n)
{
    return autorate_run(c, words, n);
}

static const char help[] =
    "For a link whose rate changes (LTE, DOCSIS, Starlink): lowers the class's rate and ceiling when\n"
    "the delay beyond the port rises, raises them while the class needs more and the delay is fine.\n"
    "  port=N           the port that leads to the link\n"
    "  class=N          the queue; 0 (default): the port's root class, or CAKE or TBF there.  A root\n"
    "                   class that isn't there is made\n"
    "  min=RATE         what the link always carries; the least that the class gets\n"
    "  max=RATE         the most\n"
    "  base=RATE        where it begins, and returns to when idle (default: between min and max)\n"
    "  passive=yes      measures the round trips of what passes; reflectors only while there are none\n"
    "  safe=RATE        the rate at the end, and while nothing is measured\n"
    "                   (default: min)\n"
    "  reflector=ADDR   hosts beyond the link, to 8: 10.0.0.1,fd00::1 (ICMP echo), or\n"
    "                   udp:10.0.0.1:7 (UDP echo)\n"
    "  limit=15ms       the delay above the least that a reflector or a pair of hosts has shown\n"
    "  interval=100ms   between two probes, and two changes (50ms to 2s)\n"
    "  direction=in     what enters by the port (default: out)\n"
    "  count=N          ends after N lines (default: at SIGINT, ^C)\n"
    "A line a second.  Probes must not wait in the class's own queue: fq_codel (the default) and CAKE\n"
    "let them pass.  A switch that goes away is connected to again.";

static const struct command rows[] = {
    {.name = "qos-autorate",
     .subject = SUBJECT_QOS,
     .args = "port=N [class=N] min=RATE max=RATE [passive=yes] [reflector=ADDR[,ADDR]...] "
             "[KEY=VALUE]...",
     .help = "a queue's rate follows what its link carries",
     .text = help,
     .examples =
         "qos-autorate port=1,class=0,min=5mbit,max=80mbit,reflector=192.0.2.1,198.51.100.1\n"
         "qos-autorate port=1,min=5mbit,max=80mbit,passive=yes\n"
         "qos-autorate port=2,min=2mbit,max=30mbit,limit=30ms reflector=udp:192.0.2.1:7",
     .run = qos_autorate},
};

const struct command_table commands_qos_autorate = COMMAND_TABLE(rows);
