/* SPDX-License-Identifier: Apache-2.0 */
/* tc's units: rates, sizes, times and shares, from text and to text (tc(8), "PARAMETERS").
 *
 * Parsing takes the whole string.  On failure it answers -EINVAL, leaves *out alone and puts a
 * sentence into `why` that says what is wrong and gives an example.  Formatting is exact: it uses
 * the largest unit that divides the value, so that parsing gives the same value again.
 */
#ifndef QOS_UNITS_H
#define QOS_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QOS_UNIT_TEXT 32 /* fits any formatted value */

/* To bit/s.  "6mbit", "1gbit", "64kibit" (x 1024), "100kbps" (bytes/s), "1.5mbit", "1000" (bit/s);
 * "Mbit/s" and "kBps" are understood too.  Case does not matter. */
int qos_parse_rate(const char *text, uint64_t *bits_per_s, char *why, size_t n);

/* Is it a rate above 0 without a unit?  tc takes it as bit/s, which few people mean. */
bool qos_rate_is_bare(const char *text);

/* Is this right rate one that few people mean as tc takes it: bare, or with mbps, in which tc counts
 * bytes (not MBps, which says so)?  Then a sentence in `why` begins with the words of the key and
 * says what it is taken as, and what to write.  Otherwise `why` becomes "". */
bool qos_rate_doubt(const char *key, const char *text, char *why, size_t n);

/* To bytes; k, m, g are powers of 1024 as in tc.  "30kb", "2mb", "1500", "1500b", "16k",
 * "8kbit" (1024 bytes). */
int qos_parse_size(const char *text, uint64_t *bytes, char *why, size_t n);

/* To microseconds.  "5ms", "100us", "10s"; a bare number is in `bare_us` microseconds (1000000: a
 * bare number is seconds). */
int qos_parse_time(const char *text, uint64_t *us, uint64_t bare_us, char *why, size_t n);

/* To parts per million, at most 1000000.  "2%", "0.02". */
int qos_parse_ppm(const char *text, uint64_t *ppm, char *why, size_t n);

/* Decimal or 0x hexadecimal. */
int qos_parse_number(const char *text, uint64_t *value, char *why, size_t n);

/* Each returns buf. */
char *qos_format_rate(uint64_t bits_per_s, char buf[QOS_UNIT_TEXT]);
char *qos_format_size(uint64_t bytes, char buf[QOS_UNIT_TEXT]);
char *qos_format_time(uint64_t us, char buf[QOS_UNIT_TEXT]);
char *qos_format_ppm(uint64_t ppm, char buf[QOS_UNIT_TEXT]); /* "2%", "0.0125%" */

/* Appends to a text in n bytes; *at is its length, or what that would be if n were larger. */
__attribute__((format(printf, 4, 5))) void qos_append(char *buf, size_t n, int *at, const char *fmt,
                                                      ...);

#endif
