/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room: table.c keeps the entries, kernel.c has the programs, attach.c puts them on
 * interfaces. */
#ifndef OFFLOAD_OFFLOAD_INSIDE_H
#define OFFLOAD_OFFLOAD_INSIDE_H

#include <offload/offload.h>

/* The array maps.  Programs in the kernel read and write them at the same time. */
struct offload_memory {
    struct offload_control *control;
    struct offload_set *set;
    struct offload_entry *entry;
    struct offload_hits *hits; /* by processor, then by entry */
    struct offload_cpu *cpu;
    struct offload_port *port;
    struct offload_meter *meter;
    struct probes probes;
    uint32_t n_entries, n_sets, n_cpus, n_slots;
};

/* Where an entry is found. */
struct offload_place {
    uint32_t hash;
    uint8_t way;
    struct offload_hits was; /* hits of earlier entries with this number */
};

struct offload_programs; /* kernel.c */

struct offload {
    struct offload_memory m;
    struct offload_place *place; /* by entry */
    uint32_t *free;              /* entries, n_free of them */
    uint32_t n_free;
    uint32_t (*under)[OFFLOAD_MASKS];     /* by the port's place: its entries under each mask */
    uint8_t *held;                        /* by the port's place: masks that it has entries under */
    uint8_t order[OFFLOAD_MASKS];         /* places of masks as they are looked under; n_masks */
    uint64_t meters[OFFLOAD_METERS / 64]; /* bits: the place is taken */
    uint64_t linger_ns;
    struct offload_programs *programs; /* NULL: only memory, for tests */
};

/* Over memory that is zero.  NULL: no memory. */
struct offload *offload_table_new(const struct offload_memory *m);
void offload_table_free(struct offload *o);

/* How many sets so many entries have. */
uint32_t offload_sets_for(uint32_t entries);

#endif
