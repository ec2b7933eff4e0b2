#include "tool/nearest.h"
#include "base/format.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* What other programs call a thing, and what it is called here. */
static const struct {
    const char *word, *here;
} synonyms[] = {
    {"input", "in"},         {"inputs", "in"},        {"output", "out"},
    {"outputs", "out"},      {"grid", "groups"},      {"workgroups", "groups"},
    {"timeout", "deadline"}, {"gpu", "device"},       {"shader", "kernel"},
    {"name", "id"},          {"after", "depends_on"}, {"needs", "depends_on"},
    {"continue", "resume"},  {"restart", "resume"},   {"timing", "time"},
    {"threads", "streams"},  {"threads", "workers"},  {"jobs", "streams"},
    {"jobs", "workers"},     {"workers", "streams"},  {"streams", "workers"},
};

enum { LONGEST = 64 }; /* bytes of a word that are compared; a longer word matches nothing */

static size_t least_of(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t distance(const char *a, const char *b) {
    size_t rows[3][LONGEST + 1]; /* of this letter and of the two before it */
    size_t *above = rows[0], *row = rows[1], *two_above = rows[2];
    const size_t width = strlen(b);
    for (size_t j = 0; j <= width; j++) {
        above[j] = j;
    }
    for (size_t i = 0; a[i]; i++) {
        row[0] = i + 1;
        for (size_t j = 0; j < width; j++) {
            row[j + 1] = least_of(above[j] + (a[i] != b[j]), least_of(above[j + 1], row[j]) + 1);
            if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) {
                row[j + 1] = least_of(row[j + 1], two_above[j - 1] + 1);
            }
        }
        size_t *const oldest = two_above;
        two_above = above;
        above = row;
        row = oldest;
    }
    return above[width];
}

static bool means(const char *word, const char *candidate) {
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++) {
        if (!strcmp(word, synonyms[i].word) && !strcmp(candidate, synonyms[i].here)) {
            return true;
        }
    }
    return false;
}

void bhi_nearest_try(struct bhi_nearest *nearest, const char *candidate) {
    const size_t given = strlen(nearest->word), wanted = strlen(candidate);
    if (given == 0 || given > LONGEST || wanted > LONGEST) {
        return;
    }
    if (means(nearest->word, candidate)) {
        nearest->best = candidate;
        nearest->distance = 0;
        return;
    }
    const size_t longer = given > wanted ? given : wanted;
    size_t far = distance(nearest->word, candidate);
    const size_t most = longer < 6 ? 1 + (longer > 2) : longer / 3;
    if (given > 1 && !strncmp(nearest->word, candidate, given)) {
        far = least_of(far, 1); /* |candidate| only lacks the end of the word */
    }
    if (far > most || far >= longer || (nearest->best && far >= nearest->distance)) {
        return;
    }
    nearest->best = candidate;
    nearest->distance = far;
}

const char *bhi_nearest_hint(const struct bhi_nearest *nearest, const char *before, char out[160]) {
    out[0] = 0;
    if (nearest->best) {
        bhi_format(out, 160, "; did you mean '%s%.64s'?", before, nearest->best);
    }
    return out;
}
