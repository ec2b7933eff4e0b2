#include "tool/json.h"

#include <stdio.h>
#include <string.h>

#include "tool/ending.h"
#include "tool/text.h"

json_t *bhi_json_add(json_t *object, const struct bhi_json_field *fields) {
    for (; fields->key; fields++) {
        json_object_set_new(object, fields->key, fields->value);
    }
    return object;
}

json_t *bhi_json_number(uint64_t value) {
    return json_integer((json_int_t)value);
}

json_t *bhi_json_text_or_null(const char *text) {
    return text && *text ? bhi_json_text(text) : json_null();
}

json_t *bhi_json_text(const char *text) {
    char clean[1024];
    return json_string(bhi_text_clean(clean, sizeof clean, text));
}

json_t *bhi_json_known(int64_t value) {
    return value ? json_integer(value) : json_null();
}

json_t *bhi_json_digits(uint64_t number) {
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    return json_string(digits);
}

json_t *bhi_json_ms(uint64_t ns) {
    const uint64_t us = ns / 1000;
    return json_real((double)us / 1000.0);
}

json_t *bhi_json_blame(bh_blame blame) {
    return json_string(blame == BH_BLAME_CERTAIN     ? "certain"
                       : blame == BH_BLAME_SUSPECTED ? "suspected"
                                                     : "none");
}

void bhi_json_why(json_t *object, bh_reason reason, bh_subject subject, const char *name) {
    BHI_JSON_ADD(
        object,
        {"reason", reason == BH_REASON_NONE ? json_null() : json_string(bh_reason_name(reason))},
        {"subject", subject == BH_SUBJECT_NONE
                        ? json_null()
                        : json_pack("{s:s,s:o}", "kind", bh_subject_name(subject), "name",
                                    bhi_json_text(name))});
}

/* The number from 1 with that name; 0: there is none. */
static unsigned find_name(const char *name, const char *(*name_of)(unsigned)) {
    for (unsigned i = 1; name && strcmp(name_of(i), "UNKNOWN") != 0; i++) {
        if (!strcmp(name_of(i), name)) {
            return i;
        }
    }
    return 0;
}

static const char *reason_name(unsigned reason) {
    return bh_reason_name((bh_reason)reason);
}

static const char *subject_name(unsigned subject) {
    return bh_subject_name((bh_subject)subject);
}

void bhi_json_take_why(const json_t *object, bh_reason *out_reason, bh_subject *out_subject,
                       char *out_name, size_t capacity) {
    const json_t *subject = json_object_get(object, "subject");
    const char *name = json_string_value(json_object_get(subject, "name"));
    *out_reason =
        (bh_reason)find_name(json_string_value(json_object_get(object, "reason")), reason_name);
    *out_subject =
        (bh_subject)find_name(json_string_value(json_object_get(subject, "kind")), subject_name);
    snprintf(out_name, capacity, "%s", name ? name : "");
}

void bhi_json_print(json_t *value) {
    bhi_ending_answered();
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    fputc('\n', stdout);
    json_decref(value);
}
