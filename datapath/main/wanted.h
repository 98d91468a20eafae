/* SPDX-License-Identifier: Apache-2.0 */
/* What the settings want the switch to have: ports, queues, rules, connections.  It is made and
 * checked before anything changes; mistakes go to the settings' list.  Everything is in the
 * settings' arena. */
#ifndef MAIN_WANTED_H
#define MAIN_WANTED_H

#include <daemon/config.h>
#include <qos/profile/profile.h>

#include <net/if.h>
#include <string.h>
#include <switch/switch.h>

struct main_options;
struct slices;
struct sw;

struct wanted {
    struct daemon_settings *s;
    const struct main_options *options;
    struct of_parse parse; /* of its words; knows the ports' names */

    struct wanted_port {
        char name[IFNAMSIZ]; /* "" with files */
        const char *files;   /* "pcap:IN:OUT"; NULL: an interface */
        uint32_t no;
        bool numbered;       /* by a setting, not as the lowest free one */
        struct vlans *vlans; /* NULL: all */
        const struct daemon_setting *at;
    } * ports;
    size_t n_ports, ports_room;

    char (*offload_off)[IFNAMSIZ]; /* ports whose packets stay with the workers */
    size_t n_offload_off, offload_off_room;

    struct sw_wire wire[SW_WIRES_MAX];
    unsigned n_wires;

    struct sw_inside inside[SW_INSIDE_MAX];
    unsigned n_inside;

    struct wanted_queues {
        const char *port; /* its name */
        const struct daemon_setting *at;
        const struct daemon_setting **lines; /* of the profile; NULL: it is a file */
        struct qos_profile profile;
        const char *text; /* what it means, as text to compare */
    } * queues;
    size_t n_queues, queues_room;

    /* Of the profiles, and the settings' own: one of each name. */
    struct wanted_map {
        struct qos_map map;
        const struct daemon_setting *at;
        const char *text;
    } * maps;
    size_t n_maps, maps_room;

    struct slices *slices; /* until they are applied */
};

#define WANTED_MAP_SET "config" /* the name of the settings' own map */

/* sw: what runs, so that its ports keep their numbers; NULL: nothing.  must_exist: interfaces that
 * the file names and that are not there are mistakes. */
void wanted_make(struct wanted *w, struct daemon_settings *s, const struct main_options *options,
                 const struct sw *sw, bool must_exist);
void wanted_free(struct wanted *w); /* before the settings */

static inline const struct wanted_port *
wanted_find_port(const struct wanted *w, const char *name)
{
    for (size_t i = 0; i < w->n_ports; i++)
        if (!strcmp(w->ports[i].name, name))
            return &w->ports[i];
    return NULL;
}

bool wanted_is_local(const struct wanted *w, const char *name, size_t n); /* the local port's */
bool wanted_has_files(const struct wanted *w, const char *files);
const struct wanted_queues *wanted_find_queues(const struct wanted *w, const char *port);
const struct wanted_map *wanted_find_map(const struct wanted *w, const char *set);

/* -------------------------------------------------------------- wanted-vlans.c */

/* To be called when all ports are there. */
/* How long the name of the interface is in "eth1", "eth1:3,vlan=10".  A comma is part of a name only before the number. */
size_t wanted_port_name(const char *value);
void wanted_make_vlans(struct wanted *w);

/* -------------------------------------------------------------- wanted-port.c */

void wanted_make_wires(struct wanted *w); /* when all ports are there */
void wanted_make_inside(struct wanted *w);

/* -------------------------------------------------------------- wanted-slices.c */

/* Adds the slices of the settings to *out. */
void wanted_make_slices(struct daemon_settings *s, struct slices *out);

/* -------------------------------------------------------------- wanted-queues.c */

/* After wanted_make. */
void wanted_make_queues(struct wanted *w);

/* After that, unless there are mistakes: would the queues' model take them on any machine? */
void wanted_check_queues(struct wanted *w);

#endif
