#include "harness.h"
#include <dirent.h>
#include <stdio.h>
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
    unlink("page.html");
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
    return bht_own(text);
}

/* Runs xmllint, and returns what it prints. */
static char *lint(const char *options) {
    char command[2048], line[256];
    char *text = NULL;
    size_t size = 0;
    snprintf(command, sizeof command, "%s --huge --nonet %s page.html", XMLLINT, options);
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
    return bht_own(text);
}

static char *path(const char *expression) {
    char options[1024] = "--xpath '", *end = options + strlen(options);
    /* xmllint knows no prefixes: names are compared without. */
    for (const char *at = bht_quoted(expression); *at; at++) {
        if ((!strncmp(at, "h:", 2) || !strncmp(at, "s:", 2)) && strchr("/[(", at[-1])) {
            const size_t length = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789");
            end += sprintf(end, "*[local-name()=\"%.*s\"]", (int)length, at + 2);
            at += 1 + length;
        } else {
            *end++ = *at;
        }
        BHT_LT(end, options + sizeof options - 100);
    }
    strcpy(end, "'");
    return lint(options);
}

long html_count(const char *expression) {
    char counted[512];
    snprintf(counted, sizeof counted, "count(%s)", expression);
    return strtol(path(counted), NULL, 10);
}

void html_expect(const char *expression, const char *expected) {
    BHT_STR_EQ(path(expression), expected);
}

void html_check(void) {
    static const char *const names[] = {"http-equiv=", "xmlns=\"http://www.w3.org/1999/xhtml\"",
                                        "xmlns=\"http://www.w3.org/2000/svg\""};
    const char *text = html_read("page.html", NULL);
    BHT_STR_HAS(text, "content=\"default-src 'none'; style-src 'unsafe-inline'\"");
    BHT_EQ(strcasestr(text, "<script"), NULL);
    BHT_EQ(strcasestr(text, "javascript:"), NULL);
    BHT_EQ(strcasestr(text, "@import"), NULL);
    /* No address but the names of the two languages; url() only within the page. */
    for (const char *at = text; (at = strstr(at, "http"));) {
        size_t known = 0;
        for (size_t i = 0; i < BHT_COUNT(names); i++) {
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
    (void)lint("--noout");
    BHT_EQ(html_count("//@*[starts-with(local-name(), `on`)]"), 0);
    BHT_EQ(html_count("//h:script"), 0);
    BHT_EQ(html_count("//@src"), 0);
    BHT_EQ(html_count("//@href"), 0);
    BHT_EQ(html_count("/h:html/h:body/h:main/h:header/h:h1"), 1);
    /* Every drawing says in words what it shows, or is said to be an ornament. */
    BHT_EQ(html_count("//s:svg[not(@aria-label) and not(@aria-hidden)]"), 0);
    BHT_EQ(html_count("//h:table[not(h:caption)]"), 0);
}
