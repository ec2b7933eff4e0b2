#include "harness.h"
#include <stdio.h>

#include "documented.h"

/* The section of the page, up to the next heading of its level. */
static char *section(const char *heading) {
    static char page[65536];
    FILE *file = fopen(REPORTS_MD, "rb");
    BHT_NE(file, NULL);
    page[fread(page, 1, sizeof page - 1, file)] = 0;
    fclose(file);
    const char *begin = strstr(page, heading);
    BHT_NE(begin, NULL);
    const char *end = strstr(begin + strlen(heading), "\n## ");
    return bht_own(strndup(begin, end ? (size_t)(end - begin) : strlen(begin)));
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
    check(text, object, open);
    check_printed(text, object);
}

static json_t *owned[16];

static void release_owned(void) {
    for (size_t i = 0; i < BHT_COUNT(owned); i++) {
        json_decref(owned[i]);
    }
}

json_t *own_json(const char *text) {
    json_error_t error;
    size_t i = 0;
    json_t *value = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!value) {
        BHT_FAIL("%d:%d: %s: %s", error.line, error.column, error.text, text);
    }
    while (owned[i]) {
        BHT_LT(++i, BHT_COUNT(owned));
    }
    owned[i] = value;
    bht_end_with(release_owned);
    return value;
}

static void compare(const char *where, json_t *found, json_t *wanted) {
    const char *key;
    json_t *member;
    size_t i;
    if (json_is_object(wanted) && json_is_object(found)) {
        json_object_foreach(wanted, key, member) {
            compare(key, json_object_get(found, key), member);
        }
    } else if (json_is_array(wanted) && json_array_size(found) == json_array_size(wanted)) {
        json_array_foreach(wanted, i, member) compare(where, json_array_get(found, i), member);
    } else if (!json_equal(found, wanted)) {
        BHT_FAIL("\"%s\": %s instead of %s", where,
                 found ? (char *)bht_own(json_dumps(found, JSON_ENCODE_ANY)) : "nothing",
                 (char *)bht_own(json_dumps(wanted, JSON_ENCODE_ANY)));
    }
}

void assert_json(json_t *object, const char *expected) {
    compare("", object, own_json(bht_quoted(expected)));
}
