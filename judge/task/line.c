/* A plan in short, on a line of a source: KEY=VALUE, with blanks between them. */
#include <string.h>

#include "judge/task/plan.h"

/* A piece of text. */
struct piece {
    const char *at;
    size_t length;
};

/* Up to |stop| outside of parentheses, or the end. Moves behind it. */
static struct piece take_up_to(const char *stop, struct piece *rest) {
    struct piece out = {rest->at, 0};
    for (int depth = 0; out.length < rest->length; out.length++) {
        const char one = out.at[out.length];
        depth += (one == '(') - (one == ')' && depth > 0);
        if (!depth && strchr(stop, one)) {
            break;
        }
    }
    const size_t all = out.length + (out.length < rest->length);
    *rest = (struct piece){rest->at + all, rest->length - all};
    return out;
}

/* A number, or a text. NULL: out of memory, or no UTF-8. */
static json_t *value_of(struct piece piece) {
    json_int_t number = 0;
    size_t digits = 0;
    while (digits < piece.length && digits < 10 && strchr("0123456789", piece.at[digits])) {
        number = 10 * number + (piece.at[digits++] - '0');
    }
    return digits && digits == piece.length ? json_integer(number)
                                            : json_stringn(piece.at, piece.length);
}

/* "16,16": an array. */
static json_t *list_of(struct piece piece) {
    json_t *list = json_array();
    for (bool more = true; list && more;) {
        const char *const before = piece.at;
        const struct piece one = take_up_to(",", &piece);
        more = piece.at > before + one.length;
        if (json_array_append_new(list, value_of(one)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* Puts KEY=VALUE into |out|. */
static bool put(struct piece piece, json_t *out) {
    static const struct {
        const char *key, *name; /* on the line; in a plan */
        bool lists;
    } keys[] = {{"block", "block", true},
                {"shared", "shared", false},
                {"entry", "entry", false},
                {"grid", "groups", true},
                {"parameters", "parameters", true}};
    const struct piece key = take_up_to("=", &piece);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strlen(keys[i].key) == key.length && !memcmp(keys[i].key, key.at, key.length)) {
            return piece.length && !json_object_get(out, keys[i].name) &&
                   !json_object_set_new(out, keys[i].name,
                                        keys[i].lists ? list_of(piece) : value_of(piece));
        }
    }
    return false;
}

json_t *bhi_judge_plan_line(const char *name, size_t line, const char *text, size_t length,
                            struct bhi_complaint *complaint) {
    json_t *out = json_object();
    struct piece rest = {text, length};
    if (!out) {
        bhi_refuse_memory(complaint);
    }
    while (out && rest.length) {
        const struct piece one = take_up_to(" \t\r", &rest);
        if (one.length && !put(one, out)) {
            bhi_refuse(complaint,
                       "%.200s:%zu: '%.*s': neither JSON nor one of block=256, shared=1024, "
                       "entry=NAME, grid=ceildiv(n,256) and parameters=x,y,n, each once",
                       name, line, one.length < 100 ? (int)one.length : 100, one.at);
            json_decref(out);
            out = NULL;
        }
    }
    return out;
}
