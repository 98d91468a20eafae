/* SPDX-License-Identifier: Apache-2.0 */
/* The switch's own experimenter messages (docs/extensions.md): ports at run time, its description. */
#include "commands.h"

#include <oflib/wire.h>

#include <string.h>

#define NAME_LEN 16 /* an interface's name, its end included */

static enum status
send_ext(struct ctx *c, uint32_t exp_type, const void *data, size_t n)
{
    struct of_experimenter m = {OFP_QOS_EXPERIMENTER, exp_type, {data, n}};
    return modify(c, OFPT_EXPERIMENTER, &m);
}

/* "5", "port=5", "eth1" */
static enum status
parse_port(struct ctx *c, const char *word, uint32_t *out)
{
    *out = 0;
    return port_number(c, strncmp(word, "port=", 5) ? word : word + 5, out);
}

static enum status
port_add(struct ctx *c, char **words, int n)
{
    uint8_t data[4 + NAME_LEN] = {0};
    uint32_t no = 0;
    enum status st = n == 2 ? parse_port(c, words[1], &no) : DPCTL_OK;
    if (n < 1 || n > 2)
        return bad_args(c, "one interface's name, then its port number if it matters, is right");
    if (st)
        return st;
    size_t len = strlen(words[0]);
    if (!len || len >= NAME_LEN)
        return bad_args(c, "'%s' is no interface name: 1 to %d characters", words[0], NAME_LEN - 1);
    of_set32(data, no);
    memcpy(data + 4, words[0], len);
    ports_forget(c);
    return send_ext(c, OFP_EXP_PORT_ADD, data, sizeof data);
}

static enum status
port_del(struct ctx *c, char **words, int n)
{
    uint8_t data[4];
    uint32_t no = 0;
    if (n != 1)
        return bad_args(c, "one port's number or name is right");
    enum status st = parse_port(c, words[0], &no);
    if (st)
        return st;
    of_set32(data, no);
    ports_forget(c);
    return send_ext(c, OFP_EXP_PORT_DEL, data, sizeof data);
}

static enum status
set_desc(struct ctx *c, char **words, int n)
{
    char data[OFP_DESC_STR_LEN] = {0};
    const char *text = join_words(c, words, n, ' ');
    if (!text)
        return failed(c, "out of memory");
    if (!n || strlen(text) >= sizeof data)
        return bad_args(c, "a text of up to %zu bytes is right", sizeof data - 1);
    memcpy(data, text, strlen(text));
    return send_ext(c, OFP_EXP_SET_DESC, data, sizeof data);
}

const struct command ext_commands[] = {
    {"port-add", NULL, "INTERFACE [port=N]",
     "makes an interface a port (of the lowest free number)", port_add, NULL},
    {"port-del", NULL, "PORT", "removes a port and its queues", port_del, NULL},
    {"set-desc", NULL, "TEXT", "sets the switch's description (dp_desc)", set_desc,
     MORE(.verbatim = true)},
    {"status", NULL, "", "how the switch is: controllers, connections, flows", show_status, NULL},
    {"counters", NULL, "", "shows what was dropped, refused and lost, by reason", counters, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
