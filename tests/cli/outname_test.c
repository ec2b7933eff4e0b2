/* Which names an output may have: what is written is .npy. */
#include "request/outname.h"

#include "harness.h"

#include <string.h>

static void accepted(void) {
    static const char *const paths[] = {
        /* .npy */
        "z.npy", "z.NPY", "z.Npy", "d/z.npy", "z.jpeg.npy", "z.tar.gz.npy", ".z.npy",
        /* no ending */
        "z", "d/z", "./z", "../z", "z.", "d.jpeg/z", "d.gz/z", "d.gz/", "npy", "jpeg", "-", "", "/",
        ".", "..", "d.jpeg/.", "d.jpeg/..", "/dev/stdout", "/dev/fd/3", "/proc/self/fd/1",
        /* a hidden file's dot begins no ending */
        ".npy", ".z", ".jpeg", "d/.safetensors", "d.jpeg/.csv",
        /* digits alone */
        "z.0", "z.2", "z.2026", "z.123456789", "z.npy.1", "z.jpeg.1", "d/z.07",
        /* longer than any format's name, and none of the known long ones */
        "tmp.AbC123XyZ0", "/tmp/tmp.aaaaaaaaaa", "z.a1B2c3", "z.jpegxx", "z.result",
        "z.safetensorsx", "z.2-final"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct bhi_complaint complaint = {.text = ""};
        if (!bhi_outname_check(paths[i], "npy", &complaint)) {
            BHT_FAIL("'%s' is refused: %s", paths[i], complaint.text);
        }
    }
}

static void refused(void) {
    static const struct {
        const char *path, *ending; /* as the message names it */
    } names[] = {
        {"z.jpeg", "jpeg"},
        {"z.JPEG", "JPEG"},
        {"z.jpg", "jpg"},
        {"z.npz", "npz"},
        {"z.f32", "f32"},
        {"z.webp", "webp"},
        {"z.mp4", "mp4"},
        {"z.7z", "7z"},
        {"z.h", "h"},
        {"z.arrow", "arrow"},
        {"z.float", "float"},
        {"z.numpy", "numpy"},
        {"z.1a", "1a"},
        {"z.c++", "c++"},
        {"z.npy ", "npy "},
        {"z.npy.gz", "gz"},
        {"z.npy.bak", "bak"},
        {"z.1.csv", "csv"},
        {".z.csv", "csv"},
        {"..csv", "csv"},
        {"d/z.bin", "bin"},
        {"d.npy/z.bin", "bin"},
        {"/tmp/d.0/z.raw", "raw"},
        {"z.safetensors", "safetensors"},
        {"z.SafeTensors", "SafeTensors"},
        {"d/z.parquet", "parquet"},
        {"z.pickle", "pickle"},
        {"z.float32", "float32"},
        {"z.sqlite3", "sqlite3"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct bhi_complaint complaint = {.text = ""};
        char expected[200];
        snprintf(expected, sizeof expected,
                 "outputs are .npy files, and a name that ends in .%s may be taken for another "
                 "format: end it in .npy",
                 names[i].ending);
        if (bhi_outname_check(names[i].path, "npy", &complaint)) {
            BHT_FAIL("'%s' is accepted", names[i].path);
        }
        BHT_STR_EQ(complaint.text, expected);
    }
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(accepted),
        BHT_TEST(refused),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
