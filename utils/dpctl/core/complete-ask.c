/* SPDX-License-Identifier: Apache-2.0 */
/* Completion by what the switch has, and by files and interfaces.  Nothing is said on failure: there
 * are then no candidates. */
#include <core/ask.h>
#include <core/complete.h>
#include <core/ports.h>

#include <dirent.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/stat.h>

#define ANSWER_MS 500 /* a person waits for it */

/* Connects at the first question. */
static bool
reach(struct complete *k)
{
    if (k->address && !k->c->remote.stream && remote_open(&k->c->remote, k->address, ANSWER_MS))
        k->address = NULL;
    return k->address != NULL;
}

static void
offer_number(struct complete *k, size_t keep, uint32_t number, const char *help)
{
    char text[16];
    snprintf(text, sizeof text, "%u", (unsigned)number);
    complete_offer(k, keep, text, help);
}

/* ------------------------------------------------------------------ ports and queues */

void
complete_ports(struct complete *k, size_t keep)
{
    struct of_list ports;
    if (!reach(k) || ports_ask(k->c, &ports))
        return;
    for (uint32_t i = 0; i < ports.n; i++) {
        const struct of_port *p = OF_AT(&ports, i, struct of_port);
        char help[40];
        if (p->port_no <= OFPP_MAX)
            offer_number(k, keep, p->port_no, p->name);
        snprintf(help, sizeof help, "port %u", (unsigned)p->port_no);
        if (!p->name[strspn(p->name,
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "_.-")])
            complete_offer(k, keep, p->name, help);
    }
}

/* The port that the line names: port=eth1, or the word before a queue's number. */
static uint32_t
port_given(struct complete *k)
{
    uint32_t no = OFPP_ANY;
    for (int i = 0; i <= k->n; i++) {
        const char *word = i < k->n ? k->before[i] : k->word;
        char name[64];
        const char *at = !strncmp(word, "port=", 5) ? word : strstr(word, ",port=");
        if (!at && (i || !k->n || strchr(word, '=')))
            continue;
        at = at ? strchr(at, '=') + 1 : word;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        if (ports_number(k->c, name, &no))
            return OFPP_ANY;
    }
    return no;
}

void
complete_queues(struct complete *k, size_t keep)
{
    struct of_queue_get_config_request body = {.port = OFPP_ANY};
    struct of_msg reply;
    if (!reach(k))
        return;
    body.port = port_given(k);
    if (ask_queue_config(k->c, &body, &reply) || reply.type != OFPT_QUEUE_GET_CONFIG_REPLY)
        return;
    const struct of_list *queues = &((const struct of_queue_get_config_reply *)reply.body)->queues;
    for (uint32_t i = 0; i < queues->n; i++) {
        const struct of_packet_queue *q = OF_AT(queues, i, struct of_packet_queue);
        char help[40];
        snprintf(help, sizeof help, "of port %u", (unsigned)q->port);
        offer_number(k, keep, q->queue_id, help);
    }
}

/* ------------------------------------------------------------------ tables, groups, meters */

void
complete_tables(struct complete *k, size_t keep)
{
    struct of_list tables;
    if (!reach(k) || ask_list(k->c, OFPMP_TABLE, NULL, &tables))
        return;
    for (uint32_t i = 0; i < tables.n; i++) {
        const struct of_table_stats *t = OF_AT(&tables, i, struct of_table_stats);
        char help[40];
        snprintf(help, sizeof help, "%u flow entr%s", (unsigned)t->active_count,
                 t->active_count == 1 ? "y" : "ies");
        if (t->active_count)
            offer_number(k, keep, t->table_id, help);
    }
}

void
complete_groups(struct complete *k, size_t keep)
{
    struct of_list groups;
    if (!reach(k) || ask_list(k->c, OFPMP_GROUP_DESC, NULL, &groups))
        return;
    for (uint32_t i = 0; i < groups.n; i++)
        offer_number(k, keep, OF_AT(&groups, i, struct of_group_desc)->group_id, NULL);
}

void
complete_meters(struct complete *k, size_t keep)
{
    struct of_list meters;
    if (!reach(k) || ask_list(k->c, OFPMP_METER_CONFIG, NULL, &meters))
        return;
    for (uint32_t i = 0; i < meters.n; i++)
        offer_number(k, keep, OF_AT(&meters, i, struct of_meter_config)->meter_id, NULL);
}

/* ------------------------------------------------------------------ the system */

static void
offer_file(struct complete *k, size_t keep, const char *directory, const char *name)
{
    char path[700], text[700];
    struct stat st;
    snprintf(path, sizeof path, "%.400s%.255s", *directory ? directory : "./", name);
    bool is_directory = !stat(path, &st) && S_ISDIR(st.st_mode);
    snprintf(text, sizeof text, "%.400s%.255s%s", directory, name, is_directory ? "/" : "");
    complete_offer(k, keep, text, NULL);
}

void
complete_files(struct complete *k, size_t keep)
{
    const char *typed = k->word + keep, *slash = strrchr(typed, '/');
    char directory[400] = "";
    if (slash && slash - typed < (ptrdiff_t)sizeof directory - 1)
        snprintf(directory, sizeof directory, "%.*s", (int)(slash + 1 - typed), typed);
    DIR *d = opendir(*directory ? directory : ".");
    const char *begun = slash ? slash + 1 : typed;
    for (struct dirent *e; d && (e = readdir(d));)
        if ((*e->d_name != '.' || *begun == '.') && strcmp(e->d_name, ".") &&
            strcmp(e->d_name, "..") && !strncmp(e->d_name, begun, strlen(begun)))
            offer_file(k, keep, directory, e->d_name);
    if (d)
        closedir(d);
}

void
complete_interfaces(struct complete *k, size_t keep)
{
    struct if_nameindex *all = if_nameindex();
    for (struct if_nameindex *i = all; i && i->if_index; i++)
        complete_offer(k, keep, i->if_name, NULL);
    if (all)
        if_freenameindex(all);
}
