#include "base/status.h"
#include "harness.h"
#include "ipc/layers.h"
#include <ctype.h>
#include <string.h>

struct row {
    const char *name;
    uint32_t value;
    bh_status_class class;
    const char *text, *advice;
};

static const struct row rows[] = {
#define BH_STATUS(NAME, value, CLASS, text, advice)                                                \
    {#NAME, value, BH_STATUS_CLASS_##CLASS, text, advice},
#include "base/status.def"
#undef BH_STATUS
};
#define ROWS (sizeof rows / sizeof rows[0])

TEST(test_every_row) {
    for (size_t i = 0; i < ROWS; i++) {
        bh_status s = (bh_status)rows[i].value;
        BHT_STR_EQ(bh_status_name(s), rows[i].name);
        BHT_STR_EQ(bh_status_text(s), rows[i].text);
        BHT_STR_EQ(bh_status_advice(s), rows[i].advice);
        BHT_EQ(bh_status_classify(s), rows[i].class);
        BHT_TRUE(strlen(rows[i].text) > 0 && strlen(rows[i].advice) > 0);
    }
}

/* The generated header has every row: an enumerator that is missing does not compile. */
TEST(test_generated_codes) {
#define BH_STATUS(NAME, value, CLASS, text, advice) BHT_EQ(BH_##NAME, value);
#include "base/status.def"
#undef BH_STATUS
}

TEST(test_values_are_distinct) {
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t j = 0; j < i; j++) {
            BHT_NE(rows[i].value, rows[j].value);
            BHT_NE(strcmp(rows[i].name, rows[j].name), 0);
        }
    }
}

/* On the wire and in --json for ever. */
TEST(test_values_are_fixed) {
    BHT_EQ(BH_OK, 0);
    BHT_EQ(BH_TIMEOUT, 1);
    BHT_EQ(BH_TOO_LARGE, 11);
    BHT_EQ(BH_IN_CALLBACK, 12);
    BHT_EQ(BH_NOT_CORRECT, 13);
    BHT_EQ(BH_WORKER_SIGNAL, 32);
    BHT_EQ(BH_DEADLINE, 35);
    BHT_EQ(BH_PROTOCOL, 40);
    BHT_EQ(BH_WORKER_LOST, 49);
    BHT_EQ(BH_STREAM_FAILED, 50);
    BHT_EQ(BH_LOOP_LIMIT, 51);
    BHT_EQ(BH_QUARANTINED, 52);
    BHT_EQ(BH_DEVICE_FAULT, 53);
    BHT_EQ(BH_CUDA, 54);
}

TEST(test_unknown) {
    static const uint32_t codes[] = {31, 63, 255, UINT32_MAX};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        BHT_TRUE(!bhi_status_from_worker(codes[i]));
        BHT_STR_EQ(bh_status_name((bh_status)codes[i]), "UNKNOWN");
        BHT_NE(bh_status_text((bh_status)codes[i]), NULL);
        BHT_NE(bh_status_advice((bh_status)codes[i]), NULL);
        BHT_EQ(bh_status_classify((bh_status)codes[i]), BH_STATUS_CLASS_NONE);
    }
}

/* A worker reports what its device and its kernels did: never how it died, nor anything that would
 * pass a failure for success, nor a code below 32. */
TEST(test_from_worker) {
    static const uint32_t never[] = {
        BH_OK,          BH_WORKER_SIGNAL,  BH_WORKER_EXIT, BH_SECCOMP,      BH_PROTOCOL,
        BH_ZYGOTE_LOST, BH_CONTEXT_CLOSED, BH_WORKER_LOST, BH_STREAM_FAILED};
    for (size_t i = 0; i < ROWS; i++) {
        if (bhi_status_from_worker(rows[i].value)) {
            BHT_GE(rows[i].value, 32);
        }
    }
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        BHT_TRUE(!bhi_status_from_worker(never[i]));
    }
    BHT_TRUE(bhi_status_from_worker(BH_INVALID_KERNEL));
    BHT_TRUE(bhi_status_from_worker(BH_DEVICE_LOST));
    BHT_TRUE(bhi_status_from_worker(BH_CANCELLED));
    BHT_TRUE(bhi_status_from_worker(BH_DEADLINE)); /* as an answer: core/worker.c */
}

/* T6: by what it is for. */
TEST(test_from_kind) {
    static const struct {
        uint32_t code;
        bool device, loader, compiler;
    } kinds[] = {
        {BH_OK, false, false, false},           {BH_WORKER_SIGNAL, false, false, false},
        {BH_CANCELLED, true, true, true},       {BH_OUT_OF_HOST_MEMORY, true, true, true},
        {BH_LOAD_FAILED, false, true, false},   {BH_DEVICE_LOST, true, false, false},
        {BH_DEADLINE, true, false, false},      {BH_LOOP_LIMIT, true, false, false},
        {BH_COMPILE_FAILED, true, false, true}, {BH_INVALID_KERNEL, true, false, true},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        BHT_EQ(bhi_status_from_kind(kinds[i].code, BHI_WORKER_DEVICE), kinds[i].device);
        BHT_EQ(bhi_status_from_kind(kinds[i].code, BHI_WORKER_LOADER), kinds[i].loader);
        BHT_EQ(bhi_status_from_kind(kinds[i].code, BHI_WORKER_COMPILER), kinds[i].compiler);
    }
}

TEST(test_layers) {
    for (uint32_t i = 0; i < BHI_LAYER_COUNT; i++) {
        const struct bhi_layer_info *info = bhi_layer_info(i);
        BHT_NE(info, NULL);
        BHT_EQ(info->layer, i);
        BHT_TRUE(strlen(info->name) > 0 && strlen(info->what) > 0);
        BHT_NE(info->advice, NULL);
        for (const char *c = info->name; *c; c++) {
            BHT_TRUE(islower((unsigned char)*c) || *c == '-');
        }
        for (uint32_t j = 0; j < i; j++) {
            BHT_NE(strcmp(info->name, bhi_layer_info(j)->name), 0);
        }
    }
    BHT_EQ(bhi_layer_info(BHI_LAYER_COUNT), NULL);
    BHT_EQ(bhi_layer_info(UINT32_MAX), NULL);
    BHT_STR_EQ(bhi_layer_info(BHI_LAYER_NO_NEW_PRIVS)->name, "no-new-privs");
    BHT_TRUE(bhi_layer_info(BHI_LAYER_USERNS)->required);
    BHT_TRUE(!(bhi_layer_info(BHI_LAYER_LANDLOCK)->required));
}
