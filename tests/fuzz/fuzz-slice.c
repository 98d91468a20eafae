/* SPDX-License-Identifier: Apache-2.0 */
/* Slices: the first bytes are sections of a configuration file, the rest messages.  The sections are taken or
 * refused with a sentence.  What the first slice may ask for is a message that names nothing beyond it; what a
 * slice that only asks may ask for, the same slice may ask for, too. */
#include "structure.h"

#include "slice-check.h"

#include "wanted.h"
#include <admission/slice.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEXT 160 /* bytes of the sections */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

const struct fuzz_format fuzz_format = FUZZ_OPENFLOW(TEXT);

static const char *config, *sock;

#define LIST(name, key_)                                                                           \
    {                                                                                              \
        name, 0, "WORDS", "", NULL, OPTION_LIST, .section = "slice", .key = key_                   \
    }

/* The options of datapath/main/options.c that wanted-slices.c reads. */
static const struct daemon_option options[] = {
    LIST("slice", "may"),
    LIST("slice-connection", "connection"),
    LIST("slice-common-name", "common-name"),
    LIST("slice-ports", "ports"),
    LIST("slice-tables", "tables"),
    LIST("slice-shared-tables", "shared-tables"),
    LIST("slice-queues", "queues"),
    LIST("slice-below", "below"),
    LIST("slice-groups", "groups"),
    LIST("slice-meters", "meters"),
    LIST("slice-metadata", "metadata"),
    {"listen", 0, "CONNECTION", "", NULL, OPTION_LIST},
    {"controller", 0, "CONNECTION", "", NULL, OPTION_LIST},
    {"socket", 0, "PATH", "", NULL, OPTION_TEXT(sock)},
    {"config", 'c', "FILE", "", NULL, OPTION_TEXT(config), .line_only = true},
    OPTION_END,
};

static const struct daemon_program program = {
    .name = "fuzz-slice", .version = "", .before = "", .after = "", .options = options};

static struct of_arena arena;

/* ------------------------------------------------------------------ the sections */

static void
read_slices(const uint8_t *text, size_t n, struct slices *all)
{
    char option[64], name[] = "fuzz-slice";
    char *argv[] = {name, option, NULL};
    struct daemon_settings line = {0}, s = {0};
    int fd = memfd_create("slices", MFD_CLOEXEC);
    if (fd < 0 || (n && write(fd, text, n) != (ssize_t)n))
        abort();
    snprintf(option, sizeof option, "--config=/proc/self/fd/%d", fd);
    optind = 0; /* or getopt reads the first input's line alone */
    daemon_settings_of_line(&program, 2, argv, &line);
    daemon_settings_load(&program, &line, &s);
    daemon_settings_take(&program, &s, NULL);
    wanted_make_slices(&s, all);
    for (size_t i = 0; i < s.n_faults; i++)
        if (!*s.faults[i])
            abort();
    daemon_settings_free(&s);
    daemon_settings_free(&line);
    close(fd);
}

/* ------------------------------------------------------------------ the messages */

/* What may not be in a list of actions that was let through, found without the slice's own checks. */
static void
check_actions(const struct slice *s, const struct of_list *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct of_tagged *a = OF_AT(l, i, const struct of_tagged);
        uint32_t port = ((const struct of_action_output *)a)->port;
        if (a->row->type == OFPAT_OUTPUT &&
            (port == OFPP_NORMAL || port == OFPP_FLOOD || port == OFPP_ALL ||
             (port <= OFPP_MAX && !slice_set_has(&s->ports, port))))
            abort();
        if (a->row->type == OFPAT_SET_QUEUE &&
            !slice_set_has(&s->queues, ((const struct of_action_set_queue *)a)->queue_id))
            abort();
        if (a->row->type == OFPAT_GROUP &&
            !slice_set_has(&s->groups, ((const struct of_action_group *)a)->group_id))
            abort();
    }
}

static void
check_allowed(const struct slice *s, const struct of_msg *m)
{
    const struct of_flow_mod *f = m->body;
    const struct of_group_mod *g = m->body;
    if (m->type == OFPT_PACKET_OUT)
        check_actions(s, &((const struct of_packet_out *)m->body)->actions);
    for (uint32_t i = 0; m->type == OFPT_GROUP_MOD && i < g->buckets.n; i++)
        check_actions(s, &OF_AT(&g->buckets, i, const struct of_bucket)->actions);
    if (m->type != OFPT_FLOW_MOD)
        return;
    if (!slice_has_flow(s, f->table_id, &f->match))
        abort();
    for (uint32_t i = 0; i < f->instructions.n; i++) {
        const struct of_tagged *t = OF_AT(&f->instructions, i, const struct of_tagged);
        if (t->row->type == OFPIT_APPLY_ACTIONS || t->row->type == OFPIT_WRITE_ACTIONS)
            check_actions(s, &((const struct of_instr_actions *)t)->actions);
        if (t->row->type == OFPIT_GOTO_TABLE &&
            !slice_has_table(s, ((const struct of_instr_goto_table *)t)->table_id))
            abort();
    }
}

/* The switch here keeps no packets. */
static void
forget_buffer(const struct of_msg *m)
{
    if (m->type == OFPT_FLOW_MOD)
        ((struct of_flow_mod *)m->body)->buffer_id = OFP_NO_BUFFER;
    if (m->type == OFPT_PACKET_OUT)
        ((struct of_packet_out *)m->body)->buffer_id = OFP_NO_BUFFER;
}

static void
try_message(struct sw *sw, struct slice *s, struct of_bytes raw)
{
    struct of_msg m;
    struct qos_error e = {0};
    bool read_only = s->read_only;
    if (!of_decode(raw, &arena, &m)) {
        forget_buffer(&m);
        s->read_only = true;
        int asking = sw_slice_check_for(sw, s, NULL, &m, &e);
        s->read_only = read_only;
        e = (struct qos_error){0};
        int err = sw_slice_check_for(sw, s, NULL, &m, &e);
        if (err ? err < 0 || !*e.text : read_only ? asking : 0)
            abort();
        if (err && !asking)
            abort();
        if (!err)
            check_allowed(s, &m);
    }
    of_arena_reset(&arena);
    slice_sees(s, raw, &arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct sw sw;
    struct slices all = {0};
    if (!arena.max)
        of_arena_init(&arena, 1 << 24);
    read_slices(data, n < TEXT ? n : TEXT, &all);
    struct slice *found;
    slices_find(&all, &(struct slice_peer){"ptcp:6653", false, NULL}, &found);
    slices_find(&all, &(struct slice_peer){"ptls:6653", true, "red"}, &found);
    for (size_t at = TEXT; all.n && at < n;) {
        int len = of_frame_len(data + at, n - at);
        if (len <= 0 || (size_t)len > n - at)
            break;
        try_message(&sw, all.v[0], (struct of_bytes){data + at, (size_t)len});
        at += (size_t)len;
    }
    slices_clear(&all);
    return 0;
}
