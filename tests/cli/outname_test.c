/* Which names an output may have: what is written is .npy. */
#include "request/outname.h"

#include "harness.h"

TEST(accepted) {
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
    for (size_t i = 0; i < BHT_COUNT(paths); i++) {
        struct bhi_complaint complaint = {.text = ""};
        if (!bhi_outname_check(paths[i], "npy", &complaint)) {
            BHT_FAIL("'%s' is refused: %s", paths[i], complaint.text);
        }
    }
}

/* The message names the ending: what comes after the last dot. */
TEST(refused) {
    static const char *const paths[] = {
        "z.jpeg",      "z.JPEG",      "z.jpg",          "z.npz",         "z.f32",
        "z.webp",      "z.mp4",       "z.7z",           "z.h",           "z.arrow",
        "z.float",     "z.numpy",     "z.1a",           "z.c++",         "z.npy ",
        "z.npy.gz",    "z.npy.bak",   "z.1.csv",        ".z.csv",        "..csv",
        "d/z.bin",     "d.npy/z.bin", "/tmp/d.0/z.raw", "z.safetensors", "z.SafeTensors",
        "d/z.parquet", "z.pickle",    "z.float32",      "z.sqlite3"};
    for (size_t i = 0; i < BHT_COUNT(paths); i++) {
        struct bhi_complaint complaint = {.text = ""};
        char expected[200];
        snprintf(expected, sizeof expected,
                 "outputs are .npy files, and a name that ends in %s may be taken for another "
                 "format: end it in .npy",
                 strrchr(paths[i], '.'));
        if (bhi_outname_check(paths[i], "npy", &complaint)) {
            BHT_FAIL("'%s' is accepted", paths[i]);
        }
        BHT_STR_EQ(complaint.text, expected);
    }
}
