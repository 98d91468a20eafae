/* SPDX-License-Identifier: Apache-2.0 */
/* qos-apply: a profile on one port or many. */
#include <core/command.h>
#include <core/ports.h>
#include <core/say.h>
#include <core/words.h>
#include <queues/map.h>
#include <queues/profile.h>

#include <oflib/near.h>
#include <qos/diff/diff.h>

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct ports {
    uint32_t *v;
    size_t n, room;
};

static enum status
add_port(struct ctx *c, struct ports *p, uint32_t no)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i] == no)
            return DPCTL_OK;
    uint32_t *v = words_room(c, p->v, p->n, &p->room, sizeof *v);
    if (!v)
        return say_memory(c);
    p->v = v;
    p->v[p->n++] = no;
    return DPCTL_OK;
}

/* "5-8" */
static bool
take_range(const char *text, uint64_t *low, uint64_t *high)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    *low = strtoul(text, &end, 0);
    if (*end != '-' || !isdigit((unsigned char)end[1]))
        return false;
    *high = strtoul(end + 1, &end, 0);
    return !*end;
}

/* "3", "5-8", "all", "local", "eth1" */
static enum status
take_port(struct ctx *c, const char *text, const struct of_list *there, struct ports *out)
{
    enum status st = DPCTL_OK;
    bool all = !strcasecmp(text, "all") || !strcasecmp(text, "any");
    uint64_t low = 0, high = 0;
    if (!all && !take_range(text, &low, &high)) {
        uint32_t no;
        if ((st = ports_number(c, text, &no)))
            return st;
        low = high = no;
    }
    if (!all && (low > high || (high > OFPP_MAX && low != OFPP_LOCAL)))
        return say_usage(c,
                         "port must be a number, a name, a range such as 5-8, several of them with "
                         "commas, or all, not '%s'",
                         text);
    bool some = false;
    for (uint32_t i = 0; !st && i < there->n; i++) {
        uint32_t no = OF_AT(there, i, struct of_port)->port_no;
        if (all ? no > OFPP_MAX : no < low || no > high)
            continue;
        some = true;
        st = add_port(c, out, no);
    }
    if (!st && !some)
        st = say_failed(c, all ? "the switch has no ports" : "the switch has no port %s", text);
    return st;
}

/* "port=1,3,5-8": a comma stands between ports. */
static enum status
take_port_list(struct ctx *c, char *text, const struct of_list *there, struct ports *out)
{
    enum status st = DPCTL_OK;
    for (char *save, *w = strtok_r(text, ",", &save); !st && w; w = strtok_r(NULL, ",", &save))
        st = take_port(c, w, there, out);
    return st;
}

/* ---------------------------------------------------------------------- the difference */

struct collect {
    struct ctx *c;
    struct steps *steps;
    const struct qos_profile *profile;
    const struct qos_profile_part *part;
    size_t at; /* in the part: where the last step's line was */
};

/* The profile's line that a step comes from, for messages. */
static const char *
line_of(struct collect *l, const struct qos_request *r)
{
    for (size_t k = 0; r->action_type != OFP_QOS_DEL && k < l->part->n; k++) {
        size_t i = (l->at + k) % l->part->n;
        const struct qos_request *w = &l->part->want[i];
        char *text;
        if (w->sched != r->sched || w->object_type != r->object_type || w->class_id != r->class_id)
            continue;
        l->at = i;
        size_t n = strlen(l->profile->file) + 24;
        if ((text = of_arena_alloc(&l->c->arena, n)))
            snprintf(text, n, "%s:%u", l->profile->file, l->part->line[i]);
        return text;
    }
    return NULL;
}

static bool
take_step(void *ctx, const struct qos_request *r)
{
    struct collect *l = ctx;
    steps_qos(l->c, l->steps, r, line_of(l, r));
    return !l->steps->nomem;
}

/* The entries of one port are next to each other in a dump. */
static void
of_port(const struct queue_entries *all, uint32_t no, struct queue_entries *out)
{
    size_t from = 0, to;
    while (from < all->n && all->v[from].config.port_no != no)
        from++;
    for (to = all->n; to > from && all->v[to - 1].config.port_no != no;)
        to--;
    *out = (struct queue_entries){all->v + from, to - from};
}

/* Takes the wrong line out of the part, and with it those that refer to its class. */
static void
drop_wrong(struct ctx *c, struct qos_profile *p, int dir, size_t at)
{
    struct qos_profile_part *part = &p->part[dir];
    const struct qos_request *w = &part->want[at];
    if (w->object_type == OFP_QOS_CLASS)
        qos_profile_wrong(&c->parse, p, (enum qos_direction)dir, w->class_id);
    part->n--;
    memmove(&part->want[at], &part->want[at + 1], (part->n - at) * sizeof *part->want);
    memmove(&part->line[at], &part->line[at + 1], (part->n - at) * sizeof *part->line);
}

/* Is it wrong only because another line is? */
static bool
follows_wrong(const struct qos_profile *p, int dir, const struct qos_request *w)
{
    uint32_t above =
        w->object_type == OFP_QOS_CLASS ? (uint32_t)w->values.v[QOS_PARENT] : w->class_id;
    return above && qos_profile_is_wrong(p, (enum qos_direction)dir, above);
}

static bool
take_nothing(void *ctx, const struct qos_request *r)
{
    return true;
}

#define TRIES 500 /* lines that are dropped, those that follow from others too */

/* Reports each line that makes no sense beside the others.  Returns how many. */
static unsigned
check_lines(struct ctx *c, struct qos_profile *p, uint32_t no, uint64_t speed)
{
    unsigned all = 0;
    for (int dir = QOS_OUT; dir <= QOS_IN; dir++) {
        struct qos_profile_part *part = &p->part[dir];
        struct qos_error e;
        unsigned said = 0;
        for (unsigned i = 0; i < TRIES && said < QOS_PROFILE_MISTAKES && part->n; i++) {
            struct qos_diff d = {.port = {no, (enum qos_direction)dir, queues_env(speed)},
                                 .want = part->want,
                                 .n_want = part->n,
                                 .fn = take_nothing};
            if (qos_diff(&d, &e) <= 0)
                break;
            if (!follows_wrong(p, dir, &part->want[d.wrong]) && ++said)
                say_line(c, p->file, part->line[d.wrong], "port %u: %s", (unsigned)no, e.text);
            drop_wrong(c, p, dir, d.wrong);
        }
        all += said;
    }
    return all;
}

static enum status
compare_port(struct ctx *c, struct qos_profile *p, uint32_t no, uint64_t speed,
             const struct queue_entries *all, struct steps *steps)
{
    struct queue_entries now;
    of_port(all, no, &now);
    for (int dir = QOS_OUT; dir <= QOS_IN; dir++) {
        const struct qos_profile_part *part = &p->part[dir];
        struct collect l = {c, steps, p, part, 0};
        struct qos_diff d = {.port = {no, (enum qos_direction)dir, queues_env(speed)},
                             .now = now.v,
                             .n_now = now.n,
                             .want = part->want,
                             .n_want = part->n,
                             .fn = take_step,
                             .ctx = &l};
        struct qos_error e;
        int err = qos_diff(&d, &e);
        if (err > 0 && part->n && check_lines(c, p, no, speed))
            return DPCTL_USAGE;
        if (err) /* no line is wrong by itself: what is on the port does not go with them */
            return say_failed(c, "port %u: %s", (unsigned)no, e.text);
    }
    return DPCTL_OK;
}

/* ------------------------------------------------------------------------- the command */

/* Takes port=..., or a bare word behind the file's, out of the words. */
static int
split_words(char **words, int n, char **ports)
{
    int others = 0;
    *ports = NULL;
    for (int i = 0; i < n; i++) {
        if (!strncmp(words[i], "port=", 5) && words[i][5] && !*ports)
            *ports = words[i] + 5;
        else if (others && !strchr(words[i], '=') && !*ports) /* "home-router eth2" */
            *ports = words[i];
        else
            words[others++] = words[i];
    }
    return others;
}

/* Is there such a file in the directory, with or without ".qos"?  `path` becomes its path. */
static bool
is_in(const char *directory, const char *name, char *path, size_t size)
{
    static const char *const endings[] = {"", ".qos"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(path, size, "%s%s%s", directory, name, endings[i]);
        struct stat st;
        if (!stat(path, &st) && S_ISREG(st.st_mode))
            return true;
    }
    return false;
}

/* Where a name without a path, such as home-router (or examples/home-router.qos), is looked for: here, in docs/examples,
 * where the examples are installed, and in the tree that dpctl was built in.  false: that was all. */
static bool
directory(size_t i, char *path, size_t size)
{
    static const char *const fixed[] = {"./", "docs/examples/", EXAMPLES "/"};
    static const char built[] = "../../../docs/examples/";
    if (i < sizeof fixed / sizeof *fixed) {
        snprintf(path, size, "%s", fixed[i]);
        return true;
    }
    ssize_t n = i == sizeof fixed / sizeof *fixed
                    ? readlink("/proc/self/exe", path, size - sizeof built)
                    : 0;
    if (n <= 0)
        return false;
    path[n] = '\0';
    strcpy(strrchr(path, '/') + 1, built);
    return true;
}

static enum status
no_such_profile(struct ctx *c, const char *name)
{
    struct of_near near = of_near(name, strlen(name));
    char where[PATH_MAX - 64], text[OF_NEAR_TEXT];
    for (size_t i = 0; directory(i, where, sizeof where); i++) {
        DIR *d = opendir(where);
        for (struct dirent *e; d && (e = readdir(d));) {
            char *ending = strstr(e->d_name, ".qos");
            if (ending && !ending[4]) {
                *ending = '\0';
                of_near_try(&near, e->d_name);
            }
        }
        if (d)
            closedir(d);
    }
    return say_usage(c, "there is no file and no example '%s'%s", name,
                     *of_near_text(&near, text, sizeof text) ? text
                                                             : "; the examples are in " EXAMPLES);
}

static enum status
find_profile(struct ctx *c, const char *name, const char **file)
{
    char where[PATH_MAX - 64], path[PATH_MAX];
    *file = name;
    if (!strcmp(name, "-") || !access(name, F_OK))
        return DPCTL_OK;
    if (!strncmp(name, "examples/", 9))
        name += 9;
    if (strchr(name, '/'))
        return DPCTL_OK; /* whoever reads it says why that fails */
    for (size_t i = 0; directory(i, where, sizeof where); i++)
        if (is_in(where, name, path, sizeof path))
            return (*file = words_keep(c, path, strlen(path))) ? DPCTL_OK : say_memory(c);
    return no_such_profile(c, name);
}

static enum status
qos_apply(struct ctx *c, const struct command *self, char **words, int n)
{
    struct qos_profile p;
    struct of_list there;
    struct ports ports = {0};
    struct queue_entries now;
    struct queue_trees trees;
    struct steps steps = {0};
    char *port_text;
    n = split_words(words, n, &port_text);
    if (!n)
        return say_usage(c, "no profile given: write qos-apply FILE eth2");
    if (!port_text)
        return say_usage(c, "no port given: add eth2, port=1,3,5-8 or port=all");
    const char *file;
    enum status found = find_profile(c, words[0], &file);
    if (found)
        return found;
    enum status read = profile_read(c, file, words + 1, n - 1, &p);
    enum status st = ports_ask(c, &there);
    st = st ? st : take_port_list(c, port_text, &there, &ports);
    if (read && !st) /* its other lines may be wrong, too */
        check_lines(c, &p, ports.v[0], ports_speed(ports_desc(&there, ports.v[0])));
    st = read ? read : st ? st : profile_fit(c, &p);
    st = st ? st : queues_ask(c, ports.n == 1 ? ports.v[0] : OFPP_ANY, QOS_ALL_CLASSES, &now);
    st = st ? st : queues_ask_defaults(c, &now, &trees);
    for (size_t i = 0; !st && i < ports.n; i++)
        st = compare_port(c, &p, ports.v[i], ports_speed(ports_desc(&there, ports.v[i])), &now,
                          &steps);
    st = st ? st : map_diff(c, &p.map, false, &steps);
    st = st ? st : map_doubt_queues(c, &p.map, &p);
    return st ? st : steps_run(c, &steps);
}

static const char apply_help[] =
    "  FILE             the profile (-: stdin; home-router, office, ...: one of the examples, which\n"
    "                   are in " EXAMPLES "); ofqos-profile(5) describes it\n"
    "  port=1,3,5-8     the ports that get these queues; port=all: every one; eth2 alone is port=eth2\n"
    "  NAME=VALUE       the value of the profile's variable $NAME\n"
    "  --dry-run        shows the commands that would do it, and does nothing\n"
    "Queues that are not in the profile are removed.  All ports are changed in one step; if the\n"
    "switch refuses anything, none is.  Applying a profile again changes nothing.\n\n"
    "A profile:\n"
    "  set up=20mbit                                  # $up, unless the command line sets it\n"
    "  htb class=0,rate=$up                           # the port's total\n"
    "  htb class=10,name=voice,rate=10%,ceil=100%,prio=0\n"
    "  htb class=20,name=rest,rate=90%,ceil=100%,prio=1\n"
    "  fq_codel class=rest\n"
    "  map queue=voice,dscp=ef,app=sip                # see: dpctl help qos-map\n"
    "  in                                             # below: for packets that enter by the port\n"
    "  htb class=0,rate=50mbit\n"
    "or in words, instead of classes:\n"
    "  total 20mbit\n"
    "  guarantee 10%, latency 10ms for app=sip dscp=ef\n"
    "  limit 5mbit for app=rsync\n"
    "  guarantee 85% for others";

static const struct command rows[] = {
    {.name = "qos-apply",
     .subject = SUBJECT_QOS,
     .first = {TASK_SHAPE, "qos-apply FILE eth1 up=20mbit", "all queues of a profile"},
     .args = "FILE PORT|port=N,...|all [NAME=VALUE...] [--dry-run]",
     .help = "makes ports' queues what a profile says",
     .text = apply_help,
     .examples = "qos-apply home-router port=1 up=20mbit down=100mbit\n"
                 "qos-apply home-router eth2 up=20mbit down=100mbit",
     .run = qos_apply,
     .options = COMMAND_DRY_RUN},
};

const struct command_table commands_qos_apply = COMMAND_TABLE(rows);
