/* SPDX-License-Identifier: Apache-2.0 */
/* Ports at run time and the switch's description: messages of ofqos's own (docs/reference/extensions.md). */
#include <core/change.h>
#include <core/command.h>
#include <core/ports.h>
#include <core/say.h>
#include <core/words.h>

#include <oflib/wire.h>

#include <string.h>

#define NAME_LEN  16  /* an interface's name, its end included */
#define VLANS_LEN 500 /* a list of VLANs */

static enum status
send_ext(struct ctx *c, uint32_t exp_type, const void *data, size_t n)
{
    struct of_experimenter m = {OFP_QOS_EXPERIMENTER, exp_type, {data, n}};
    return change_send(c, OFPT_EXPERIMENTER, &m);
}

/* "5", "port=5", "eth1" */
static enum status
take_port_word(struct ctx *c, const char *word, uint32_t *out)
{
    *out = 0;
    return ports_number(c, strncmp(word, "port=", 5) ? word : word + 5, out);
}

/* Takes out "vlan=10", "trunk=20:30", and joins them; NULL: no memory. */
static const char *
take_vlans(struct ctx *c, char **words, int *n)
{
    char *took[8];
    int left = 0, k = 0;
    for (int i = 0; i < *n; i++)
        if (k < 8 && (!strncmp(words[i], "vlan=", 5) || !strncmp(words[i], "trunk=", 6)))
            took[k++] = words[i];
        else
            words[left++] = words[i];
    *n = left;
    return k ? words_join(c, took, k, ',') : "";
}

static enum status
port_add(struct ctx *c, const struct command *self, char **words, int n)
{
    uint8_t data[4 + NAME_LEN + 4 + VLANS_LEN] = {0};
    uint32_t no = 0;
    const char *vlans = take_vlans(c, words, &n);
    const uint32_t flags =
        (n > 1 && words_take_flag(words, &n, "force") ? OFPORT_ADD_FORCE : 0) |
        (n > 1 && words_take_flag(words, &n, "queues-only") ? OFPORT_ADD_QUEUES_ONLY : 0);
    enum status st = n == 2 ? take_port_word(c, words[1], &no) : DPCTL_OK;
    if (n < 1 || n > 2)
        return say_usage(
            c, "write an interface's name and, if wanted, its port number: port-add eth3 port=7");
    if (!vlans)
        return say_memory(c);
    if (strlen(vlans) >= VLANS_LEN)
        return say_usage(c, "the list of VLANs is too long: write ranges, such as trunk=10-19:30");
    if (st)
        return st;
    size_t len = strlen(words[0]);
    if (!len || len >= NAME_LEN)
        return say_usage(c, "an interface name has 1 to %d characters, not '%s'", NAME_LEN - 1,
                         words[0]);
    of_set32(data, no);
    memcpy(data + 4, words[0], len);
    of_set32(data + 4 + NAME_LEN, flags);
    memcpy(data + 8 + NAME_LEN, vlans, strlen(vlans));
    ports_forget(c);
    return send_ext(c, OFP_EXP_PORT_ADD, data,
                    *vlans  ? 8 + NAME_LEN + strlen(vlans)
                    : flags ? 8 + NAME_LEN
                            : 4 + NAME_LEN);
}

static enum status
port_del(struct ctx *c, const struct command *self, char **words, int n)
{
    uint8_t data[4];
    uint32_t no = 0;
    if (n != 1)
        return say_usage(c, "write one port's number or name: port-del eth3");
    enum status st = take_port_word(c, words[0], &no);
    if (st)
        return st;
    of_set32(data, no);
    ports_forget(c);
    return send_ext(c, OFP_EXP_PORT_DEL, data, sizeof data);
}

static enum status
set_desc(struct ctx *c, const struct command *self, char **words, int n)
{
    char data[OFP_DESC_STR_LEN] = {0};
    const char *text = words_join(c, words, n, ' ');
    if (!text)
        return say_memory(c);
    if (!n || strlen(text) >= sizeof data)
        return say_usage(c, "write a text of up to %zu bytes", sizeof data - 1);
    memcpy(data, text, strlen(text));
    return send_ext(c, OFP_EXP_SET_DESC, data, sizeof data);
}

static enum status
reload(struct ctx *c, const struct command *self, char **words, int n)
{
    if (n)
        return say_usage(c, "reload takes no arguments");
    ports_forget(c);
    return send_ext(c, OFP_EXP_RELOAD, NULL, 0);
}

static const struct command rows[] = {
    {.name = "port-add",
     .subject = SUBJECT_PORT,
     .first = {TASK_FORWARD, "port-add eth3", "makes an interface a port"},
     .args = "INTERFACE [port=N] [vlan=VLAN] [trunk=VLAN[:VLAN]...] [force] [queues-only]",
     .help = "makes an interface a port (with the lowest free number)",
     .text =
         "  vlan=10         an access port of NORMAL: untagged frames are of this VLAN, tagged ones are refused\n"
         "  trunk=20:30-39  a trunk of NORMAL: the VLANs whose tagged frames it has; beside it vlan= is the\n"
         "                  native VLAN, without tags\n"
         "Without both the port has all VLANs, with their tags; status shows them.\n"
         "An interface that another switch has, or that is in a bridge, a bond or Open vSwitch, is\n"
         "refused:\n"
         "  force   take it nevertheless: its packets are then forwarded twice\n"
         "  queues-only  leave its packets to the kernel, which bridges or routes them as before: the switch\n"
         "          has the interface's queues only, in both directions\n",
     .examples =
         "port-add eth3\nport-add eth3 port=7\nport-add eth3 vlan=10\nport-add veth7 queues-only",
     .run = port_add},
    {.name = "port-del",
     .subject = SUBJECT_PORT,
     .args = "PORT",
     .help = "removes a port and its queues",
     .examples = "port-del 3\nport-del eth2",
     .run = port_del},
    {.name = "set-desc",
     .args = "TEXT",
     .help = "sets the switch's description (dp_desc)",
     .examples = "set-desc second floor",
     .run = set_desc,
     .verbatim = true},
    {.name = "reload",
     .help = "reads the switch's configuration file again and applies what was changed",
     .text =
         "The file is the one of ofdatapath --config.  If anything in it is wrong, nothing changes;\n"
         "dpctl prints the first mistake, the switch's log has all of them.\n",
     .examples = "reload",
     .run = reload},
};

const struct command_table commands_switch = COMMAND_TABLE(rows);
