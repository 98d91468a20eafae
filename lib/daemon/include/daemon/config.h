/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: what the command line and the configuration file give the options (options.h).
 *
 *     daemon_settings_of_line(&program, argc, argv, &line);
 *     daemon_settings_load(&program, &line, &now);     // with the file that --config names
 *     daemon_settings_take(&program, &now, NULL);      // sets the rows' variables
 *
 * What the command line gives wins over the file.  Mistakes are collected, so that a person sees
 * all of them: each is a line "FILE:LINE: what is wrong; what would be right".
 *
 * The file is INI: KEY = VALUE, where a key is an option's name; [SECTION TITLE]; # comments.  Only
 * config-file.c sees the library that reads it, and a build without it refuses files. */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <daemon/options.h>

#include <oflib/arena.h>

struct daemon_setting {
    const struct daemon_option *row;
    const char *value; /* NULL: none; in a section TITLE:VALUE */
    unsigned line;     /* of the file; 0: it is the command line's */
    bool in_section;   /* of the file: the value has the section's title before it */
};

struct daemon_settings {
    struct of_arena arena; /* of the values, and for what the program makes of them */
    const char *file;      /* NULL: none */
    struct daemon_setting *v;
    size_t n, room;
    const char **faults; /* mistakes, a line each */
    size_t n_faults, faults_room;
};

/* Takes --help and --version, which end the program, as a mistake does.  -> the index of the first
 * word that is no option. */
int daemon_settings_of_line(const struct daemon_program *p, int argc, char **argv,
                            struct daemon_settings *out);

/* Adds one of the command line, such as a word that is no option. */
void daemon_settings_add(struct daemon_settings *s, const struct daemon_program *p,
                         const char *name, const char *value);

/* Loads the settings of the file that --config or --check names, except those of rows that `line`
 * has, and adds those of `line`. */
void daemon_settings_load(const struct daemon_program *p, const struct daemon_settings *line,
                          struct daemon_settings *out);

/* Sets the rows' variables to their defaults, then to the settings.  A row with a function
 * (OPTION_CALL) is left alone if `was`, the settings in force (NULL: none), has the same for it. */
void daemon_settings_take(const struct daemon_program *p, struct daemon_settings *s,
                          const struct daemon_settings *was);

/* To be called once everything has been made of the settings: if memory ran out, here or on the
 * command line, that is reported as a mistake.  Not everybody who keeps something in the arena
 * does so. */
void daemon_settings_check_memory(struct daemon_settings *s, const struct daemon_settings *line);

void daemon_settings_free(struct daemon_settings *s);

/* The next setting of the row with this name; after NULL: the first.  NULL: no more. */
const struct daemon_setting *daemon_settings_next(const struct daemon_settings *s, const char *name,
                                                  const struct daemon_setting *after);

/* Whether both give a row the same values. */
bool daemon_settings_same(const struct daemon_settings *a, const struct daemon_settings *b,
                          const struct daemon_option *row);

/* Reports a mistake in the setting `at`; the sentence continues its name ("must be ...").  NULL: a
 * mistake in the settings as a whole. */
__attribute__((format(printf, 3, 4))) void daemon_settings_fault(struct daemon_settings *s,
                                                                 const struct daemon_setting *at,
                                                                 const char *fmt, ...);

/* The value as it was written, without a section's title. */
const char *daemon_settings_written(const struct daemon_setting *at);

/* "/etc/ofqos/br0.conf:7", "--map" */
const char *daemon_settings_where(const struct daemon_settings *s, const struct daemon_setting *at,
                                  char *buf, size_t n);

#endif
