/* SPDX-License-Identifier: Apache-2.0 */
#include <core/command.h>

static bool
same_letter(char a, char b)
{
    return a == b || (a && b && strchr("-_", a) && strchr("-_", b));
}

static bool
same_name(const char *a, const char *b)
{
    while (*a && same_letter(*a, *b)) {
        a++;
        b++;
    }
    return *a == *b;
}

static bool
is_called(const struct command *k, const char *name)
{
    return same_name(k->name, name) || (k->alias && same_name(k->alias, name));
}

const struct command *
command_at(const struct command_table *table, size_t i)
{
    if (table->row)
        return table->row(i);
    return i < table->n ? &table->rows[i] : NULL;
}

const struct command *
command_find(const struct command_table *table, const char *name)
{
    const struct command *k;
    for (size_t i = 0; (k = command_at(table, i)); i++)
        if (is_called(k, name))
            return k;
    return NULL;
}

void
command_keys(struct of_wr *w, const struct command *self)
{
    of_printf(w, "\n");
    of_print_usage(w, self->keys);
}
