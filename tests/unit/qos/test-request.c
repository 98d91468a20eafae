/* SPDX-License-Identifier: Apache-2.0 */
/* The wire format, to the byte, and dpctl's grammar. */
#include "test.h"

#include <qos/wire/entry.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct qos_error err;

/* "01 02..." to bytes; "(8)10" is 10 in 8 bytes, big-endian. */
static size_t
bytes(const char *text, uint8_t *out)
{
    size_t n = 0;
    unsigned v, size;
    int used;
    unsigned long long big;
    while (*text) {
        if (*text == ' ') {
            text++;
        } else if (sscanf(text, "(%u)%llu%n", &size, &big, &used) == 2) {
            for (unsigned i = 0; i < size; i++)
                out[n++] = (uint8_t)(big >> (8 * (size - 1 - i)));
            text += used;
        } else {
            assert_int_equal(sscanf(text, "%2x%n", &v, &used), 1);
            out[n++] = (uint8_t)v;
            text += used;
        }
    }
    return n;
}

static int
decode(const char *text, struct qos_request *r)
{
    uint8_t in[512];
    /* An exact copy, so that a sanitizer sees reads past the end. */
    size_t n = bytes(text, in);
    return qos_request_decode(r, in, n, &err);
}

/* Decodes, and encodes to the same bytes; prints, and parses to the same request. */
static struct qos_request
good(const char *text, const char *printed)
{
    struct qos_request r = {0}, again = {0};
    uint8_t in[512], out[512];
    char line[QOS_REQUEST_TEXT], why[512] = "";
    size_t n = bytes(text, in);
    if (qos_request_decode(&r, in, n, &err))
        fail_msg("%s: %s", text, err.text);
    struct of_wr w = of_wr_fixed(out, sizeof out);
    qos_request_encode(&w, &r);
    assert_int_equal(w.len, n);
    assert_memory_equal(out, in, n);
    qos_request_print(&r, line, sizeof line);
    assert_string_equal(line, printed);
    if (qos_request_parse(&again, r.sched, line, why, sizeof why))
        fail_msg("%s: %s", line, why);
    assert_memory_equal(&again, &r, sizeof r);
    return r;
}

#define REFUSED(code, hex)                                                                         \
    do {                                                                                           \
        struct qos_request r_ = {0};                                                               \
        int e_ = decode(hex, &r_);                                                                 \
        assert_int_equal(e_, code);                                                                \
        assert_int_equal(err.err, code);                                                           \
        assert_true(err.text[0]);                                                                  \
        assert_null(r_.sched);                                                                     \
    } while (0)

#define HEAD(sched, object, action) sched " 000000 " object " " action " 0000 "
#define HTB_CLASS                                                                                  \
    HEAD("01", "01", "00")                                                                         \
    "(4)2 (4)10 (8)6000000 (8)10000000 (4)1 00000000 "

static void
canonical(void **state)
{
    good(HTB_CLASS, "cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1");
    good(HEAD("01", "01", "00") "(4)2 (4)10 (8)0 (8)0 (4)0 00000000 "
                                "0001 0008 (4)7 0002 0008 (4)2000 0003 0008 (4)3000 "
                                "0004 0008 (4)1514 001a 0008 (4)300000 001b 0008 (4)605000",
         "cmd=add,port=2,class=10,parent=7,burst=2000b,cburst=3000b,quantum=1514b,rate=30%,"
         "ceil=60.5%");
    good(HEAD("01", "01", "01") "(4)2 (4)10 001e 0005 01 000000",
         "cmd=del,port=2,class=10,children=yes");
}

static void
shapes(void **state)
{
    good(HEAD("01", "00", "00") "(4)2 (4)0", "cmd=add,port=2,default=0");
    good(HEAD("01", "00", "00") "(4)2 (4)20", "cmd=add,port=2,default=20");
    good(HEAD("01", "01", "00") "(4)2 (4)0 (8)100000000 (8)0 (4)0 00000000",
         "cmd=add,port=2,class=0,rate=100mbit");
    good(HEAD("02", "00", "00") "(4)2 (4)10 (4)50", "cmd=add,port=2,class=10,limit=50");
    good(HEAD("02", "00", "01") "(4)2 (4)10", "cmd=del,port=2,class=10");
    good(HEAD("03", "00", "02") "(4)2 (4)0 (4)30720", "cmd=change,port=2,limit=30kb");
    good(HEAD("04", "00", "00") "(4)2 (4)10 (4)10 (4)1500",
         "cmd=add,port=2,class=10,perturb=10s,quantum=1500b");
    good(HEAD("04", "00", "00") "(4)2 (4)10 (4)0 (4)0 0007 0008 (4)300 000d 0008 (4)64 "
                                "0015 0008 (4)20 0016 0008 (4)2048",
         "cmd=add,port=2,class=10,limit=300,flows=64,depth=20,divisor=2048");
    good(HEAD("05", "00", "03") "(4)2 (4)10 (4)20000 (4)100000",
         "cmd=replace,port=2,class=10,threshold=20000b,limit=100000b");
    good(HEAD("00", "00", "01") "ffffffff (4)0", "cmd=del,port=any");
    good(HEAD("00", "00", "01") "(4)3 (4)0 001d 0005 01 000000", "cmd=del,port=3,direction=in");
    good(HEAD("0d", "01", "00") "(4)2 (4)10 "
                                "0019 0024 01 00000000000000 (8)10000000 (8)20000 (8)5000000 "
                                "00000000"
                                "0019 0024 03 00000000000000 (8)0 (8)0 (8)9000000 00000000",
         "cmd=add,port=2,class=10,rt=10mbit/20ms/5mbit,ul=0bit/0us/9mbit");
    good(HEAD("07", "00", "00") "(4)2 (4)10 0017 0005 04 000000 "
                                "0018 0014 01020202 01020000 01010101 01010103 00000000",
         "cmd=add,port=2,class=10,bands=4,priomap=1:2:2:2:1:2:0:0:1:1:1:1:1:1:1:3");
    good(HEAD("0c", "00", "00") "(4)2 (4)0 0005 000c (8)20000000 00000000 001c 0005 03 000000",
         "cmd=add,port=2,bandwidth=20mbit,diffserv=diffserv8");
    good(HEAD("0c", "00", "00") "(4)2 (4)0 0022 0005 05 000000 0023 0005 01 000000 "
                                "0024 0005 01 000000 0025 0005 01 000000 0026 0005 00 000000 "
                                "0027 0005 00 000000 0028 0008 (4)4194304 0029 0008 (4)255 "
                                "002a 0005 01 000000",
         "cmd=add,port=2,flow_mode=dual-srchost,nat=yes,wash=yes,ack_filter=filter,ingress=no,"
         "split_gso=no,memory_limit=4mb,fwmark=255,autorate_ingress=yes");
    good(HTB_CLASS "001f 0008 (4)44 0020 0008 (4)64 0021 0005 01 000000",
         "cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1,overhead=44,mpu=64b,linklayer=atm");
    good(HTB_CLASS "0030 000b 42c3bc726f2031 0000000000",
         "cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1,name=B\xc3\xbcro%201");
    good(HTB_CLASS "0030 000c 252c2223272f5c3d 00000000", /* what the grammar uses itself */
         "cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1,name=%25%2C%22%23%27/%5C=");
    good(HTB_CLASS "0031 0008 (4)500",
         "cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1,promise=500ms");
    good(HTB_CLASS "0031 0008 (4)0",
         "cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1,promise=0us");
    good(HTB_CLASS "0030 0004 00000000",
         "cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1,name=");
    good(HEAD("0e", "01", "00") "(4)2 (4)10 0030 0023 "
                                "61616161 61616161 61616161 61616161 61616161 61616161 61616161 "
                                "616162 0000000000",
         "cmd=add,port=2,class=10,name=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
    good(HEAD("06", "00", "00") "(4)2 (4)10 0005 000c (8)8000000 00000000 001f 0008 ffffffc0",
         "cmd=add,port=2,class=10,rate=8mbit,overhead=-64");
    good(HEAD("0a", "00", "00") "(4)2 (4)10 002b 000c (8)2000000 00000000 002c 0008 (4)1000",
         "cmd=add,port=2,class=10,max_rate=2mbit,ce_threshold=1ms");
    good(HEAD("14", "00", "00") "(4)2 (4)10 002f 0018 00 00 0000 (4)1 (4)2 (4)3 (4)4 "
                                "002f 0018 0f ff 0000 (4)30720 (4)61440 (4)92160 (4)20000",
         "cmd=add,port=2,class=10,dp0=1b/2b/3b/0.0004%,dp15=30kb/60kb/90kb/2%/255");
}

static void
lengths(void **state)
{
    int bad_len = QOS_ERR_BAD_LEN;
    char text[1024];
    uint8_t in[512];
    struct qos_request r;
    /* Every prefix of a class request is too short. */
    size_t n = bytes(HTB_CLASS "0002 0008 (4)2000", in);
    for (size_t i = 0; i < n; i++) {
        if (i == n - 8)
            continue; /* there it is whole, without the property */
        assert_int_equal(qos_request_decode(&r, in, i, &err), bad_len);
    }
    snprintf(text, sizeof text, "%s 00", HTB_CLASS);
    REFUSED(bad_len, text);
    REFUSED(bad_len, HTB_CLASS "0002 0003 (4)0");
    REFUSED(bad_len, HTB_CLASS "0002 0009 (4)2000");
    REFUSED(bad_len, HTB_CLASS "0002 ffff (4)2000");
    REFUSED(bad_len, HEAD("01", "00", "00") "(4)2 (4)0 (8)1 0000");
    REFUSED(bad_len, HEAD("02", "00", "00") "(4)2 (4)10");
}

static void
heads(void **state)
{
    REFUSED(QOS_ERR(OFPSFC_BAD_SCHED), HEAD("ff", "00", "00") "(4)2 (4)0");
    REFUSED(QOS_ERR(OFPSFC_BAD_SCHED), HEAD("02", "01", "00") "(4)2 (4)1 (4)5");
    REFUSED(QOS_ERR(OFPSFC_BAD_SCHED), HEAD("00", "01", "01") "(4)2 (4)0");
    REFUSED(QOS_ERR(OFPSFC_BAD_OBJECT), HEAD("01", "02", "00") "(4)2 (4)0");
    REFUSED(QOS_ERR(OFPSFC_BAD_ACTION), HEAD("01", "01", "04") "(4)2 (4)1");
    REFUSED(QOS_ERR(OFPSFC_BAD_ACTION), HEAD("00", "00", "00") "(4)2 (4)0");
    REFUSED(QOS_ERR(OFPSFC_BAD_PORT), HEAD("01", "01", "01") "ffffffff (4)1");
    REFUSED(QOS_ERR(OFPSFC_BAD_PORT), HEAD("01", "01", "01") "00000000 (4)1");
    REFUSED(QOS_ERR(OFPSFC_BAD_PORT), HEAD("00", "00", "01") "fffffffb (4)0");
    REFUSED(QOS_ERR(OFPSFC_BAD_CLASS), HEAD("01", "01", "01") "(4)1 0000fff0");
    REFUSED(QOS_ERR(OFPSFC_BAD_CLASS), HEAD("01", "01", "01") "(4)1 0000fffe");
    REFUSED(QOS_ERR(OFPSFC_BAD_CLASS), HEAD("02", "00", "01") "(4)1 0000ffff");
    REFUSED(QOS_ERR(OFPSFC_BAD_CLASS), HEAD("01", "01", "01") "(4)1 00010001");
    REFUSED(QOS_ERR(OFPSFC_BAD_CLASS), HEAD("00", "00", "01") "(4)1 00000001");
    REFUSED(QOS_ERR(OFPSFC_BAD_PARAM), "01 000100 01 01 0000 (4)1 (4)1");
    REFUSED(QOS_ERR(OFPSFC_BAD_PARAM), "01 000000 01 01 0100 (4)1 (4)1");
    REFUSED(QOS_ERR(OFPSFC_BAD_PARAM),
            HEAD("01", "01", "00") "(4)2 (4)10 (8)6000000 (8)10000000 (4)1 00000001");
    REFUSED(QOS_ERR(OFPSFC_BAD_PARAM),
            HEAD("01", "01", "00") "(4)2 (4)10 (8)6000000 (8)10000000 (4)8 00000000");
}

static void
properties(void **state)
{
    int bad = QOS_ERR(OFPSFC_BAD_PROPERTY);
    REFUSED(bad, HTB_CLASS "7fff 0008 (4)1");                      /* unknown */
    REFUSED(bad, HTB_CLASS "0000 0008 (4)1");                      /* unknown */
    REFUSED(bad, HTB_CLASS "000e 0005 01 000000");                 /* of no use */
    REFUSED(bad, HTB_CLASS "0002 0008 (4)2000 0002 0008 (4)2000"); /* twice */
    REFUSED(bad, HTB_CLASS "0002 0006 0101 0000");                 /* wrong length */
    REFUSED(bad, HTB_CLASS "001e 0005 01 000000");                 /* WITH_CHILDREN of an ADD */
    REFUSED(bad, HTB_CLASS "0005 000c (8)1 00000000");             /* RATE is fixed there */
    REFUSED(bad, HEAD("01", "01", "01") "(4)2 (4)10 0002 0008 (4)2000"); /* of a DEL */
    REFUSED(bad, HEAD("04", "00", "00") "(4)2 (4)10 (4)0 (4)0 0004 0008 (4)1500");
    REFUSED(QOS_ERR(OFPSFC_BAD_PARAM),
            HEAD("0d", "01", "00") "(4)2 (4)10 0019 0024 04 "
                                   "00000000000000 (8)1 (8)1 (8)1 00000000");
    REFUSED(bad, HEAD("0d", "01", "00") "(4)2 (4)10 0019 0024 01 00000000000000 (8)1 (8)1 (8)1 "
                                        "00000000"
                                        "0019 0024 01 00000000000000 (8)1 (8)1 (8)1 00000000");
    REFUSED(QOS_ERR(OFPSFC_BAD_PARAM), HTB_CLASS "001d 0005 01 000001"); /* its padding */
    REFUSED(QOS_ERR(OFPSFC_BAD_PARAM), HTB_CLASS "001d 0005 02 000000"); /* its value */
    REFUSED(QOS_ERR(OFPSFC_BAD_CLASS), HTB_CLASS "0001 0008 0000fffe");
    REFUSED(bad, HTB_CLASS "0030 0024 61616161 61616161 61616161 61616161 61616161 61616161 "
                           "61616161 61616161 00000000"); /* 32 bytes */
    REFUSED(QOS_BAD_PARAM, HTB_CLASS "0031 0008 (4)99");
    REFUSED(QOS_BAD_PARAM, HTB_CLASS "0031 0008 (4)3600001");
    REFUSED(bad, HEAD("02", "00", "00") "(4)2 (4)10 (4)5 0031 0008 (4)500"); /* of classes */
    REFUSED(bad, HTB_CLASS "0030 0005 61 000000 0030 0005 62 000000");
    REFUSED(bad, HEAD("04", "00", "00") "(4)2 (4)10 (4)0 (4)0 0030 0005 61 000000");
    REFUSED(QOS_BAD_PARAM, HTB_CLASS "0030 0006 6100 0000"); /* NUL */
    REFUSED(QOS_BAD_PARAM, HTB_CLASS "0030 0005 1b 000000"); /* a control character */
    REFUSED(QOS_BAD_PARAM, HTB_CLASS "0030 0007 61c285 00"); /* another, U+0085 */
    REFUSED(QOS_BAD_PARAM, HTB_CLASS "0030 0006 61c3 0000"); /* cut */
    REFUSED(QOS_BAD_PARAM, HTB_CLASS "0030 0006 c0af 0000"); /* overlong */
    REFUSED(QOS_BAD_PARAM, HTB_CLASS "0030 0005 61 000100"); /* its padding */
#define GRED HEAD("14", "00", "00") "(4)2 (4)10 002f 0018 "
    REFUSED(QOS_BAD_PARAM, GRED "10 00 0000 (4)1 (4)2 (4)3 (4)4");
    REFUSED(QOS_BAD_PARAM, GRED "ff 00 0000 (4)1 (4)2 (4)3 (4)4");
    REFUSED(QOS_BAD_PARAM, GRED "00 00 0001 (4)1 (4)2 (4)3 (4)4");
    REFUSED(QOS_BAD_PARAM, GRED "00 00 0000 (4)2 (4)2 (4)3 (4)4");
    REFUSED(QOS_BAD_PARAM, GRED "00 00 0000 (4)2 (4)3 (4)1 (4)4");
    REFUSED(QOS_BAD_PARAM, GRED "00 00 0000 (4)1 (4)2 (4)3 ffffffff");
    REFUSED(bad, GRED "00 00 0000 (4)1 (4)2 (4)3 (4)4 002f 0018 00 00 0000 (4)1 (4)2 (4)3 (4)4");
}

/* LIMIT takes the place of a fixed limit of 0. */
static void
limit_property(void **state)
{
    struct qos_request r;
    assert_int_equal(decode(HEAD("02", "00", "00") "(4)2 (4)10 (4)0 0007 0008 (4)33", &r), 0);
    assert_int_equal(r.values.v[QOS_LIMIT], 33);
    REFUSED(QOS_ERR(OFPSFC_BAD_PROPERTY), HEAD("02", "00", "00") "(4)2 (4)10 (4)5 0007 0008 (4)33");
    REFUSED(QOS_ERR(OFPSFC_BAD_PROPERTY),
            HEAD("02", "00", "00") "(4)2 (4)10 (4)0 0007 0008 (4)0 0007 0008 (4)0");
}

static void
grammar(void **state)
{
    static const struct {
        const char *sched, *text;
        const char *why; /* NULL: it's right */
    } rows[] = {
        {"htb", "cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1", NULL},
        {"htb", "cmd=add port=2 class=0xa rate=30% parent=7", NULL},
        {"htb", "cmd=delete,port=2,class=10,children=yes", NULL},
        {"htb", "cmd=add,port=2,default=20", NULL},
        {"htb", "cmd=mod,port=2,class=10,rate=1mbit", NULL},
        {"sfq", "cmd=add,port=2,class=10,perturb=10", NULL},
        {"red", "cmd=add,port=2,class=10,min=30kb,limit=200kb,probability=0.02,ecn=on", NULL},
        {"none", "port=any", NULL},
        {"none", "cmd=del,port=2", NULL},
        {"htb", "port=2,class=10,rate=6mbit", "cmd is missing"},
        {"htb", "cmd=add,class=10,rate=6mbit", "port is missing"},
        {"htb", "cmd=add,port=2,rate=6mbit", "class is missing"},
        {"htb", "cmd=add,port=2,class=10", "rate is missing"},
        {"htb", "cmd=put,port=2,class=10", "cmd=put is unknown"},
        {"htb", "cmd=add,port=any,class=10,rate=1mbit", "cannot have queues"},
        {"htb", "cmd=add,port=2,class=10,rate=6mbyte", "rate: '6mbyte' has an unknown unit"},
        {"htb", "cmd=add,port=2,class=10,rate=6mbit,color=red", "unknown key color"},
        {"htb", "cmd=add,port=2,class=10,rate=6mbit,rate=7mbit", "rate is given twice"},
        {"htb", "cmd=add,port=2,class=65535,rate=6mbit", "the switch's own"},
        {"htb", "cmd=add,port=2,class=1,rate=6mbit,prio=9", "prio: prio 9 is out of range"},
        {"sfq", "cmd=add,port=2,default=10", "no default class"},
        {"sfq", "cmd=add,port=2,class=10,perturb", "not KEY=VALUE"},
        {"sfq", "cmd=add,port=2,class=10,perturb=", "missing"},
        {"htb", "cmd=add,port=2,class=10,rate=1mbit,name=50%", "%25"},
        {"htb", "cmd=add,port=2,class=10,rate=1mbit,name=%0a", "control character"},
        {"htb", "cmd=add,port=2,class=10,rate=1mbit,name=%ff", "not UTF-8"},
        {"htb", "cmd=add,port=2,class=10,rate=1mbit,name=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "31"},
        {"htb", "cmd=change,port=2,class=10,rate=1mbit,name=", NULL},
        {"sfq", "cmd=add,port=2,class=10,name=a", "unknown key"},
        {"htb", "cmd=add,port=2,class=10,rate=1mbit,promise=1500us", "whole milliseconds"},
        {"htb", "cmd=add,port=2,class=10,rate=1mbit,promise=50", "100ms to 3600s"},
        {"drr", "cmd=add,port=2,class=10,promise=1s", NULL},
        {"htb", "cmd=add,port=2,class=10,rate=1mbit,linklayer=docsis,mpu=5", "mpu is given twice"},
        {"htb", "cmd=add,port=2,class=10,rate=1mbit,linklayer=dialup", "ethernet"},
        {"htb", "cmd=add,port=2,class=10,rate=1mbit,dialup", "not KEY=VALUE"},
        {"htb", "cmd=add,port=2,class=10,rate=1mbit,atm,linklayer=atm", "twice"},
        {"sfq", "cmd=add,port=2,class=10,atm", "unknown key"},
        {"sfq", "cmd=add,port=2,class=10,promise=1s", "unknown key"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct qos_request r, again;
        char why[512] = "", line[QOS_REQUEST_TEXT];
        const struct qos_sched *s = qos_sched_by_name(rows[i].sched);
        int e = qos_request_parse(&r, s, rows[i].text, why, sizeof why);
        if (rows[i].why) {
            if (!e || !strstr(why, rows[i].why))
                fail_msg("%s: %d %s", rows[i].text, e, why);
            continue;
        }
        if (e)
            fail_msg("%s: %s", rows[i].text, why);
        qos_request_print(&r, line, sizeof line);
        assert_int_equal(qos_request_parse(&again, s, line, why, sizeof why), 0);
        assert_memory_equal(&again, &r, sizeof r);
    }
}

/* tc-cake's words for a line; HTB and TBF count the Ethernet header, too. */
static void
lines(void **state)
{
    static const struct {
        const char *sched, *text, *printed;
    } rows[] = {
        {"cake", "linklayer=docsis", "overhead=18,mpu=64b,linklayer=ethernet"},
        {"cake", "linklayer=PPPoE-PTM", "overhead=30,linklayer=ptm"},
        {"cake", "linklayer=ipoa-vcmux", "overhead=8,linklayer=atm"},
        {"cake", "overhead=44,atm", "overhead=44,linklayer=atm"},
        {"cake", "Docsis", "overhead=18,mpu=64b,linklayer=ethernet"},
        {"tbf", "rate=1mbit,linklayer=docsis", "overhead=4,mpu=64b,linklayer=ethernet"},
        {"tbf", "rate=1mbit,linklayer=pppoe-llcsnap", "overhead=26,linklayer=atm"},
        {"tbf", "rate=1mbit,linklayer=pppoa-vcmux", "overhead=-4,linklayer=atm"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct qos_request r;
        char why[512] = "", line[QOS_REQUEST_TEXT], text[200];
        snprintf(text, sizeof text, "cmd=add,port=2,class=10,%s", rows[i].text);
        if (qos_request_parse(&r, qos_sched_by_name(rows[i].sched), text, why, sizeof why))
            fail_msg("%s: %s", text, why);
        qos_request_print(&r, line, sizeof line);
        if (!strstr(line, rows[i].printed))
            fail_msg("%s: %s", text, line);
    }
}

/* A line's word is as many keys as it stands for. */
static void
too_many_keys(void **state)
{
    static const struct {
        unsigned before; /* keys */
        const char *last;
        bool too_many;
    } rows[] = {{45, ",linklayer=docsis", false},
                {46, ",linklayer=docsis", true},
                {47, ",linklayer=docsis", true},
                {46, ",linklayer=pppoe-ptm", false},
                {47, ",linklayer=pppoe-ptm", true},
                {47, ",a=1", false},
                {48, ",a=1", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512] = "cmd=add,port=2", why[512] = "";
        struct qos_request r;
        for (unsigned n = 2; n < rows[i].before; n++)
            strcat(text, ",a=1");
        strcat(text, rows[i].last);
        assert_int_equal(qos_request_parse(&r, qos_sched_by_name("cake"), text, why, sizeof why),
                         -EINVAL);
        if (!strstr(why, rows[i].too_many ? "too many keys; at most 48" : "unknown key a"))
            fail_msg("%u%s: %s", rows[i].before, rows[i].last, why);
    }
}

static void
usage(void **state)
{
    char text[4096];
    for (unsigned i = 0; qos_sched_at(i); i++) {
        int n = qos_sched_usage(qos_sched_at(i), text, sizeof text);
        assert_true(n > 0 && n < (int)sizeof text);
        assert_int_equal(qos_sched_at(i)->id, i);
        assert_int_equal(qos_sched_usage(qos_sched_at(i), NULL, 0), n);
    }
}

static void
error_data(void **state)
{
    uint8_t out[128], request[3] = {1, 2, 3}, want[64 + 4 + 3] = {1, 2, 3};
    struct of_wr w = of_wr_fixed(out, sizeof out);
    struct qos_error e = {.err = QOS_ERR(OFPSFC_KERNEL), .errnum = 22, .text = "no!"};
    want[67] = 22;
    memcpy(want + 68, "no!", 3);
    qos_error_data(&w, request, sizeof request, &e);
    assert_int_equal(w.len, sizeof want);
    assert_memory_equal(out, want, sizeof want);
}

static void
entries(void **state)
{
    uint8_t out[256];
    struct qos_entry entry = {0}, again = {0};
    char why[256];
    assert_int_equal(qos_request_parse(&entry.config, qos_sched_by_name("pfifo"),
                                       "cmd=add,port=2,class=10,limit=50", why, sizeof why),
                     0);
    entry.parent_id = 10;
    entry.counters = (struct qos_counters){1, 2, 3, 4, 5, 6, 7, 8, 0, 0};
    struct of_wr w = of_wr_fixed(out, sizeof out);
    qos_entry_encode(&w, &entry);
    assert_int_equal(w.len, 80); /* 72, limit, padding */
    assert_int_equal(of_get16(out), 80);
    assert_int_equal(out[3], OFP_QOS_SCHED_PFIFO);
    assert_int_equal(of_get64(out + 16 + 5 * 8), 6);
    assert_int_equal(of_get32(out + 68), 8);
    assert_int_equal(of_get32(out + 72), 50);
    struct of_rd rd = of_rd(out, w.len);
    assert_int_equal(qos_entry_decode(&again, &rd, &err), 0);
    assert_memory_equal(&again, &entry, sizeof entry);
    for (size_t n = 0; n < w.len; n++) {
        rd = of_rd(out, n);
        assert_true(qos_entry_decode(&again, &rd, &err) > 0);
    }
}

/* tc gives what no request can; that must not cost a dump all its entries. */
static void
entries_beyond(void **state)
{
    static const struct {
        const char *sched, *args;
        unsigned object, slot;
        uint64_t has;
    } beyond[] = {
        {"htb", "cmd=add,port=2,class=10,rate=1mbit,quantum=3000", OFP_QOS_CLASS, QOS_QUANTUM,
         300000},
        {"htb", "cmd=add,port=2,class=10,rate=1mbit,prio=7", OFP_QOS_CLASS, QOS_PRIO, 8},
        {"fq_codel", "cmd=add,port=2,class=10,quantum=3000", OFP_QOS_QDISC, QOS_QUANTUM, 2000000},
        {"cake", "cmd=add,port=2,class=10,overhead=3", OFP_QOS_QDISC, QOS_OVERHEAD, 300},
        {"gred", "cmd=add,port=2,class=10,dp0=10kb/30kb/60kb/2%", OFP_QOS_QDISC, QOS_PRECEDENCE, 7},
    };
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        uint8_t out[256];
        struct qos_entry entry = {0}, again = {0};
        char why[256], line[QOS_REQUEST_TEXT];
        assert_int_equal(qos_request_parse(&entry.config, qos_sched_by_name(beyond[i].sched),
                                           beyond[i].args, why, sizeof why),
                         0);
        assert_int_equal(entry.config.object_type, beyond[i].object);
        qos_put(&entry.config.values, beyond[i].slot, beyond[i].has);
        struct of_wr w = of_wr_fixed(out, sizeof out);
        qos_entry_encode(&w, &entry);
        struct of_rd rd = of_rd(out, w.len);
        assert_int_equal(qos_entry_decode(&again, &rd, &err), 0);
        assert_int_equal(again.config.values.v[beyond[i].slot], beyond[i].has);
        assert_true(qos_request_print(&again.config, line, sizeof line) < (int)sizeof line);
        assert_int_not_equal(
            qos_request_parse(&again.config, entry.config.sched, line, why, sizeof why), 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(canonical),      cmocka_unit_test(shapes),
        cmocka_unit_test(lengths),        cmocka_unit_test(heads),
        cmocka_unit_test(properties),     cmocka_unit_test(usage),
        cmocka_unit_test(grammar),        cmocka_unit_test(lines),
        cmocka_unit_test(limit_property), cmocka_unit_test(entries),
        cmocka_unit_test(entries_beyond), cmocka_unit_test(error_data),
        cmocka_unit_test(too_many_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
