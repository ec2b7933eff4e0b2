/* Headers of .safetensors files: what is nested too deep for the JSON parser, and limits. */
#include "formats/safetensors.h"

#include "harness.h"

#include <stdio.h>

static struct bhi_complaint complaint;

/* Finds "t"; in |text| ` is ". NULL: it is refused, and |complaint| says why. */
static const struct bhi_tensor *find(const char *text, uint64_t data_bytes) {
    static struct bhi_tensor tensor;
    const char *const header = bht_quoted(text);
    complaint.text[0] = '\0';
    return bhi_safetensors_find(header, strlen(header), data_bytes, "t", &tensor, &complaint)
               ? &tensor
               : NULL;
}

/* A parser that recurses never sees what is nested deeper than eight, whatever is in the strings
 * before it. */
TEST(what_is_nested_too_deep_is_counted_outside_of_strings) {
    static const struct {
        const char *text;
        bool deep;
    } cases[] = {
        {"{`a`:[[[[[[[]]]]]]]}", false}, /* eight */
        {"{`a`:[[[[[[[[]]]]]]]]}", true},
        {"{`a`:{`b`:[{`c`:[[[[[]]]]]}]}}", true},
        {"{`a\\``:[[[[[[[[]]]]]]]]}", true},  /* a quotation mark in it */
        {"{`a\\\\`:[[[[[[[[]]]]]]]]}", true}, /* a backslash at its end */
        {"{`\\``:`\\`[[[[[[[[[`}", false},    /* all of them in a string */
        {"{`a\\\\\\`[[[[[[[[[`:0}", false},   /* a backslash, then a quotation mark */
        {"{`]]`:[[[[[[[[]]]]]]]]}", true},    /* what a string closes, it does not close */
        {"{`}`:`[`,`a`:[[[[[[[]]]]]]]}", false},
        {"{`a`:[],`b`:[],`c`:[],`d`:[],`e`:[],`f`:[],`g`:[],`h`:[],`i`:[]}", false},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        BHT_TRUE(!find(cases[i].text, 0));
        if (!strstr(complaint.text, "is nested more than 8 deep") == cases[i].deep) {
            BHT_FAIL("%s: %s", cases[i].text, complaint.text);
        }
    }
}

#define TENSOR(name, type, shape, offsets)                                                         \
    "`" name "`:{`dtype`:`" type "`,`shape`:[" shape "],`data_offsets`:[" offsets "]}"

/* At each limit it is taken, and one beyond is refused. */
TEST(tensors_at_their_limits) {
    static const struct {
        const char *text;
        uint64_t data_bytes;
        const char *why; /* NULL: it is taken */
    } cases[] = {
        {"{" TENSOR("t", "U8", "8", "0,8") "}", 8, NULL},
        {"{" TENSOR("t", "U8", "8", "0,8") "}", 7, "are not a range of the 7 bytes"},
        {"{" TENSOR("t", "U8", "9", "0,8") "}", 8, "need 9 bytes"},
        {"{" TENSOR("t", "U8", "7", "0,8") "}", 8, "need 7 bytes"},
        {"{" TENSOR("t", "U8", "", "0,1") "}", 1, NULL},
        {"{" TENSOR("t", "U8", "0", "0,0") "}", 0, NULL},
        {"{" TENSOR("t", "U8", "0,9223372036854775807", "0,0") "}", 0, NULL},
        {"{" TENSOR("t", "U8", "1", "1,0") "}", 1, "are not a range"},
        {"{" TENSOR("b", "U8", "0", "0,0") "," TENSOR("t", "U8", "1", "0,1") "}", 1, NULL},
        {"{" TENSOR("b", "U8", "2", "0,2") "," TENSOR("t", "U8", "1", "2,3") "}", 3, NULL},
        {"{" TENSOR("t", "U8", "1", "2,3") "," TENSOR("b", "U8", "2", "0,2") "}", 3, NULL},
        {"{" TENSOR("b", "U8", "2", "0,2") "," TENSOR("t", "U8", "1", "1,2") "}", 2, "overlap"},
        {"{" TENSOR("b", "U8", "2", "0,2") "," TENSOR("t", "U8", "1", "3,4") "}", 4,
         "the 1 bytes before its offset 3 belong to no tensor"},
        {"{" TENSOR("t", "U8", "1", "1,2") "}", 2, "the 1 bytes before its offset 1"},
        {"{" TENSOR("b", "X9", "7", "0,2") "," TENSOR("t", "U8", "1", "2,3") "}", 3, NULL},
        {"{" TENSOR("b", "X9", "7", "0,4") "," TENSOR("t", "U8", "1", "2,3") "}", 4, "overlap"},
        {"{" TENSOR("b", "X9", "7", "0,5") "," TENSOR("t", "U8", "1", "2,3") "}", 4,
         "are not a range"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const bool found = find(cases[i].text, cases[i].data_bytes);
        if (found != !cases[i].why || (!found && !strstr(complaint.text, cases[i].why))) {
            BHT_FAIL("%s: %s", cases[i].text, found ? "taken" : complaint.text);
        }
    }
    for (unsigned ones = BHI_MAX_DIMENSIONS; ones <= BHI_MAX_DIMENSIONS + 1; ones++) {
        char text[512];
        int used = sprintf(text, "{`t`:{`dtype`:`U8`,`data_offsets`:[0,1],`shape`:[1");
        for (unsigned i = 1; i < ones; i++) {
            used += sprintf(text + used, ",1");
        }
        strcpy(text + used, "]}}");
        const struct bhi_tensor *tensor = find(text, 1);
        BHT_EQ(!tensor, ones > BHI_MAX_DIMENSIONS);
        BHT_TRUE(!tensor || tensor->dimensions == ones);
    }
}

TEST(lengths_at_their_limits) {
    const uint64_t most = BHI_SAFETENSORS_MAX_HEADER;
    const struct {
        uint64_t length, file_bytes;
        bool taken;
    } cases[] = {
        {0, 8, true},           {0, 7, false},
        {2, 10, true},          {3, 10, false},
        {most, most + 8, true}, {most, most + 7, false},
        {most, 1 << 30, true},  {most + 1, 1 << 30, false},
        {UINT64_MAX, 8, false}, {UINT64_MAX - 7, 1, false},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        uint8_t bytes[BHI_SAFETENSORS_PREAMBLE];
        size_t length = 1;
        memcpy(bytes, &cases[i].length, sizeof bytes); /* little endian */
        const bool taken =
            bhi_safetensors_parse_preamble(bytes, cases[i].file_bytes, &length, &complaint);
        if (taken != cases[i].taken || (taken && length != cases[i].length)) {
            BHT_FAIL("%" PRIu64 " of %" PRIu64 ": %s", cases[i].length, cases[i].file_bytes,
                     taken ? "taken" : complaint.text);
        }
    }
}
