/* SPDX-License-Identifier: Apache-2.0 */
#include "policy-words.h"

#include <oflib/near.h>
#include <qos/sched/name.h>
#include <qos/sched/units.h>

#include <ctype.h>
#include <errno.h>
#include <stddef.h>

#define LATENCY_MAX 100000 /* CoDel's interval: a delay that lasts longer is what it acts upon */

static const char blanks[] = " \t";

struct clause {
    struct of_parse *p;
    struct policy *to;
    const char *key;
    void *member; /* of *to, that the value goes to */
    char *value;  /* the word behind the clause's; "" where the line ends */
};

/* A share has a percent sign: "0.3" is a rate. */
static int
take_amount(struct clause *c)
{
    const char *key = c->key;
    struct policy_amount *a = c->member;
    char why[256];
    if (a->text)
        return of_parse_wrong(c->p, "%s is given twice", key);
    if (!isdigit((unsigned char)*c->value))
        return of_parse_wrong(c->p, "%s needs a rate or a share: write %s 2mbit or %s 30%%", key,
                              key, key);
    a->text = c->value;
    int err = strchr(c->value, '%') ? qos_parse_ppm(c->value, &a->ppm, why, sizeof why)
                                    : qos_parse_rate(c->value, &a->rate, why, sizeof why);
    if (err)
        return of_parse_wrong(c->p, "%s: %s", key, why);
    return a->rate || a->ppm ? 0 : of_parse_wrong(c->p, "%s must be more than 0", key);
}

static int
take_latency(struct clause *c)
{
    char why[256];
    uint64_t us;
    if (c->to->latency)
        return of_parse_wrong(c->p, "latency is given twice");
    if (!*c->value)
        return of_parse_wrong(c->p, "latency needs a time: write latency 10ms");
    if (qos_parse_time(c->value, &us, 1, why, sizeof why))
        return of_parse_wrong(c->p, "latency: %s", why);
    if (!us || us >= LATENCY_MAX || isdigit((unsigned char)c->value[strlen(c->value) - 1]))
        return of_parse_wrong(
            c->p, "latency must be less than 100ms and have a unit, such as 10ms, not '%.40s'",
            c->value);
    c->to->latency = c->value;
    c->to->latency_us = us;
    return 0;
}

static int
take_name(struct clause *c)
{
    const char **name = c->member;
    if (*name)
        return of_parse_wrong(c->p, "%s is given twice", c->key);
    if (!isalpha((unsigned char)*c->value) || strlen(c->value) > QOS_NAME_BYTES ||
        strpbrk(c->value, "=,%"))
        return of_parse_wrong(
            c->p,
            "%s needs a name that begins with a letter and has at most %d characters: write "
            "%s office",
            c->key, QOS_NAME_BYTES, c->key);
    *name = c->value;
    return 0;
}

/* A rule of a map, without a queue. */
static int
take_rule(struct of_parse *p, struct policy *to, const char *word)
{
    if (!strcmp(word, "others")) {
        to->others = true;
        return 0;
    }
    if (strstr(word, "queue="))
        return of_parse_wrong(p, "leave out queue=: the policy is the queue");
    if (to->n_rules == POLICY_RULES)
        return of_parse_wrong(p, "more than %d rules in one policy; use two", POLICY_RULES);
    to->rules[to->n_rules++] = word;
    return 0;
}

static int
take_for(struct clause *c)
{
    if (!*c->value || (!strchr(c->value, '=') && strcmp(c->value, "others")))
        return of_parse_wrong(
            c->p,
            "for needs a rule of qos-map, or others: write for app=sip dscp=ef, not "
            "'for %.40s'",
            c->value);
    return take_rule(c->p, c->to, c->value);
}

static const struct {
    const char *word;
    int (*take)(struct clause *c);
    size_t at; /* the member's place */
} clauses[] = {
    {"guarantee", take_amount, offsetof(struct policy, guarantee)},
    {"limit", take_amount, offsetof(struct policy, limit)},
    {"latency", take_latency, 0},
    {"for", take_for, 0},
    {"as", take_name, offsetof(struct policy, name)},
    {"within", take_name, offsetof(struct policy, within)},
};

#define N_CLAUSES (sizeof clauses / sizeof clauses[0])

static size_t
find_clause(const char *word, size_t n)
{
    size_t i = 0;
    while (i < N_CLAUSES && (strlen(clauses[i].word) != n || strncmp(clauses[i].word, word, n)))
        i++;
    return i;
}

bool
qos_policy_is(const char *text)
{
    return find_clause(text, strcspn(text, blanks)) < N_CLAUSES;
}

static int
unknown_word(struct of_parse *p, const char *word)
{
    char text[OF_NEAR_TEXT];
    struct of_near near = of_near(word, strlen(word));
    for (size_t i = 0; i < N_CLAUSES; i++)
        of_near_try(&near, clauses[i].word);
    return of_parse_wrong(p, "unknown word '%.40s'%s", word,
                          near.count ? of_near_text(&near, text, sizeof text)
                                     : ": a policy has guarantee, limit, latency, for, as, within");
}

/* The next word at *at, without a comma behind it. */
static char *
next_word(char **at)
{
    char *word = *at + strspn(*at, blanks);
    size_t n = strcspn(word, blanks);
    *at = word + n + (word[n] != '\0');
    word[n] = '\0';
    while (n && word[n - 1] == ',')
        word[--n] = '\0';
    return word;
}

static int
check(struct of_parse *p, const struct policy *to)
{
    if (to->latency && !to->guarantee.text)
        return of_parse_wrong(
            p, "latency holds for a guarantee only: add guarantee 2mbit, or a share such as "
               "guarantee 10%%");
    if (!to->guarantee.text && !to->limit.text)
        return of_parse_wrong(p, "the policy gives nothing: add guarantee 2mbit or limit 10mbit");
    if (!to->n_rules && !to->others && !to->name)
        return of_parse_wrong(
            p, "the policy does not say which packets it is for: add for app=sip, for "
               "src=10.0.0.0/8 or for others");
    if (to->n_rules && to->others)
        return of_parse_wrong(
            p, "others are the packets that fit no rule: leave out others, or the rules");
    return 0;
}

int
qos_policy_words(struct of_parse *p, const struct profile_line *line, struct policy *out)
{
    char *at = of_arena_text(p->arena, line->text, strlen(line->text));
    struct clause c = {.p = p, .to = out};
    bool rules = false; /* behind "for" */
    int err = at ? 0 : -ENOMEM;
    out->line = line;
    while (!err && *at) {
        char *word = next_word(&at);
        size_t i = find_clause(word, strlen(word));
        bool last = !*word;
        if (!last && i == N_CLAUSES)
            err = rules && strchr(word, '=') ? take_rule(p, out, word) : unknown_word(p, word);
        if (last || i == N_CLAUSES)
            continue;
        c.key = clauses[i].word;
        c.member = (char *)out + clauses[i].at;
        c.value = next_word(&at);
        rules = clauses[i].take == take_for;
        err = clauses[i].take(&c);
    }
    return err ? err : check(p, out);
}
