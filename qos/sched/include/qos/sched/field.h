/* SPDX-License-Identifier: Apache-2.0 */
/* A parameter of a scheduler: a row that decoding, encoding, range checks, dpctl's grammar, help
 * and the messages to the kernel are generic over. */
#ifndef QOS_FIELD_H
#define QOS_FIELD_H

#include <qos/sched/error.h>
#include <qos/sched/values.h>

/* How a value is written for people. */
enum qos_unit {
    QOS_U_COUNT,
    QOS_U_PACKETS,
    QOS_U_RATE,   /* bit/s */
    QOS_U_SIZE,   /* bytes */
    QOS_U_SIGNED, /* bytes, or fewer: a negative number; 64 bits in struct qos_values */
    QOS_U_SEC,    /* whole seconds */
    QOS_U_USEC,   /* microseconds; a bare number is microseconds */
    QOS_U_PPM,    /* parts per million: "2%" or "0.02" */
    QOS_U_SHARE,  /* parts per million of the parent's: "30%" */
    QOS_U_BOOL,
    QOS_U_CLASS,      /* a class id */
    QOS_U_ENUM,       /* one of the row's words */
    QOS_U_PRIOMAP,    /* 16 numbers, "1:2:2:..." */
    QOS_U_CURVE,      /* "m1/d/m2", e.g. "10mbit/20ms/5mbit" */
    QOS_U_PRECEDENCE, /* "min/max/limit/probability", e.g. "10kb/30kb/60kb/2%" (precedence.h) */
    QOS_U_NAME,       /* text of up to 31 bytes (name.h) */
    QOS_U_MSEC,       /* whole milliseconds; a bare number is milliseconds */
};

/* Where a field may be given. */
#define QOS_ON_QDISC 0x1u
#define QOS_ON_CLASS 0x2u
#define QOS_ON_SET   0x4u /* ADD, CHANGE, REPLACE */
#define QOS_ON_DEL   0x8u
#define QOS_NEEDED   0x10u /* dpctl: must be given on ADD */
#define QOS_LEAVES   0x20u /* the kernel takes it only while the class has none below it */
#define QOS_AT_ADD   0x40u /* the kernel takes it only when the qdisc is added */
#define QOS_STAYS    0x80u /* the kernel can change it, but neither add nor remove it */

#define QOS_TICK_NS 64 /* the kernel's unit of time in tc's structures (PSCHED_TICKS2NS) */

/* How exactly the kernel keeps a value, and so when what it reports equals what it was given. */
enum qos_kept {
    QOS_KEPT_EXACT,
    QOS_KEPT_KBIT,       /* a rate, in kbit/s */
    QOS_KEPT_BYTES,      /* a rate, in bytes/s; of a curve: m1 and m2 */
    QOS_KEPT_TICKS,      /* bytes, as ticks at the rate in slot `kept_rate` */
    QOS_KEPT_TICKS_CUT,  /* the same, but the kernel rounds down */
    QOS_KEPT_TICK_TIME,  /* a time in ticks */
    QOS_KEPT_CODEL_TIME, /* a time in units of 1024 ns, rounded down in both directions */
    QOS_KEPT_JIFFIES,    /* a time in jiffies, rounded up */
};

struct qos_field {
    const char *names; /* "threshold|min": the first one is printed */
    uint8_t slot;
    uint8_t unit;      /* enum qos_unit */
    uint8_t where;     /* QOS_ON_ */
    uint8_t fixed;     /* bytes as a fixed parameter, 0: is none */
    uint8_t pad;       /* zero bytes after the fixed parameter */
    uint8_t prop;      /* property type, 0: is none.  With `fixed`: may take a zero's place */
    uint8_t rival;     /* slot whose value ends when this one gets a value other than 0; 0: none */
    uint8_t sub;       /* SERVICE_CURVE: `which`; DROP_PRECEDENCE: its number, plus 1 */
    uint64_t min, max; /* of the value; a fixed 0 always is allowed where min is 0 */
    const char *words; /* QOS_U_ENUM: "besteffort|diffserv3|...", in the order of the values */
    const char *help;  /* "largest queue (default: ...)" */

    /* The attribute inside TCA_OPTIONS (linux/pkt_sched.h) that the generic fill writes, and its
     * bytes (0: 4).  Rates are bytes/s there.  0: the scheduler's own fill in qos/netlink/ does
     * it. */
    uint8_t attr, attr_bytes;
    uint8_t kept, kept_rate; /* enum qos_kept */
    const uint8_t *codes;    /* QOS_U_ENUM: the kernel's number for each value; NULL: the same */
    uint32_t none;           /* 0 is allowed and means none, which the kernel writes as this */
};

/* Does the field take part in a request of this object and action? */
bool qos_field_applies(const struct qos_field *f, unsigned object, unsigned action);

/* Number of slots: 1, 2 (PRIOMAP, DROP_PRECEDENCE), 3 (SERVICE_CURVE), 4 (NAME). */
unsigned qos_field_slots(const struct qos_field *f);

/* Does `name` (n characters) name the field? */
bool qos_field_named(const struct qos_field *f, const char *name, size_t n);

/* The field's first name into buf. */
char *qos_field_name(const struct qos_field *f, char *buf, size_t n);

/* What kind of value it takes, for usage lines: "RATE", "yes|no". */
const char *qos_field_hint(const struct qos_field *f);

/* The values that are allowed, "0 to 7", into buf; "" where every number of 32 bits is, every rate,
 * and where the value is no number. */
char *qos_field_range(const struct qos_field *f, char *buf, size_t n);

/* A value as text ("6mbit", "yes") and back.  Parsing answers -EINVAL and says why. */
char *qos_field_format(const struct qos_field *f, const struct qos_values *v, char *buf, size_t n);
int qos_field_parse(const struct qos_field *f, const char *text, struct qos_values *v, char *why,
                    size_t n);

/* Is this one within the field's range? */
bool qos_field_allows(const struct qos_field *f, uint64_t value);

/* Is every value within its field's range?  OFPSFC_BAD_PARAM. */
int qos_field_check(const struct qos_field *f, const struct qos_values *v, struct qos_error *e);

#endif
