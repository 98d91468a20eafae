/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the programs (bpf/switch.bpf.c), which the daemon carries, and maps their memory. */
#include "kernel-inside.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The object file, as clang made it. */
static const _Alignas(8) uint8_t object[] = {
#include "switch.bpf.inc"
};

/* ------------------------------------------------------------------ libbpf's messages */

/* The last one that tells why a program was refused. */
static char last_message[256];

__attribute__((format(printf, 2, 0))) static int
keep_message(enum libbpf_print_level level, const char *format, va_list args)
{
    char *text;
    if (level == LIBBPF_DEBUG || vasprintf(&text, format, args) < 0)
        return 0;
    char *rest = text, *sums = strstr(text, "\nprocessed "); /* behind the verifier's sentence */
    if (sums)
        *sums = 0;
    for (const char *line; (line = strsep(&rest, "\n"));)
        if (*line && *line != '-' && !strstr(line, "failed to load"))
            snprintf(last_message, sizeof last_message, "%s", line);
    free(text);
    return 0;
}

/* ------------------------------------------------------------------ maps */

struct shared_map {
    const char *name;
    size_t value;
    uint32_t n;
    void **at;
};

/* Values of an array map lie at multiples of eight bytes. */
static size_t
map_bytes(const struct shared_map *s)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (((s->value + 7) / 8 * 8 * s->n) + page - 1) / page * page;
}

static int
size_maps(struct bpf_object *obj, const struct shared_map *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct bpf_map *map = bpf_object__find_map_by_name(obj, s[i].name);
        if (!map || bpf_map__value_size(map) != s[i].value)
            return -EPROTO;
        int err = bpf_map__set_max_entries(map, s[i].n);
        if (err)
            return err;
    }
    return 0;
}

static int
open_maps(struct bpf_object *obj, const struct shared_map *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        void *at = mmap(NULL, map_bytes(&s[i]), PROT_READ | PROT_WRITE, MAP_SHARED,
                        bpf_object__find_map_fd_by_name(obj, s[i].name), 0);
        if (at == MAP_FAILED)
            return -errno;
        *s[i].at = at;
    }
    return 0;
}

static void
close_maps(const struct shared_map *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (*s[i].at)
            munmap(*s[i].at, map_bytes(&s[i]));
}

#define N_MAPS 10
#define SHARED_MAPS(m)                                                                             \
    {                                                                                              \
        {"control", sizeof *(m)->control, 1, (void **)&(m)->control},                              \
            {"sets", sizeof *(m)->set, (m)->n_sets, (void **)&(m)->set},                           \
            {"entries", sizeof *(m)->entry, (m)->n_entries, (void **)&(m)->entry},                 \
            {"hits", sizeof *(m)->hits, (m)->n_entries * (m)->n_cpus, (void **)&(m)->hits},        \
            {"cpus", sizeof *(m)->cpu, (m)->n_cpus, (void **)&(m)->cpu},                           \
            {"ports", sizeof *(m)->port, OFFLOAD_PORTS, (void **)&(m)->port},                      \
            {"meters", sizeof *(m)->meter, OFFLOAD_METERS, (void **)&(m)->meter},                  \
            {"rtt_control", sizeof *(m)->probes.control, 1, (void **)&(m)->probes.control},        \
            {"rtt_slots", sizeof *(m)->probes.slot, (m)->n_slots, (void **)&(m)->probes.slot},     \
            {"rtt_ring", sizeof *(m)->probes.ring, RTT_RING, (void **)&(m)->probes.ring},          \
    }

/* ------------------------------------------------------------------ loading */

static int
find_programs(struct offload_programs *k)
{
    struct bpf_program *filter = bpf_object__find_program_by_name(k->obj, "ofqos_filter");
    struct bpf_program *ingress = bpf_object__find_program_by_name(k->obj, "ofqos_ingress");
    struct bpf_program *again = bpf_object__find_program_by_name(k->obj, "ofqos_again");
    if (!filter || !ingress || !again)
        return -EPROTO;
    k->filter_fd = bpf_program__fd(filter);
    k->ingress_fd = bpf_program__fd(ingress);
    k->again_fd = bpf_program__fd(again);
    return 0;
}

static int
load(struct offload_programs *k, struct offload_memory *m)
{
    struct shared_map maps[N_MAPS] = SHARED_MAPS(m);
    LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "ofqos");
    k->obj = bpf_object__open_mem(object, sizeof object, &opts);
    int err = k->obj ? 0 : -errno;
    if (!err)
        err = size_maps(k->obj, maps, N_MAPS);
    if (!err)
        err = bpf_object__load(k->obj);
    if (!err)
        err = open_maps(k->obj, maps, N_MAPS);
    return err ? err : find_programs(k);
}

/* Once the programs are loaded, nothing needs CAP_BPF and CAP_PERFMON, except that before Linux
 * 5.19 some systems allow no bpf(2) without CAP_BPF.  They stay permitted: a process that takes
 * over at a restart loads its own programs. */
static void
set_rights(uint32_t bits, bool on)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    uint32_t *now = &data[CAP_TO_INDEX(CAP_BPF)].effective;
    if (syscall(SYS_capget, &head, data))
        return;
    *now = on ? *now | (data[CAP_TO_INDEX(CAP_BPF)].permitted & bits) : *now & ~bits;
    syscall(SYS_capset, &head, data);
}

#define RIGHTS (CAP_TO_MASK(CAP_BPF) | CAP_TO_MASK(CAP_PERFMON)) /* of the same word */

static void
give_up_rights(const struct offload_programs *k)
{
    struct bpf_prog_info info = {0};
    uint32_t len = sizeof info;
    set_rights(RIGHTS, false);
    if (bpf_obj_get_info_by_fd(k->ingress_fd, &info, &len))
        set_rights(CAP_TO_MASK(CAP_BPF), true);
}

/* On a real-time kernel a packet's way through both programs can be interrupted by another's on the same
 * processor, which they are not made for. */
static bool
is_real_time(void)
{
    struct utsname u;
    return !uname(&u) && strstr(u.version, "PREEMPT_RT");
}

/* CONFIG_NET_MPLS_GSO: a module that is loaded, or a part of the kernel. */
static bool
cuts_labels(void)
{
    struct utsname u;
    char path[sizeof u.release + 64], line[256];
    bool found = !access("/sys/module/mpls_gso", F_OK);
    if (found || uname(&u))
        return found;
    snprintf(path, sizeof path, "/lib/modules/%s/modules.builtin", u.release);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f))
        found = strstr(line, "/mpls_gso.ko");
    if (f)
        fclose(f);
    return found;
}

static void
unload(struct offload_programs *k, struct offload_memory *m)
{
    struct shared_map maps[N_MAPS] = SHARED_MAPS(m);
    close_maps(maps, N_MAPS);
    bpf_object__close(k->obj);
    free(k);
}

int
offload_open(const struct offload_options *opt, struct offload **out, char *why, size_t why_len)
{
    *last_message = 0;
    libbpf_set_print(keep_message);
    int n_cpus = libbpf_num_possible_cpus();
    if (n_cpus <= 0 || is_real_time()) {
        set_rights(RIGHTS, false);
        snprintf(why, why_len, "%s",
                 n_cpus > 0 ? "the kernel is a real-time one (PREEMPT_RT)"
                            : "the number of processors can't be read: is /sys mounted?");
        return n_cpus > 0 ? -EOPNOTSUPP : -ENOENT;
    }
    struct offload_memory m = {.n_entries = opt->entries,
                               .n_sets = offload_sets_for(opt->entries),
                               .n_cpus = (uint32_t)n_cpus,
                               .n_slots = opt->rtt_slots ? opt->rtt_slots : 2};
    struct offload_programs *k = calloc(1, sizeof *k);
    if (!k)
        return -ENOMEM;
    set_rights(RIGHTS, true); /* an earlier try has given them up */
    int err = load(k, &m);
    struct offload *o = err ? NULL : offload_table_new(&m);
    if (!o) {
        err = err ? err : -ENOMEM;
        const char *more = err == -EPERM ? "it wants CAP_BPF and CAP_PERFMON" : last_message;
        snprintf(why, why_len, "the kernel refused the programs: %s%s%s", strerror(-err),
                 *more ? ": " : "", more);
        unload(k, &m);
        set_rights(RIGHTS, false);
        return err;
    }
    give_up_rights(k);
    k->clsact_only = opt->linger_ns != 0;
    k->again_link = -1;
    o->programs = k;
    o->linger_ns = opt->linger_ns;
    m.control->uso = opt->uso;
    m.control->cuts_labels = cuts_labels();
    if (opt->rtt_slots)
        probes_begin(&m.probes, opt->rtt_slots);
    *out = o;
    return 0;
}

void
offload_close(struct offload *o)
{
    if (!o)
        return;
    if (o->programs)
        offload_cut_by(o, 0, 0);
    for (uint32_t i = 0; o->programs && i < OFFLOAD_PORTS; i++)
        if (o->m.port[i].ifindex && !o->programs->at[i].wired)
            offload_port_del(o, (int)o->m.port[i].ifindex, false);
    if (o->programs)
        unload(o->programs, &o->m);
    offload_table_free(o);
}
