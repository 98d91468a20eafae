/* SPDX-License-Identifier: Apache-2.0 */
/* Options: what each kind takes and refuses, and how the rows are printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <daemon/daemon.h>
#include <daemon/options.h>

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static struct {
    bool flag;
    unsigned number, seconds, rest, word;
    const char *text, *file, *odd;
} v;

static bool
take_odd(const char *arg, char *why, size_t n)
{
    snprintf(why, n, "must be odd");
    v.odd = arg;
    return atoi(arg) % 2;
}

static const struct daemon_word words[] = {{"red", 3}, {"green", 0}, {"blue", 7}, {0}};

/* clang-format off */
static const struct daemon_option options[] = {
    OPTION_GROUP("First"),
    {"flag", 'g', NULL, "switches something on", NULL, OPTION_FLAG(v.flag)},
    {"number", 'n', "N", "so many", NULL, OPTION_NUMBER(v.number, 2, 900)},
    {"seconds", 0, "SECS", "so long", NULL, OPTION_SECONDS(v.seconds)},
    {"rest", 0, "SECS", "so long, or for ever", "long", OPTION_SECONDS_OR(v.rest, UINT32_MAX)},
    {"word", 0, "red|green", "a colour", NULL, OPTION_WORD(v.word, words)},
    OPTION_GROUP("Second"),
    {"text", 't', "TEXT", "anything, of which there is so much to say that one line of a terminal "
     "is not enough for it, nor for what follows", NULL, OPTION_TEXT(v.text)},
    {"an-option-with-a-long-name", 0, "[FILE]", "a file", NULL, OPTION_TEXT(v.file)},
    {"odd", 0, "N", NULL, NULL, OPTION_CALL(take_odd)},
    {"old", 0, "[X]", NULL, NULL, OPTION_IGNORED},
    OPTION_END,
};
/* clang-format on */

static const struct daemon_program program = {.name = "prog",
                                              .version = "prog 1",
                                              .before = "usage\n",
                                              .after = "\nend\n",
                                              .options = options};

static int
begin(void **state)
{
    memset(&v, 0, sizeof v);
    v.number = 64;
    v.seconds = 2500;
    optind = 0;
    return 0;
}

static const struct daemon_option *
row(const char *name)
{
    const struct daemon_option *o = options;
    while (!o->name || strcmp(o->name, name))
        o++;
    return o;
}

/* "": taken. */
static const char *
refusal(const char *name, const char *arg)
{
    static char why[256];
    bool taken = daemon_option_take(row(name), arg, why, sizeof why);
    return taken ? "" : why;
}

static void
numbers(void **state)
{
    static const char *const bad[] = {"",   "1",   "901", "-3",  "+3",
                                      "3x", "0x5", " 3",  "4.0", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_string_equal(refusal("number", bad[i]),
                            "must be a number from 2 to 900, such as 64");
    assert_int_equal(v.number, 64);
    assert_string_equal(refusal("number", "2"), "");
    assert_int_equal(v.number, 2);
    assert_string_equal(refusal("number", "900"), "");
    assert_int_equal(v.number, 900);
}

static void
seconds(void **state)
{
    static const char *const bad[] = {"", "0.05", "3600.1", "-1", "1e3", "nan", "5s", "0x1", "."};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_string_equal(refusal("seconds", bad[i]),
                            "must be a number of seconds from 0.1 to 3600, such as 2.5");
        assert_non_null(strstr(refusal("rest", bad[i]), ", or 0 for never"));
    }
    assert_true(*refusal("seconds", "0"));
    assert_string_equal(refusal("seconds", "0.1"), "");
    assert_int_equal(v.seconds, 100);
    assert_string_equal(refusal("seconds", "3600"), "");
    assert_int_equal(v.seconds, 3600000);
    assert_string_equal(refusal("rest", "0.0"), "");
    assert_int_equal(v.rest, UINT32_MAX);
}

static void
words_and_calls(void **state)
{
    assert_string_equal(refusal("word", "re"), "must be red, green or blue");
    assert_string_equal(refusal("word", "blue"), "");
    assert_int_equal(v.word, 7);
    assert_string_equal(refusal("odd", "4"), "must be odd");
    assert_string_equal(refusal("odd", "5"), "");
}

static void
a_command_line(void **state)
{
    const char *argv[] = {"prog",  "-gn7",   "first",  "--text=a b", "--an-option-with-a-long-name",
                          "--old", "second", "--word", "red",        NULL};
    int first = daemon_options(&program, 9, (char **)(uintptr_t)argv);
    assert_int_equal(first, 7);
    assert_string_equal(argv[first], "first");
    assert_string_equal(argv[first + 1], "second");
    assert_true(v.flag);
    assert_int_equal(v.number, 7);
    assert_int_equal(v.word, 3);
    assert_string_equal(v.text, "a b");
    assert_string_equal(v.file, "");
}

static void
check_page(const char *format, const char *wanted)
{
    char *page;
    size_t n;
    FILE *f = open_memstream(&page, &n);
    assert_true(daemon_options_print(&program, format, f));
    fclose(f);
    assert_string_equal(page, wanted);
    free(page);
}

static void
pages(void **state)
{
    check_page(
        "text",
        "usage\n"
        "\n"
        "First:\n"
        "  -g, --flag                   switches something on\n"
        "  -n, --number=N               so many (2 to 900; default: 64)\n"
        "      --seconds=SECS           so long (default: 2.5)\n"
        "      --rest=SECS              so long, or for ever (0: never; default: long)\n"
        "      --word=red|green         a colour (default: green)\n"
        "\n"
        "Second:\n"
        "  -t, --text=TEXT              anything, of which there is so much to say that one "
        "line of a\n"
        "                               terminal is not enough for it, nor for what follows\n"
        "      --an-option-with-a-long-name[=FILE]\n"
        "                               a file\n"
        "  -h, --help                   print this, and end\n"
        "  -V, --version                print the version, and end\n"
        "\n"
        "Accepted for old scripts' sake, and ignored: --old\n"
        "\n"
        "end\n");
    check_page(
        "markdown",
        "\n"
        "| First | | default |\n"
        "| --- | --- | --- |\n"
        "| `-g`, `--flag` | switches something on | |\n"
        "| `-n`, `--number=N` | so many (2 to 900) | 64 |\n"
        "| `--seconds=SECS` | so long | 2.5 |\n"
        "| `--rest=SECS` | so long, or for ever (0: never) | long |\n"
        "| `--word=red\\|green` | a colour | green |\n"
        "\n"
        "| Second | | default |\n"
        "| --- | --- | --- |\n"
        "| `-t`, `--text=TEXT` | anything, of which there is so much to say that one line of "
        "a terminal is not enough for it, nor for what follows | |\n"
        "| `--an-option-with-a-long-name[=FILE]` | a file | |\n"
        "| `-h`, `--help` | print this, and end | |\n"
        "| `-V`, `--version` | print the version, and end | |\n");
    check_page("man", ".SS First\n"
                      ".TP\n"
                      "\\fB\\-g\\fR, \\fB\\-\\-flag\\fR\n"
                      "switches something on.\n"
                      ".TP\n"
                      "\\fB\\-n\\fR, \\fB\\-\\-number\\fR=N\n"
                      "so many (2 to 900).\n"
                      "Default: 64.\n"
                      ".TP\n"
                      "\\fB\\-\\-seconds\\fR=SECS\n"
                      "so long.\n"
                      "Default: 2.5.\n"
                      ".TP\n"
                      "\\fB\\-\\-rest\\fR=SECS\n"
                      "so long, or for ever (0: never).\n"
                      "Default: long.\n"
                      ".TP\n"
                      "\\fB\\-\\-word\\fR=red|green\n"
                      "a colour.\n"
                      "Default: green.\n"
                      ".SS Second\n"
                      ".TP\n"
                      "\\fB\\-t\\fR, \\fB\\-\\-text\\fR=TEXT\n"
                      "anything, of which there is so much to say that one line of a terminal is "
                      "not enough for it, nor for what follows.\n"
                      ".TP\n"
                      "\\fB\\-\\-an\\-option\\-with\\-a\\-long\\-name\\fR[=FILE]\n"
                      "a file.\n"
                      ".TP\n"
                      "\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n"
                      "print this, and end.\n"
                      ".TP\n"
                      "\\fB\\-V\\fR, \\fB\\-\\-version\\fR\n"
                      "print the version, and end.\n");
    assert_false(daemon_options_print(&program, "html", stdout));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(numbers, begin),
        cmocka_unit_test_setup(seconds, begin),
        cmocka_unit_test_setup(words_and_calls, begin),
        cmocka_unit_test_setup(a_command_line, begin),
        cmocka_unit_test_setup(pages, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
