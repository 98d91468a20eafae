/* SPDX-License-Identifier: Apache-2.0 */
/* What dpctl makes of a switch's answers: the first byte is the command, the rest the messages that the
 * switch sends.  Whatever it hears, dpctl ends, and a failure says why. */
#include "structure.h"

#include "dpctl.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

const struct fuzz_format fuzz_format = FUZZ_OPENFLOW(1);

/* Those that read answers.  New ones go to the end: the corpus has their numbers. */
static const char *const commands[] = {
    "features",
    "get-config",
    "desc",
    "port-desc",
    "dump-queue",
    "stats-flow",
    "stats-aggr",
    "stats-table all=yes",
    "stats-port",
    "stats-queue",
    "stats-group",
    "group-desc",
    "group-features",
    "stats-meter",
    "meter-config",
    "meter-features",
    "table-features",
    "get-async",
    "role",
    "queue-get-config",
    "monitor",
    "status",
    "counters",
    "log",
    "why-dropped",
    "stats-cache",
    "save file",
    "qos-show",
    "qos-show --kernel",
    "qos-show --openconfig",
    "qos-watch",
    "qos-map",
    "qos-hosts",
    "qos-names",
    "qos-apply file port=1 up=20mbit down=100mbit",
    "bw-show",
    "bw-watch",
    "bw-assign group=1 ip_dst=10.0.0.1",
    "bw-del port=1,total",
    "bw-group port=1 group=1,share=30%",
    "ping 2",
    "trace in_port=1 eth_type=0x800",
    "capture --to -",
    "capture",
    "metrics",
    "top --once",
    "top",
    "dump-flows",
    "dump-ports",
    "show",
    "restart",
    "reload",
    "restore file --dry-run",
    "flow-mod cmd=add,table=0 in_port=1 apply:output=2",
    "qos-htb cmd=add,port=1,class=10,rate=6mbit,ceil=10mbit",
    "--atomic -F file",
    "qos-clear port=1",
    "qos-autorate port=1,min=5mbit,max=80mbit,reflector=192.0.2.1",
    "--complete qos-htb cmd=del,port=1,class=",
    "probe",
};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char file[] = "qos-htb cmd=add,port=1,class=10,rate=6mbit,ceil=10mbit\n";
    struct fuzz_world world = {.file = {(const uint8_t *)file, sizeof file - 1}};
    char json[] = "--json", line[128], *words[DPCTL_WORDS_MAX], *save;
    int k = 0;
    if (!n)
        return 0;
    if (data[0] & 0x80)
        words[k++] = json;
    snprintf(line, sizeof line, "%s",
             commands[(data[0] & 0x7f) % (sizeof commands / sizeof commands[0])]);
    for (char *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save))
        words[k++] = w;
    world.answers = (struct of_bytes){data + 1, n - 1};
    fuzz_dpctl(words, k, &world);
    return 0;
}
