/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration file: any bytes are taken, or refused with lines that name the file. */
#include <daemon/config.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool flag;
static unsigned number = 7, word, seconds = 1000;
static const char *text, *config;

static bool
take(const char *arg, char *why, size_t n)
{
    snprintf(why, n, "must not begin with x");
    return !arg || *arg != 'x';
}

static const struct daemon_word words[] = {{"closed", 0}, {"open", 1}, {0}};

static const struct daemon_option options[] = {
    {"flag", 0, NULL, "a flag", NULL, OPTION_FLAG(flag)},
    {"number", 0, "N", "a number", NULL, OPTION_NUMBER(number, 1, 64)},
    {"seconds", 0, "SECS", "seconds", NULL, OPTION_SECONDS(seconds)},
    {"fail", 0, "closed|open", "a word", NULL, OPTION_WORD(word, words)},
    {"text", 0, "TEXT", "a text", NULL, OPTION_TEXT(text)},
    {"call", 0, "TEXT", "a function", NULL, OPTION_CALL(take)},
    {"port", 0, "IF[:NUMBER]", "a section", NULL, OPTION_LIST, .section = "port", .key = "number"},
    {"queue", 0, "IF:LINE", "a line of it", NULL, OPTION_LIST, .section = "port"},
    {"map", 0, "WORD", "a list", NULL, OPTION_LIST},
    {"config", 'c', "FILE", "the file", NULL, OPTION_TEXT(config), .line_only = true},
    OPTION_END,
};

static const struct daemon_program program = {
    .name = "fuzz-config", .version = "", .before = "", .after = "", .options = options};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char option[64], name[] = "fuzz-config";
    char *argv[] = {name, option, NULL};
    struct daemon_settings line = {0}, all = {0};
    int fd = memfd_create("config", MFD_CLOEXEC);
    if (fd < 0 || (n && write(fd, data, n) != (ssize_t)n))
        abort();
    int len = snprintf(option, sizeof option, "--config=/proc/self/fd/%d", fd);
    optind = 0; /* or getopt reads the first input's line alone */
    daemon_settings_of_line(&program, 2, argv, &line);
    daemon_settings_load(&program, &line, &all);
    daemon_settings_take(&program, &all, NULL);
    for (size_t i = 0; i < all.n_faults; i++)
        if (strncmp(all.faults[i], option + strlen("--config="), (size_t)len - strlen("--config=")))
            abort();
    daemon_settings_free(&all);
    daemon_settings_free(&line);
    close(fd);
    return 0;
}
