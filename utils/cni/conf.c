/* SPDX-License-Identifier: Apache-2.0 */
#include "conf.h"
#include "door.h"

#include <stream/address.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MTU_MIN 68 /* IPv4's; the kernel wants 1280 for IPv6 and says so itself */
#define MTU_MAX 65535
/* What Kubernetes writes where nobody chose a burst: 2^31 - 1, and 2^32 - 1, bits. */
#define BURST_NOT_CHOSEN INT32_MAX

bool
conf_is_word(const char *text)
{
    static const char alnum[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    if (!*text || !strchr(alnum, *text))
        return false;
    while (*text && (strchr(alnum, *text) || strchr("_.-", *text)))
        text++;
    return !*text;
}

bool
conf_is_interface(const char *text)
{
    size_t n = strlen(text);
    if (!n || n >= IFNAMSIZ || !strcmp(text, ".") || !strcmp(text, ".."))
        return false;
    for (const char *p = text; *p; p++)
        if (*p <= ' ' || *p > '~' || strchr("/:%", *p)) /* %: the kernel would number it */
            return false;
    return true;
}

int
conf_read_all(int fd, char **text, size_t *len)
{
    char *buf = malloc(CNI_TEXT_MAX + 1);
    size_t have = 0;
    ssize_t n;
    if (!buf)
        return -ENOMEM;
    while (have <= CNI_TEXT_MAX) {
        n = read(fd, buf + have, CNI_TEXT_MAX + 1 - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    int err = have > CNI_TEXT_MAX ? -EFBIG : n < 0 ? -errno : 0;
    if (err) {
        free(buf);
        return err;
    }
    buf[have] = '\0';
    *text = buf;
    *len = have;
    return 0;
}

/* ------------------------------------------------------------------------- members */

enum kind { ANY, STRING, BOOL, OBJECT, ARRAY, INTEGER };
static const char *const kind_names[] = {"",          "a text", "true or false",
                                         "an object", "a list", "a whole number"};

/* All that a configuration may have; what else it has is refused, as the specification lets a plugin do. */
static const struct key {
    const char *name;
    enum kind kind;
} keys[] = {
    {"cniVersion", STRING},
    {"name", STRING},
    {"type", STRING},
    {"switch", STRING},
    {"bridge", STRING},
    {"isGateway", BOOL},
    {"mtu", INTEGER},
    {"isDefaultGateway", BOOL},
    {"ipam", OBJECT},
    {"dns", OBJECT},
    {"tenant", OBJECT},
    {"directory", STRING},
    {"chained", BOOL},
    {"capabilities", OBJECT},
    {"runtimeConfig", OBJECT},
    {"args", ANY},
    {"prevResult", OBJECT},
    {"disableCheck", BOOL},
    {"cni.dev/valid-attachments", ARRAY},
};

static bool
is_kind(const json_t *v, enum kind kind)
{
    switch (kind) {
    case STRING: return json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v);
    case BOOL: return json_is_boolean(v);
    case OBJECT: return json_is_object(v);
    case ARRAY: return json_is_array(v);
    case INTEGER: return json_is_integer(v);
    default: return true;
    }
}

/* A member that asks for nothing: "ipMasq": false of a bridge's configuration. */
static bool
is_nothing(const json_t *v)
{
    return json_is_null(v) || json_is_false(v);
}

static int
check_key(struct cni *c, const char *name, const json_t *v)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(name, keys[i].name))
            return json_is_null(v) || is_kind(v, keys[i].kind)
                       ? 0
                       : cni_fail(c, CNI_BAD_CONFIG, "%s must be %s", name,
                                  kind_names[keys[i].kind]);
    if (is_nothing(v) || !strncmp(name, "cni.dev/", 8))
        return 0;
    char *value = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
    cni_fail(
        c, CNI_UNSUPPORTED,
        "ofqos-cni has no key %.60s (value %.100s): it has switch, chained, isGateway, isDefaultGateway, "
        "mtu, ipam, dns, tenant, directory and capabilities",
        name, value ? value : "");
    free(value);
    return -1;
}

/* NULL: it is not there, or null. */
static json_t *
member(const json_t *object, const char *name)
{
    json_t *v = json_object_get(object, name);
    return json_is_null(v) ? NULL : v;
}

/* ------------------------------------------------------------------------- rates */

static int
take_number(struct cni *c, const json_t *from, const char *name, uint64_t *out)
{
    const json_t *v = member(from, name);
    *out = 0;
    if (v && (!json_is_integer(v) || json_integer_value(v) < 0))
        return cni_fail(c, CNI_BAD_CONFIG,
                        "runtimeConfig.bandwidth.%s must be a whole number of bits, 0 or more",
                        name);
    *out = v ? (uint64_t)json_integer_value(v) : 0;
    return 0;
}

static int
take_rate(struct cni *c, const json_t *from, const char *rate, const char *burst,
          struct cni_rate *out)
{
    uint64_t bits;
    if (take_number(c, from, rate, &out->rate) || take_number(c, from, burst, &bits))
        return -1;
    if (bits && !out->rate)
        return cni_fail(c, CNI_BAD_CONFIG, "runtimeConfig.bandwidth: %s needs %s", burst, rate);
    out->burst = bits >= BURST_NOT_CHOSEN ? 0 : (bits + 7) / 8;
    return 0;
}

static int
take_rates(struct cni *c)
{
    const json_t *v = member(member(c->conf.json, "runtimeConfig"), "bandwidth");
    if (!v)
        return 0;
    if (!json_is_object(v))
        return cni_fail(c, CNI_BAD_CONFIG, "runtimeConfig.bandwidth must be an object");
    int err = take_rate(c, v, "ingressRate", "ingressBurst", &c->conf.in);
    return err ? err : take_rate(c, v, "egressRate", "egressBurst", &c->conf.out);
}

/* ------------------------------------------------------------------------- the whole */

static int
take_version(struct cni *c)
{
    const char *text = json_string_value(member(c->conf.json, "cniVersion"));
    for (int i = 0; text && i < CNI_VERSIONS; i++)
        if (!strcmp(text, cni_version_names[i])) {
            c->conf.version = (enum cni_version)i;
            return 0;
        }
    return cni_fail(c, CNI_BAD_VERSION, "cniVersion must be 0.4.0, 1.0.0 or 1.1.0, not %s%.40s%s",
                    text ? "'" : "", text ? text : "left out", text ? "'" : "");
}

static int
take_switch(struct cni *c)
{
    const char *one = json_string_value(member(c->conf.json, "switch"));
    const char *other = json_string_value(member(c->conf.json, "bridge"));
    if (one && other && strcmp(one, other))
        return cni_fail(c, CNI_BAD_CONFIG, "switch and bridge mean the same: give one of them");
    const char *text = one ? one : other;
    if (text && (!*text || strlen(text) > 200 || strncmp(text, "punix:", 6) == 0 ||
                 (stream_is_address(text) && strncmp(text, "unix:", 5))))
        return cni_fail(c, CNI_BAD_CONFIG,
                        "switch must be the path of this node's switch's socket, such as "
                        "/run/ofqos/br0.sock, or the name of its service, not '%.60s'",
                        text);
    c->conf.address = text;
    return 0;
}

static int
take_ipam(struct cni *c)
{
    const json_t *v = member(c->conf.json, "ipam");
    const json_t *type = member(v, "type");
    if (type && !json_is_string(type))
        return cni_fail(c, CNI_BAD_CONFIG, "ipam.type must be a text");
    const char *name = json_string_value(type);
    if (!name || !*name)
        return v && json_object_size(v)
                   ? cni_fail(
                         c, CNI_BAD_CONFIG,
                         "ipam needs a type, such as \"host-local\"; without addresses leave out ipam")
                   : 0;
    if (!conf_is_word(name) || strlen(name) > 100)
        return cni_fail(c, CNI_BAD_CONFIG, "ipam.type must be a plugin's name, not '%.60s'", name);
    c->conf.ipam = name;
    return 0;
}

static int
take_rest(struct cni *c)
{
    struct cni_conf *f = &c->conf;
    const json_t *mtu = member(f->json, "mtu");
    json_int_t v = json_integer_value(mtu);
    if (mtu && v && (v < MTU_MIN || v > MTU_MAX))
        return cni_fail(c, CNI_BAD_CONFIG, "mtu must be from %d to %d, not %" JSON_INTEGER_FORMAT,
                        MTU_MIN, MTU_MAX, v);
    f->name = json_string_value(member(f->json, "name"));
    if (!f->name || !conf_is_word(f->name))
        return cni_fail(c, CNI_BAD_CONFIG,
                        "name must be letters, digits, _ . or -, the first a letter or digit");
    f->mtu = (unsigned)v;
    f->is_default = json_is_true(member(f->json, "isDefaultGateway"));
    f->is_gateway = f->is_default || json_is_true(member(f->json, "isGateway"));
    f->chained = json_is_true(member(f->json, "chained"));
    f->dns = member(f->json, "dns");
    if (f->dns && !json_object_size(f->dns))
        f->dns = NULL;
    f->prev = member(f->json, "prevResult");
    f->valid = member(f->json, "cni.dev/valid-attachments");
    return 0;
}

static int
check_chained(struct cni *c)
{
    const struct cni_conf *f = &c->conf;
    if (!f->chained || !(f->ipam || f->is_gateway || f->mtu || f->dns || f->tenant))
        return 0;
    return cni_fail(c, CNI_BAD_CONFIG,
                    f->tenant
                        ? "chained: no tenant there, whose groups are flows, as the kernel forwards"
                        : "chained: addresses, gateway, mtu and dns are the other plugin's: leave "
                          "out ipam, isGateway, isDefaultGateway, mtu and dns");
}

static int
take(struct cni *c)
{
    const char *name;
    json_t *v;
    if (!json_is_object(c->conf.json))
        return cni_fail(c, CNI_BAD_JSON, "the configuration on stdin must be an object");
    if (take_version(c))
        return -1;
    json_object_foreach(c->conf.json, name, v) if (check_key(c, name, v)) return -1;
    return take_rest(c) || take_switch(c) || take_ipam(c) || door_conf(c) || take_rates(c) ||
                   check_chained(c)
               ? -1
               : 0;
}

int
conf_read(struct cni *c)
{
    struct cni_conf *f = &c->conf;
    json_error_t where;
    f->version = CNI_VERSIONS - 1;
    int err = conf_read_all(STDIN_FILENO, &f->text, &f->len);
    if (err == -ENOMEM)
        return cni_no_memory(c);
    if (err)
        return cni_fail(c, CNI_IO, "reading the configuration on stdin: %s (at most %zu bytes)",
                        strerror(-err), CNI_TEXT_MAX);
    if (!strcmp(c->command, "VERSION") && !f->len)
        return 0;
    f->json = json_loadb(f->text, f->len, JSON_REJECT_DUPLICATES, &where);
    if (!f->json)
        return cni_fail(c, CNI_BAD_JSON, "the configuration on stdin, line %d, column %d: %s",
                        where.line, where.column, where.text);
    return strcmp(c->command, "VERSION") ? take(c) : take_version(c) ? -1 : 0;
}

void
conf_free(struct cni_conf *f)
{
    json_decref(f->json);
    json_decref(f->annotation);
    free(f->text);
    *f = (struct cni_conf){0};
}
