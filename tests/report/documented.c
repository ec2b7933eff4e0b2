#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "documented.h"

/* The section of the page, up to the next heading of its level; owned by the caller. */
static char *section(const char *heading) {
    static char page[65536];
    FILE *file = fopen(REPORTS_MD, "rb");
    BHT_NE(file, NULL);
    page[fread(page, 1, sizeof page - 1, file)] = 0;
    fclose(file);
    const char *begin = strstr(page, heading);
    BHT_NE(begin, NULL);
    const char *end = strstr(begin + strlen(heading), "\n## ");
    return strndup(begin, end ? (size_t)(end - begin) : strlen(begin));
}

static void check(const char *text, json_t *value, const char *open) {
    const char *key;
    json_t *member;
    size_t i;
    json_array_foreach(value, i, member) check(text, member, open);
    json_object_foreach(value, key, member) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "`%s`", key);
        if (!strstr(text, quoted)) {
            BHT_FAIL("%s is not in docs/reports.md", quoted);
        }
        if (!strstr(open, key)) {
            check(text, member, open);
        }
    }
}

static bool has_key(json_t *value, const char *key) {
    const char *name;
    json_t *member;
    size_t i;
    json_array_foreach(value, i, member) if (has_key(member, key)) return true;
    json_object_foreach(value, name, member) {
        if (!strcmp(name, key) || has_key(member, key)) {
            return true;
        }
    }
    return false;
}

/* The keys in the first column of the section's tables. */
static void check_printed(char *text, json_t *object) {
    size_t keys = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *end = strncmp(line, "| `", 3) == 0 ? strstr(line, " | ") : NULL;
        if (!end) {
            continue;
        }
        *end = 0;
        for (char *key = strchr(line, '`'); key; key = strchr(key, '`')) {
            char *close = strchr(++key, '`');
            BHT_NE(close, NULL);
            *close = 0;
            if (!has_key(object, key)) {
                BHT_FAIL("%s is in docs/reports.md and not in the object", key);
            }
            keys++;
            key = close + 1;
        }
    }
    BHT_GT(keys, 10);
}

void documented(const char *heading, json_t *object, const char *open) {
    char *text = section(heading);
    BHT_NE(text, NULL);
    check(text, object, open);
    check_printed(text, object);
    free(text);
}

json_int_t integer(json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    BHT_TRUE(json_is_integer(value));
    return json_integer_value(value);
}

void assert_text(json_t *object, const char *key, const char *expected) {
    const char *text = json_string_value(json_object_get(object, key));
    BHT_NE(text, NULL);
    BHT_STR_EQ(text, expected);
}
