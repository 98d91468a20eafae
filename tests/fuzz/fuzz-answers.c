/* SPDX-License-Identifier: Apache-2.0 */
/* What dpctl makes of a switch's answers: the first byte is the command, the rest the messages that the
 * switch sends.  Whatever it hears, dpctl ends, and a failure says why. */
#include "structure.h"

#include "dpctl.h"

#include <oflib/codec.h>
#include <oflib/state.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

const struct fuzz_format fuzz_format = FUZZ_OPENFLOW(1);

static const char
    queues[] = "qos-htb cmd=add,port=1,class=10,rate=6mbit,ceil=10mbit\n",
    changes[] = "flow-mod cmd=add,table=0 in_port=1 apply:output=2\n"
                "group-mod cmd=mod,type=all,group=1 output=1\n"
                "qos-htb cmd=change,port=1,class=10,rate=5mbit\n",
    profile[] = "set up=20mbit\nhtb class=0,rate=$up\nhtb class=10,name=a,rate=10%,ceil=100%\n"
                "htb class=20,name=b,rate=90%,ceil=100%\nfq_codel class=b\nmap queue=a,dscp=ef\n",
    words[] = "total 20mbit\nguarantee 10%, latency 10ms for app=sip\nguarantee 85% for others\n",
    keys[] = "pqfmgtp<>rn+-/et\n\x1bh UDEU  qnr<Q";

/* Those that read answers.  New ones go to the end: the corpus has their numbers. */
static const struct {
    const char *words, *file, *keys; /* file NULL: `queues` */
} commands[] = {
    {.words = "features"},
    {.words = "get-config"},
    {.words = "desc"},
    {.words = "port-desc"},
    {.words = "dump-queue"},
    {.words = "stats-flow"},
    {.words = "stats-aggr"},
    {.words = "stats-table all=yes"},
    {.words = "stats-port"},
    {.words = "stats-queue"},
    {.words = "stats-group"},
    {.words = "group-desc"},
    {.words = "group-features"},
    {.words = "stats-meter"},
    {.words = "meter-config"},
    {.words = "meter-features"},
    {.words = "table-features"},
    {.words = "get-async"},
    {.words = "role"},
    {.words = "queue-get-config"},
    {.words = "monitor"},
    {.words = "status"},
    {.words = "counters"},
    {.words = "log"},
    {.words = "why-dropped"},
    {.words = "stats-cache"},
    {.words = "save file"},
    {.words = "qos-show"},
    {.words = "qos-show --kernel"},
    {.words = "qos-show --openconfig"},
    {.words = "qos-watch"},
    {.words = "qos-map"},
    {.words = "qos-hosts"},
    {.words = "qos-names"},
    {.words = "qos-apply file port=1 up=20mbit down=100mbit"},
    {.words = "bw-show"},
    {.words = "bw-watch"},
    {.words = "bw-assign group=1 ip_dst=10.0.0.1"},
    {.words = "bw-del port=1,total"},
    {.words = "bw-group port=1 group=1,share=30%"},
    {.words = "ping 2"},
    {.words = "trace in_port=1 eth_type=0x800"},
    {.words = "capture --to -"},
    {.words = "capture"},
    {.words = "metrics"},
    {.words = "top --once"},
    {.words = "top"},
    {.words = "dump-flows"},
    {.words = "dump-ports"},
    {.words = "show"},
    {.words = "restart"},
    {.words = "reload"},
    {.words = "restore file --dry-run"},
    {.words = "flow-mod cmd=add,table=0 in_port=1 apply:output=2"},
    {.words = "qos-htb cmd=add,port=1,class=10,rate=6mbit,ceil=10mbit"},
    {.words = "--atomic -F file"},
    {.words = "qos-clear port=1"},
    {.words = "qos-autorate port=1,min=5mbit,max=80mbit,reflector=192.0.2.1"},
    {.words = "--complete qos-htb cmd=del,port=1,class="},
    {.words = "probe"},
    {.words = "top", .keys = keys},
    {.words = "top flows in_port=1 sort=pps", .keys = keys},
    {.words = "top queues --once filter=1"},
    {.words = "top meters count=2 rows=3"},
    {.words = "top groups --once"},
    {.words = "top tables --once"},
    {.words = "bw-watch", .keys = keys},
    {.words = "qos-map show"},
    {.words = "qos-map add queue=10,dscp=ef queue=20,app=ssh then=normal"},
    {.words = "qos-map replace queue=10,dscp=ef wash --dry-run"},
    {.words = "qos-map del"},
    {.words = "qos-hosts port=1 prefix=10.0.0.0/29,rate=1mbit,ceil=20mbit then=normal"},
    {.words = "qos-hosts port=1 show"},
    {.words = "qos-hosts port=1 del"},
    {.words = "qos-names queue=20,host=*.example.org server=10.0.0.53 then=normal"},
    {.words = "qos-apply file port=1 up=20mbit", .file = profile},
    {.words = "qos-apply file port=all --dry-run", .file = words},
    {.words = "capture all count=5"},
    {.words = "capture queue=1:10 --to -"},
    {.words = "capture drop=meter --to file"},
    {.words = "capture port=1 in snaplen=64"},
    {.words = "trace in_port=1,eth_type=0x800,ip_proto=17,udp_dst=2000"},
    {.words = "trace in_port=2,eth_type=0x86dd,ip_proto=58,icmpv6_type=135"},
    {.words = "trace in_port=1,vlan_vid=5,eth_type=0x8847,mpls_label=7 queue=10 len=900"},
    {.words = "restore file"},
    {.words = "-F file", .file = changes},
    {.words = "--atomic -F file", .file = changes},
    {.words = "bw-unassign group=1"},
    {.words = "bw-total port=1,in=100mbit,out=100mbit"},
    {.words = "bw-group port=1,group=1,share=30%"},
    {.words = "log conn=debug for=60s"},
    {.words = "why-dropped no_match"},
    {.words = "why-dropped port=1 seconds=1 all=yes"},
    {.words = "stats-cache port=1 most=3"},
    {.words = "metrics format=prometheus"},
    {.words = "queue-mod 1 10 20 50"},
    {.words = "queue-del 1 10"},
    {.words = "complete unix:x group-mod cmd=del,group="},
    {.words = "port-add eth3"},
    {.words = "port-del eth1"},
    {.words = "set-desc second floor"},
    {.words = "role master 1"},
    {.words = "qos-autorate port=1,class=10,min=5mbit,max=80mbit,reflector=192.0.2.1"},
    {.words = "mod-flows --strict in_port=1,actions=output:2"},
    {.words = "packet-out in_port=1 output=2 data=00"},
    {.words = "qos-show port=1 class=10"},
    {.words = "monitor qos,promise,drops"},
    {.words = "complete unix:x qos-htb cmd=del,port=1,class="},
    {.words = "flow-mod cmd=add,table=0 in_port=eth1 apply:output=eth2"},
    {.words = "stats-queue 1 10"},
    {.words = "port-mod port=1,conf=no_fwd"},
};

/* A state at the beginning of the input is the file that is read: up to its second mark, which says how many
 * messages are between them. */
static struct of_bytes
take_state(struct of_bytes *all, uint8_t *copy)
{
    uint32_t count = 0;
    size_t at = OF_STATE_MARK_LEN;
    if (all->n < 2 * OF_STATE_MARK_LEN || of_get32(all->p + 12) != OFP_EXP_STATE_MARK)
        return (struct of_bytes){NULL, 0};
    for (int len; (len = of_frame_len(all->p + at, all->n - at)) > 0; at += (size_t)len, count++) {
        if ((size_t)len > all->n - at)
            break;
        if (len != OF_STATE_MARK_LEN || of_get32(all->p + at + 12) != OFP_EXP_STATE_MARK)
            continue;
        struct of_bytes state = {copy, at + OF_STATE_MARK_LEN};
        memcpy(copy, all->p, state.n);
        of_set32(copy + at + 20, count);
        *all = (struct of_bytes){all->p + state.n, all->n - state.n};
        return state;
    }
    return (struct of_bytes){NULL, 0};
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char json[] = "--json", line[128], *v[DPCTL_WORDS_MAX], *save;
    int k = 0;
    if (!n)
        return 0;
    size_t what = (data[0] & 0x7f) % (sizeof commands / sizeof commands[0]);
    const char *file = commands[what].file ? commands[what].file : queues;
    struct fuzz_world world = {.file = {(const uint8_t *)file, strlen(file)},
                               .answers = {data + 1, n - 1},
                               .keys = commands[what].keys};
    uint8_t *copy = malloc(n);
    if (!copy)
        abort();
    struct of_bytes state = take_state(&world.answers, copy);
    if (state.n)
        world.file = state;
    if (data[0] & 0x80)
        v[k++] = json;
    snprintf(line, sizeof line, "%s", commands[what].words);
    for (char *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save))
        v[k++] = w;
    fuzz_dpctl(v, k, &world);
    free(copy);
    return 0;
}
