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
        {"{" TENSOR("t", "U8", "8", "0,8") "}", 9,
         "end at offset 8, but the file's data ends at 9"},
        {"{" TENSOR("t", "F64", "1", "0,4") "}", 4,
         "need 8 bytes, but its data_offsets, 0 and 4, hold 4"},
        {"{" TENSOR("t", "U8", "4294967296,4294967296", "0,0") "}", 0,
         "more elements than 64 bits"},
        {"{" TENSOR("t", "F64", "2305843009213693952", "0,0") "}", 0, "more bytes than 64 bits"},
        /* Each part in its form. */
        {"[]", 0, "the header is not a JSON object"},
        {"{", 0, "the header is not valid JSON"},
        {"{" TENSOR("t", "U8", "", "0,1") "," TENSOR("t", "U8", "", "0,1") "}", 1,
         "not valid JSON"},
        {"{`t`:1}", 0, "its entry is not an object"},
        {"{`t`:{`dtype`:`U8`,`shape`:[]}}", 0, "its entry has 2 keys"},
        {"{`t`:{`dtype`:`U8`,`shape`:[],`data_offsets`:[0,1],`x`:0}}", 1, "its entry has 4 keys"},
        {"{`t`:{`dtype`:8,`shape`:[],`data_offsets`:[0,1]}}", 1, "'dtype' is missing, or not"},
        {"{" TENSOR("t", "X9", "", "0,1") "}", 1, "dtype 'X9' is not supported"},
        {"{`t`:{`dtype`:`U8`,`shape`:8,`data_offsets`:[0,8]}}", 8, "'shape' is missing, or not"},
        {"{" TENSOR("t", "U8", "-1", "0,1") "}", 1, "shape[0] is not a whole number"},
        {"{" TENSOR("t", "U8", "1,1.0", "0,1") "}", 1, "shape[1] is not a whole number"},
        {"{" TENSOR("t", "U8", "", "0") "}", 1, "'data_offsets' is not an array of two offsets"},
        {"{" TENSOR("t", "U8", "", "0,1,1") "}", 1,
         "'data_offsets' is not an array of two offsets"},
        {"{" TENSOR("t", "U8", "", "-1,0") "}", 1, "'data_offsets' is not an array of two offsets"},
        {"{" TENSOR("t", "U8", "", "0,-1") "}", 1, "'data_offsets' is not an array of two offsets"},
        {"{`__metadata__`:{`a`:`b`}," TENSOR("t", "U8", "", "0,1") "}", 1, NULL},
        {"{`__metadata__`:{`a`:1}," TENSOR("t", "U8", "", "0,1") "}", 1, "'a' is not a string"},
        {"{`__metadata__`:[]," TENSOR("t", "U8", "", "0,1") "}", 1, "is not an object"},
        {"{}", 0, "it has no tensor 't'; it has 0"},
        {"{`__metadata__`:{}," TENSOR("a", "U8", "", "0,1") "," TENSOR("b", "U8", "", "1,2") "}", 2,
         "it has no tensor 't'; it has 2: a, b"},
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

static void print(void *user, const char *name, const char *type, const struct bhi_tensor *tensor) {
    sprintf((char *)user + strlen(user), "%s %s %u %d+%d; ", name, type, tensor->dimensions,
            (int)tensor->begin, (int)tensor->bytes);
}

/* All that there are, also of a type that nobody knows. */
TEST(a_list_of_tensors) {
    static const char text[] = "{`__metadata__`:{}," TENSOR("a", "F16", "2,1", "0,4") "," TENSOR(
        "b", "X9", "7", "4,5") "}";
    const char *const header = bht_quoted(text);
    char found[128] = "";
    BHT_TRUE(bhi_safetensors_list(header, strlen(header), 5, print, found, &complaint));
    BHT_STR_EQ(found, "a F16 2 0+4; b X9 1 4+1; ");
    BHT_TRUE(!bhi_safetensors_list(header, strlen(header), 6, print, found, &complaint));
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

/* What is written is read again: as the only array, whose data is aligned and fills the file. */
TEST(a_header_that_is_written_is_read_again) {
    static const struct {
        const char *name;
        struct bhi_array array;
        bool taken;
    } cases[] = {
        {"t", {.dtype = BH_DTYPE_BF16, .dimensions = 2, .shape = {3, 5}, .bytes = 30}, true},
        {"a:\"\n\\é", {.dtype = BH_DTYPE_F8_E4M3, .bytes = 1}, true},
        {"", {.dtype = BH_DTYPE_BOOL, .dimensions = 1, .shape = {0}}, true},
        {"__metadata__", {.dtype = BH_DTYPE_F32, .bytes = 4}, false},
        {"\xff", {.dtype = BH_DTYPE_F32, .bytes = 4}, false},
        {"t", {.dtype = BH_DTYPE_F32, .dimensions = 2, .shape = {0, UINT64_MAX}}, false},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const struct bhi_array *array = &cases[i].array;
        const char *name = cases[i].name;
        uint8_t bytes[512];
        const size_t size = bhi_safetensors_write_header(array, name, bytes, sizeof bytes);
        BHT_EQ(size > 0, cases[i].taken);
        if (!cases[i].taken) {
            continue;
        }
        struct bhi_tensor tensor;
        size_t length;
        BHT_TRUE(bhi_safetensors_parse_preamble(bytes, size + array->bytes, &length, &complaint));
        BHT_EQ(length + BHI_SAFETENSORS_PREAMBLE, size);
        BHT_EQ(size % 8, 0);
        BHT_TRUE(bhi_safetensors_find((char *)bytes + BHI_SAFETENSORS_PREAMBLE, length,
                                      array->bytes, name, &tensor, &complaint));
        BHT_EQ(tensor.dtype, array->dtype);
        BHT_EQ(tensor.dimensions, array->dimensions);
        BHT_EQ(memcmp(tensor.shape, array->shape, array->dimensions * sizeof array->shape[0]), 0);
        BHT_EQ(tensor.begin, 0);
        BHT_EQ(tensor.bytes, array->bytes);
        BHT_EQ(bhi_safetensors_write_header(array, name, bytes, size - 1), 0);
    }
}
