#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "html.h"

static char folder[] = "/tmp/bulkhead-report-test-XXXXXX";

int html_enter_folder(void **state) {
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

unsigned html_count_files(void) {
    unsigned count = 0;
    DIR *dir = opendir(".");
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(dir);
    return count;
}

int html_leave_folder(void **state) {
    (void)state;
    return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

char *html_read(const char *path, size_t *out_size) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    FILE *copy = open_memstream(&text, &size);
    assert_non_null(copy);
    for (int c; (c = getc(file)) != EOF;)
        putc(c, copy);
    fclose(file);
    assert_int_equal(fclose(copy), 0);
    if (out_size)
        *out_size = size;
    return text;
}

/* Runs xmllint; what it prints is owned by the caller. */
static char *lint(const char *options, const char *path) {
    char command[2048], line[256];
    char *text = NULL;
    size_t size = 0;
    snprintf(command, sizeof command, "%s --huge --nonet %s %s", XMLLINT, options, path);
    FILE *pipe = popen(command, "r");
    FILE *copy = open_memstream(&text, &size);
    assert_non_null(pipe);
    assert_non_null(copy);
    while (fgets(line, sizeof line, pipe))
        fputs(line, copy);
    assert_int_equal(fclose(copy), 0);
    if (pclose(pipe) != 0)
        fail_msg("failed: %s", command);
    if (size && text[size - 1] == '\n')
        text[size - 1] = 0;
    return text;
}

char *html_path(const char *path, const char *expression) {
    char options[1024];
    /* xmllint knows no prefixes: names are compared without. */
    char *plain = NULL;
    size_t size = 0;
    FILE *copy = open_memstream(&plain, &size);
    assert_non_null(copy);
    for (const char *at = expression; *at; at++) {
        if ((!strncmp(at, "h:", 2) || !strncmp(at, "s:", 2)) && at > expression &&
            strchr("/[(", at[-1])) {
            size_t length = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789");
            fprintf(copy, "*[local-name()=\"%.*s\"]", (int)length, at + 2);
            at += 1 + length;
        } else {
            fputc(*at, copy);
        }
    }
    assert_int_equal(fclose(copy), 0);
    snprintf(options, sizeof options, "--xpath '%s'", plain);
    free(plain);
    return lint(options, path);
}

long html_count(const char *path, const char *expression) {
    char counted[512];
    snprintf(counted, sizeof counted, "count(%s)", expression);
    char *text = html_path(path, counted);
    long count = strtol(text, NULL, 10);
    free(text);
    return count;
}

void html_check(const char *path) {
    static const char *const names[] = {"http-equiv=", "xmlns=\"http://www.w3.org/1999/xhtml\"",
                                        "xmlns=\"http://www.w3.org/2000/svg\""};
    char *text = html_read(path, NULL);
    assert_non_null(strstr(text, "content=\"default-src 'none'; style-src 'unsafe-inline'\""));
    assert_null(strcasestr(text, "<script"));
    assert_null(strcasestr(text, "javascript:"));
    assert_null(strcasestr(text, "@import"));
    /* No address but the names of the two languages; url() only within the page. */
    for (const char *at = text; (at = strstr(at, "http"));) {
        size_t known = 0;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            const char *found = strstr(names[i], "http");
            if (!strncmp(at, found, strlen(found)))
                known = strlen(found);
        }
        if (!known)
            fail_msg("%.60s", at);
        at += known;
    }
    for (const char *at = text; (at = strstr(at, "url("));)
        assert_int_equal(*(at += 4), '#');
    free(text);
    free(lint("--noout", path));
    assert_int_equal(html_count(path, "//@*[starts-with(local-name(), \"on\")]"), 0);
    assert_int_equal(html_count(path, "//h:script"), 0);
    assert_int_equal(html_count(path, "//@src"), 0);
    assert_int_equal(html_count(path, "//@href"), 0);
    assert_int_equal(html_count(path, "/h:html/h:body/h:main/h:header/h:h1"), 1);
    /* Every drawing says in words what it shows, or is said to be an ornament. */
    assert_int_equal(html_count(path, "//s:svg[not(@aria-label) and not(@aria-hidden)]"), 0);
    assert_int_equal(html_count(path, "//h:table[not(h:caption)]"), 0);
}
