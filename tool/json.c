#include "tool/json.h"

#include <stdio.h>

#include "tool/ending.h"
#include "tool/text.h"

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
    json_object_set_new(object, "reason",
                        reason == BH_REASON_NONE ? json_null()
                                                 : json_string(bh_reason_name(reason)));
    json_object_set_new(object, "subject",
                        subject == BH_SUBJECT_NONE
                            ? json_null()
                            : json_pack("{s:s,s:o}", "kind", bh_subject_name(subject), "name",
                                        bhi_json_text(name)));
}

void bhi_json_print(json_t *value) {
    bhi_ending_answered();
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    fputc('\n', stdout);
    json_decref(value);
}
