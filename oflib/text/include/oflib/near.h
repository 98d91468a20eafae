/* SPDX-License-Identifier: Apache-2.0 */
/* Suggests the names nearest to a mistyped one.
 *
 *   struct of_near near = of_near(typed, n);
 *   for (...) of_near_try(&near, name);
 *   printf("there is no %s%s", typed, of_near_text(&near, buf, sizeof buf));
 */
#ifndef OFLIB_NEAR_H
#define OFLIB_NEAR_H

#include <stdbool.h>
#include <stddef.h>

#define OF_NEAR_MAX  3   /* names */
#define OF_NEAR_TEXT 160 /* bytes that are enough for of_near_text */

struct of_near {
    const char *typed;
    size_t n;
    unsigned count;
    struct {
        char name[40];
        unsigned distance;
    } best[OF_NEAR_MAX]; /* the nearest first */
};

struct of_near of_near(const char *typed, size_t n);

/* Tries a name that exists.  Ignores case; "-" and "_" are the same. */
void of_near_try(struct of_near *near, const char *name);

/* "; did you mean a, b or c?", or "" where nothing is near.  Returns buf. */
const char *of_near_text(const struct of_near *near, char *buf, size_t size);

#endif
