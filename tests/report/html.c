#include <stddef.h>
#include <stdint.h>

#include "harness.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "html.h"

static char folder[] = "/tmp/bulkhead-report-test-XXXXXX";

void html_enter_folder(void) {
    BHT_NE(mkdtemp(folder), NULL);
    BHT_EQ(chdir(folder), 0);
}

unsigned html_count_files(void) {
    unsigned count = 0;
    DIR *dir = opendir(".");
    BHT_NE(dir, NULL);
    for (struct dirent *entry; (entry = readdir(dir));) {
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    }
    closedir(dir);
    return count;
}

void html_leave_folder(void) {
    BHT_EQ(chdir("/"), 0);
    BHT_EQ(rmdir(folder), 0);
}

char *html_read(const char *path, size_t *out_size) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "rb");
    BHT_NE(file, NULL);
    FILE *copy = open_memstream(&text, &size);
    BHT_NE(copy, NULL);
    for (int c; (c = getc(file)) != EOF;) {
        putc(c, copy);
    }
    fclose(file);
    BHT_EQ(fclose(copy), 0);
    if (out_size) {
        *out_size = size;
    }
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
    BHT_NE(pipe, NULL);
    BHT_NE(copy, NULL);
    while (fgets(line, sizeof line, pipe)) {
        fputs(line, copy);
    }
    BHT_EQ(fclose(copy), 0);
    if (pclose(pipe) != 0) {
        BHT_FAIL("failed: %s", command);
    }
    if (size && text[size - 1] == '\n') {
        text[size - 1] = 0;
    }
    return text;
}

char *html_path(const char *path, const char *expression) {
    char options[1024];
    /* xmllint knows no prefixes: names are compared without. */
    char *plain = NULL;
    size_t size = 0;
    FILE *copy = open_memstream(&plain, &size);
    BHT_NE(copy, NULL);
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
    BHT_EQ(fclose(copy), 0);
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
    BHT_STR_HAS(text, "content=\"default-src 'none'; style-src 'unsafe-inline'\"");
    BHT_EQ(strcasestr(text, "<script"), NULL);
    BHT_EQ(strcasestr(text, "javascript:"), NULL);
    BHT_EQ(strcasestr(text, "@import"), NULL);
    /* No address but the names of the two languages; url() only within the page. */
    for (const char *at = text; (at = strstr(at, "http"));) {
        size_t known = 0;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            const char *found = strstr(names[i], "http");
            if (!strncmp(at, found, strlen(found))) {
                known = strlen(found);
            }
        }
        if (!known) {
            BHT_FAIL("%.60s", at);
        }
        at += known;
    }
    for (const char *at = text; (at = strstr(at, "url("));) {
        BHT_EQ(*(at += 4), '#');
    }
    free(text);
    free(lint("--noout", path));
    BHT_EQ(html_count(path, "//@*[starts-with(local-name(), \"on\")]"), 0);
    BHT_EQ(html_count(path, "//h:script"), 0);
    BHT_EQ(html_count(path, "//@src"), 0);
    BHT_EQ(html_count(path, "//@href"), 0);
    BHT_EQ(html_count(path, "/h:html/h:body/h:main/h:header/h:h1"), 1);
    /* Every drawing says in words what it shows, or is said to be an ornament. */
    BHT_EQ(html_count(path, "//s:svg[not(@aria-label) and not(@aria-hidden)]"), 0);
    BHT_EQ(html_count(path, "//h:table[not(h:caption)]"), 0);
}
