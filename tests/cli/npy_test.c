/* The .npy header: what numpy writes is read, everything else is refused with its reason. */
#include "harness.h"

#include "formats/npy.h"

static struct bhi_complaint complaint;

/* Parses |text| from memory of exactly its size, so that a sanitizer sees a read past it. */
static bool parse(const char *text, struct bhi_array *array) {
    size_t length = strlen(text);
    char *copy = malloc(length ? length : 1);
    BHT_NE(copy, NULL);
    memcpy(copy, text, length);
    bool good = bhi_npy_parse_header(copy, length, array, &complaint);
    free(copy);
    return good;
}

#define DICT(descr, order, shape)                                                                  \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"

TEST(test_good_headers) {
    static const struct {
        const char *text;
        bh_dtype dtype;
        uint32_t dimensions;
        uint64_t bytes;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }    \n", BH_DTYPE_F32, 1, 12},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (), }\n", BH_DTYPE_F16, 0, 2},
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (3,), }\n", BH_DTYPE_F64, 1, 24},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }\n", BH_DTYPE_U8, 2, 6},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (5,), }", BH_DTYPE_BOOL, 1, 5},
        {"{'descr': '<i1', 'fortran_order': False, 'shape': (2, 3, ), }\n", BH_DTYPE_I8, 2, 6},
        {"{\"shape\":(0,5),\"descr\":\"<u8\",\"fortran_order\":False}", BH_DTYPE_U64, 2, 0},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (1, 1, 1, 2)}", BH_DTYPE_I64, 4, 16},
        /* Types that numpy reads in this machine's byte order. */
        {DICT("'f4'", "False", "(3,)"), BH_DTYPE_F32, 1, 12},
        {DICT("'=f4'", "False", "(3,)"), BH_DTYPE_F32, 1, 12},
        {DICT("'|f4'", "False", "(3,)"), BH_DTYPE_F32, 1, 12},
        {DICT("'>u1'", "False", "(3,)"), BH_DTYPE_U8, 1, 3},
        {DICT("'b1'", "False", "(3,)"), BH_DTYPE_BOOL, 1, 3},
        /* Fortran order of the same bytes. */
        {DICT("'<f4'", "True", "(1, 6)"), BH_DTYPE_F32, 2, 24},
        {DICT("'<f4'", "True", "(6, 1)"), BH_DTYPE_F32, 2, 24},
        {DICT("'<f4'", "True", "(1, 1, 6, 1)"), BH_DTYPE_F32, 4, 24},
        {DICT("'<f4'", "True", "(2, 0, 3)"), BH_DTYPE_F32, 3, 0},
        {DICT("'<f4'", "True", "()"), BH_DTYPE_F32, 0, 4},
        {DICT("'<f4'", "False", "(3L, 4L)"), BH_DTYPE_F32, 2, 48}, /* from Python 2 */
    };
    struct bhi_array array;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (!parse(cases[i].text, &array)) {
            BHT_FAIL("%s: %s", cases[i].text, complaint.text);
        }
        BHT_EQ(array.dtype, cases[i].dtype);
        BHT_EQ(array.dimensions, cases[i].dimensions);
        BHT_EQ(array.bytes, cases[i].bytes);
        BHT_TRUE(!array.fortran);
    }
    BHT_TRUE(parse(DICT("'<f4'", "True", "(2, 3)"), &array) && array.fortran);
    BHT_TRUE(parse(DICT("'<f4'", "False", "(2, 3)"), &array) && !array.fortran);
}

TEST(test_bad_headers) {
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "not a dictionary"},
        {"[]", "not a dictionary"},
        {"{", "quoted key"},
        {"{}", "'descr' is missing"},
        {"{,}", "quoted key"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), } x\n", "text after"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }}\n", "text after"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (3,), }\n", "quoted key"},
        {"{'descr': '<f4', 'fortran_order': False, }\n", "'shape' is missing"},
        {"{'descr': '<f4', 'shape': (3,), }\n", "'fortran_order' is missing"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "twice"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'evil': 1}", "unknown key"},
        {"{descr: '<f4', 'fortran_order': False, 'shape': (3,)}", "quoted key"},
        {"{'descr' '<f4', 'fortran_order': False, 'shape': (3,)}", "no ':'"},
        {"{'descr': '<f4", "not a string"},
        {DICT("'<f4", "False", "(3,)"), "dtype '<f4, '"},
        {DICT("'>f4'", "False", "(3,)"),
         "big-endian data ('>f4') is not supported; save it in little "
         "endian (numpy: a.astype('<f4'))"},
        {DICT("'|O'", "False", "(3,)"), "object"},
        {DICT("'O'", "False", "(3,)"), "not supported"},
        {DICT("'<c8'", "False", "(3,)"), "not supported"},
        {DICT("'|b2'", "False", "(3,)"), "not supported"},
        {DICT("'<f16'", "False", "(3,)"), "not supported"},
        {DICT("'<U8'", "False", "(3,)"), "not supported"},
        {DICT("'!f4'", "False", "(3,)"), "not supported"},
        {DICT("'f'", "False", "(3,)"), "not supported"},
        {DICT("'<'", "False", "(3,)"), "not supported"},
        {DICT("'|V2'", "False", "(3,)"),
         "raw bytes ('|V2'), which is how numpy saves bfloat16 ('V2') and 8-bit floats ('V1'), are "
         "not supported; save a.view('u2') or a.view('u1') for the bits, a.astype('f4')"},
        {DICT("'<V2'", "False", "(3,)"), "raw bytes ('<V2')"},
        {DICT("'|V16'", "False", "(3,)"), "raw bytes"},
        {DICT("''", "False", "(3,)"), "not supported"},
        {DICT("'<f\\x34'", "False", "(3,)"), "not a string"},
        {DICT("[('a', '<f4')]", "False", "(3,)"), "structured"},
        {DICT("4", "False", "(3,)"), "not a string"},
        {DICT("'<f4'", "False", "(L,)"), "not a tuple"},
        {DICT("'<f4'", "0", "(3,)"), "not True or False"},
        {DICT("'<f4'", "Falsey", "(3,)"), "quoted key"},
        {DICT("'<f4'", "False", "3"), "not a tuple"},
        {DICT("'<f4'", "False", "(3)"), "not a tuple"},
        {DICT("'<f4'", "False", "[3]"), "not a tuple"},
        {DICT("'<f4'", "False", "(,)"), "not a tuple"},
        {DICT("'<f4'", "False", "(3 4)"), "not a tuple"},
        {DICT("'<f4'", "False", "(3,,4)"), "not a tuple"},
        {DICT("'<f4'", "False", "(3.0,)"), "not a tuple"},
        {DICT("'<f4'", "False", "(0x3,)"), "not a tuple"},
        {DICT("'<f4'", "False", "(-3,)"), "negative"},
        {DICT("'<f4'", "False", "(18446744073709551616,)"), "64 bits"},
        {DICT("'<f4'", "False", "(4294967296, 4294967296)"), "64 bits"},
        {DICT("'<f8'", "False", "(2305843009213693952,)"), "64 bits"},
        {DICT("'<f8'", "False", "(0, 4294967296, 4294967296)"), "64 bits"},
        {DICT("'<f4'", "False",
              "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
              "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"),
         "64 dimensions"},
    };
    struct bhi_array array;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        complaint.text[0] = 0;
        if (parse(cases[i].text, &array)) {
            BHT_FAIL("taken: %s", cases[i].text);
        }
        if (!strstr(complaint.text, cases[i].reason)) {
            BHT_FAIL("%s: '%s' does not say '%s'", cases[i].text, complaint.text, cases[i].reason);
        }
        BHT_EQ(strchr(complaint.text, '\n'), NULL);
    }
}

TEST(test_every_truncation) {
    static const char whole[] = DICT("'<f4'", "False", "(12, 34)");
    struct bhi_array array;
    char part[sizeof whole];
    /* All but the final "\n", which is only padding. */
    for (size_t length = 0; length + 2 < sizeof whole; length++) {
        memcpy(part, whole, length);
        part[length] = 0;
        if (parse(part, &array)) {
            BHT_FAIL("taken: %s", part);
        }
    }
    BHT_TRUE(parse(whole, &array));
}

TEST(test_preamble) {
    uint8_t good[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0, 0, 0};
    size_t start, length;
    BHT_TRUE(bhi_npy_parse_preamble(good, 10, &start, &length, &complaint));
    BHT_EQ(start, 10);
    BHT_EQ(length, 118);
    for (size_t size = 0; size < 10; size++) {
        BHT_TRUE(!bhi_npy_parse_preamble(good, size, &start, &length, &complaint));
    }

    for (uint8_t major = 2; major <= 3; major++) {
        good[6] = major;
        BHT_TRUE(bhi_npy_parse_preamble(good, 12, &start, &length, &complaint));
        BHT_EQ(start, 12);
        BHT_EQ(length, 118);
        BHT_TRUE(!bhi_npy_parse_preamble(good, 11, &start, &length, &complaint));
    }
    good[8] = good[9] = 0xFF; /* the longest */
    BHT_TRUE(bhi_npy_parse_preamble(good, 12, &start, &length, &complaint));
    BHT_EQ(length, 65535);
    good[8] = good[9] = 0;
    good[10] = 1;
    BHT_TRUE(!bhi_npy_parse_preamble(good, 12, &start, &length, &complaint));
    good[8] = 118; /* 65,654 bytes */
    good[9] = 0;
    BHT_TRUE(!bhi_npy_parse_preamble(good, 12, &start, &length, &complaint));
    BHT_STR_HAS(complaint.text, "the limit is 65535");
    good[10] = 0;
    good[11] = 0xFF;
    BHT_TRUE(!bhi_npy_parse_preamble(good, 12, &start, &length, &complaint));
    good[11] = 0;
    for (unsigned major = 0; major < 256; major++) {
        good[6] = (uint8_t)major;
        BHT_EQ(bhi_npy_parse_preamble(good, 12, &start, &length, &complaint),
               major >= 1 && major <= 3);
    }
    good[6] = 1;
    good[7] = 1;
    BHT_TRUE(!bhi_npy_parse_preamble(good, 12, &start, &length, &complaint));
    good[7] = 0;
    for (size_t i = 0; i < 6; i++) {
        good[i] ^= 1;
        BHT_TRUE(!bhi_npy_parse_preamble(good, 12, &start, &length, &complaint));
        BHT_STR_HAS(complaint.text, "does not begin with");
        good[i] ^= 1;
    }
}

TEST(test_written_headers_are_read) {
    for (int type = 0; type < BHI_DTYPE_COUNT; type++) {
        for (uint32_t dimensions = 0; dimensions <= BHI_MAX_DIMENSIONS; dimensions++) {
            struct bhi_array array = {.dtype = bhi_dtypes[type], .dimensions = dimensions};
            struct bhi_array again;
            uint8_t bytes[BHI_NPY_WRITE_CAPACITY];
            size_t start, length;
            for (uint32_t i = 0; i < dimensions; i++) {
                array.shape[i] = i == 0 ? UINT64_MAX >> 4 : i == 1 ? 0 : 1;
            }
            if (dimensions == 1) {
                array.shape[0] = 1000;
            }
            BHT_TRUE(bhi_array_measure(&array, &complaint));
            size_t size = bhi_npy_write_header(&array, bytes, sizeof bytes);
            BHT_GT(size, 0);
            BHT_EQ(size % 64, 0);
            BHT_EQ(bytes[size - 1], '\n');
            BHT_TRUE(bhi_npy_parse_preamble(bytes, 12, &start, &length, &complaint));
            BHT_EQ(start + length, size);
            BHT_TRUE(bhi_npy_parse_header((char *)bytes + start, length, &again, &complaint));
            BHT_EQ(again.dtype, array.dtype);
            BHT_EQ(again.dimensions, dimensions);
            BHT_EQ(again.bytes, array.bytes);
            BHT_MEM_EQ(again.shape, array.shape, dimensions * sizeof array.shape[0]);
        }
    }
    struct bhi_array array = {.dtype = BH_DTYPE_F32, .dimensions = 0, .bytes = 4};
    uint8_t small[64];
    BHT_EQ(bhi_npy_write_header(&array, small, sizeof small), 0);
}

/* Files that end up under the wrong name: a pointer, a page of a server, an archive. */
TEST(test_foreign_files) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *said;
    } cases[] = {
#define FILE_OF(text) text, sizeof text - 1
        {FILE_OF("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"),
         "it is a Git LFS pointer, not a .npy file: git lfs pull fetches the file itself"},
        {FILE_OF("version "), "it is a Git LFS pointer"},
        {FILE_OF("version 2 of it"), "not a .npy file: it does not begin"},
        {FILE_OF("<!DOCTYPE html>"), "it is a web page (HTML or XML), not a .npy file: the "},
        {FILE_OF("\r\n <html>"), "it is a web page"},
        {FILE_OF("<?xml version"), "it is a web page"},
        {FILE_OF("< 3"), "does not begin"},
        {FILE_OF("<"), "does not begin"},
        {FILE_OF("PK\3\4\x14\0\0\0"),
         "it is a ZIP archive, as .npz and PyTorch's files are, not a"},
        {FILE_OF("PK\3"), "does not begin"},
        {FILE_OF("\x1f\x8b\x08"), "it is compressed with gzip, not a .npy file: gunzip it"},
        {FILE_OF("\x89HDF\r\n\x1a\n"), "it is an HDF5 file"},
        {FILE_OF("GGUF\3\0\0\0"),
         "it is a GGUF file, not a .npy file: its Python package gguf has the arrays"},
        {FILE_OF("\x80\x04\x95"), "it is a Python pickle"},
        {FILE_OF("\x80\x02}"), "it is a Python pickle"},
        {FILE_OF("\x80\x05\x95"), "it is a Python pickle"},
        {FILE_OF("\x80\x06\x95"), "does not begin"},
        {FILE_OF("\x02\0\0\0\0\0\0\0{}"), "it is a .safetensors file of arrays, not a .npy file"},
        {FILE_OF("\x02\0\0\0\0\0\0\1{}"), "does not begin"},
        {FILE_OF("\x02\0\0\0\0\0\0\0"), "does not begin"},
#undef FILE_OF
    };
    size_t start, length;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t size =
            cases[i].size < BHI_NPY_MAX_PREAMBLE ? cases[i].size : BHI_NPY_MAX_PREAMBLE;
        uint8_t *copy = malloc(size); /* so that a sanitizer sees a read past it */
        BHT_NE(copy, NULL);
        memcpy(copy, cases[i].bytes, size);
        BHT_TRUE(!bhi_npy_parse_preamble(copy, size, &start, &length, &complaint));
        BHT_STR_HAS(complaint.text, cases[i].said);
        free(copy);
    }
}

/* Element by element: the first index moves fastest in Fortran's order, the last one in C's. */
TEST(fortran_order_is_turned) {
    static const struct {
        uint32_t dimensions;
        uint64_t shape[4];
    } rows[] = {{1, {5}},       {2, {2, 3}},       {2, {3, 2}}, {3, {2, 3, 4}},
                {3, {4, 1, 3}}, {4, {2, 3, 2, 2}}, {2, {0, 3}}, {3, {2, 0, 3}}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        uint16_t fortran[24], c[25];
        uint64_t count = 1;
        for (uint32_t k = 0; k < rows[i].dimensions; k++) {
            count *= rows[i].shape[k];
        }
        for (uint16_t k = 0; k < 25; k++) {
            c[k] = 99;
            fortran[k % 24] = k % 24;
        }
        bhi_array_transpose(2, rows[i].dimensions, rows[i].shape, fortran, c);
        for (uint64_t k = 0; k < count; k++) {
            uint64_t rest = k, at = 0;
            for (uint32_t d = rows[i].dimensions; d-- > 0;) {
                uint64_t stride = 1;
                for (uint32_t e = 0; e < d; e++) {
                    stride *= rows[i].shape[e];
                }
                at += rest % rows[i].shape[d] * stride;
                rest /= rows[i].shape[d];
            }
            BHT_EQ(c[k], at);
        }
        BHT_EQ(c[count], 99);
    }
}

TEST(each_type_is_found_by_kind_and_bits) {
    bh_dtype found;
    for (int i = 0; i < BHI_ELEMENT_COUNT; i++) {
        const bh_dtype dtype = bhi_dtypes[i];
        BHT_TRUE(bhi_dtype_find_number(bhi_dtype_number(dtype), 8 * bhi_dtype_size(dtype), &found));
        BHT_EQ(found, dtype);
    }
    BHT_TRUE(!bhi_dtype_find_number(BH_NUMBER_BOOL, 16, &found));
    BHT_TRUE(!bhi_dtype_find_number(BH_NUMBER_COMPLEX, 64, &found));
    BHT_TRUE(!bhi_dtype_find_number(BH_NUMBER_FLOAT, 8, &found));
}
