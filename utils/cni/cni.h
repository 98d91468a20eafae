/* SPDX-License-Identifier: Apache-2.0 */
/* ofqos-cni: an invocation, the network that it is about, and its error.
 *
 * The specification is CNI's (Container Network Interface), versions 0.4.0, 1.0.0 and 1.1.0.  Functions that
 * take the invocation return 0, or -1 with c->error filled in. */
#ifndef CNI_H
#define CNI_H

#include <jansson.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CNI_TEXT_MAX                                                                               \
    ((size_t)1 << 20)     /* bytes of a configuration, and of an IPAM plugin's answer */
#define CNI_ALIAS_MAX 255 /* characters of an interface's alias */

/* The specification's codes; from 100 on our own. */
enum cni_code {
    CNI_BAD_VERSION = 1,
    CNI_UNSUPPORTED = 2,
    CNI_BAD_ENVIRONMENT = 4,
    CNI_IO = 5,
    CNI_BAD_JSON = 6,
    CNI_BAD_CONFIG = 7,
    CNI_TRY_AGAIN = 11,
    CNI_UNAVAILABLE = 50,
    CNI_SWITCH_REFUSED = 100,
    CNI_KERNEL_REFUSED = 101,
    CNI_DIFFERS = 102, /* CHECK found something else than ADD made */
    CNI_NO_MEMORY = 103,
};

struct cni_error {
    unsigned code; /* 0: none */
    char msg[700], details[700];
};

enum cni_version { CNI_0_4_0, CNI_1_0_0, CNI_1_1_0, CNI_VERSIONS };
extern const char *const cni_version_names[CNI_VERSIONS];

/* A total for one direction. */
struct cni_rate {
    uint64_t rate;  /* bit/s; 0: no limit */
    uint64_t burst; /* bytes; 0: the switch's own default */
};

#define CNI_GROUPS_MAX 16

/* A kind of the container's traffic, and its share of the totals. */
struct cni_group {
    const char *name;
    uint32_t ppm, queue;
    char selects[400]; /* ",tcp=443,dscp=46", as of a rule of qos-map; "": all other packets */
};

/* The network's configuration, as it came on stdin.  Strings belong to `json`. */
struct cni_conf {
    char *text; /* the bytes: IPAM plugins get the same */
    size_t len;
    json_t *json;
    enum cni_version version;
    const char *name;
    const char *address;     /* of the switch; NULL: the usual one */
    const char *ipam;        /* the IPAM plugin's name; NULL: no addresses */
    bool chained;            /* another plugin has made the interface (chain.h) */
    bool is_gateway;         /* the switch's local port gets the gateways' addresses */
    bool is_default;         /* and is the default gateway */
    unsigned mtu;            /* 0: the kernel's */
    struct cni_rate in, out; /* into the container, out of it */
    struct cni_group groups[CNI_GROUPS_MAX];
    unsigned n_groups;
    const char *doors;   /* the directory of tenants' doors */
    bool tenant;         /* the container may divide its totals itself: so many groups, */
    unsigned tenants[3]; /* transfers and connections */
    json_t *annotation;  /* that the groups came by, or NULL */
    json_t *dns;         /* NULL: the IPAM plugin's */
    json_t *prev;        /* prevResult, or NULL */
    json_t *valid;       /* cni.dev/valid-attachments; NULL: there are none */
};

struct cni {
    const char *command, *id, *netns, *ifname, *path, *args; /* of the environment; "": not given */
    struct cni_conf conf;
    struct cni_error error;
};

__attribute__((format(printf, 3, 4))) int cni_fail(struct cni *c, unsigned code, const char *fmt,
                                                   ...);
int cni_no_memory(struct cni *c);

/* The commands. */
int cni_add(struct cni *c);
int cni_del(struct cni *c);
int cni_check(struct cni *c);
int cni_gc(struct cni *c);
int cni_status(struct cni *c);

/* On stdout: an answer, or c->error. */
int cni_print(struct cni *c, const json_t *json);
void cni_print_error(struct cni *c);

#endif
