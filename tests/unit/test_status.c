#include "base/status.h"
#include "cmocka_all.h"
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
#define BH_STATUS(NAME, value, CLASS, text, advice) {#NAME, value, BH_CLASS_##CLASS, text, advice},
#include "base/status.def"
#undef BH_STATUS
};
#define ROWS (sizeof rows / sizeof rows[0])

static void test_every_row(void **state) {
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        bh_status s = (bh_status)rows[i].value;
        assert_string_equal(bh_status_name(s), rows[i].name);
        assert_string_equal(bh_status_text(s), rows[i].text);
        assert_string_equal(bh_status_advice(s), rows[i].advice);
        assert_int_equal(bh_status_classify(s), rows[i].class);
        assert_true(bhi_status_known(rows[i].value));
        assert_true(strlen(rows[i].text) > 0 && strlen(rows[i].advice) > 0);
    }
}

/* The generated header has every row: an enumerator that is missing does not compile. */
static void test_generated_codes(void **state) {
    (void)state;
#define BH_STATUS(NAME, value, CLASS, text, advice) assert_int_equal(BH_##NAME, value);
#include "base/status.def"
#undef BH_STATUS
}

static void test_values_are_distinct(void **state) {
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(rows[i].value, rows[j].value);
            assert_string_not_equal(rows[i].name, rows[j].name);
        }
    }
}

/* On the wire and in --json for ever. */
static void test_values_are_fixed(void **state) {
    (void)state;
    assert_int_equal(BH_OK, 0);
    assert_int_equal(BH_TIMEOUT, 1);
    assert_int_equal(BH_TOO_LARGE, 11);
    assert_int_equal(BH_IN_CALLBACK, 12);
    assert_int_equal(BH_WORKER_SIGNAL, 32);
    assert_int_equal(BH_DEADLINE, 35);
    assert_int_equal(BH_PROTOCOL, 40);
    assert_int_equal(BH_WORKER_LOST, 49);
    assert_int_equal(BH_STREAM_FAILED, 50);
    assert_int_equal(BH_LOOP_LIMIT, 51);
    assert_int_equal(BH_QUARANTINED, 52);
}

static void test_unknown(void **state) {
    (void)state;
    static const uint32_t codes[] = {31, 63, 255, UINT32_MAX};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        assert_false(bhi_status_known(codes[i]));
        assert_false(bhi_status_from_worker(codes[i]));
        assert_string_equal(bh_status_name((bh_status)codes[i]), "UNKNOWN");
        assert_non_null(bh_status_text((bh_status)codes[i]));
        assert_non_null(bh_status_advice((bh_status)codes[i]));
        assert_int_equal(bh_status_classify((bh_status)codes[i]), BH_CLASS_NONE);
    }
}

/* A worker reports what its device and its kernels did: never how it died, nor anything that would
 * pass a failure for success, nor a code below 32. */
static void test_from_worker(void **state) {
    (void)state;
    static const uint32_t never[] = {
        BH_OK,          BH_WORKER_SIGNAL,  BH_WORKER_EXIT, BH_SECCOMP,      BH_PROTOCOL,
        BH_ZYGOTE_LOST, BH_CONTEXT_CLOSED, BH_WORKER_LOST, BH_STREAM_FAILED};
    for (size_t i = 0; i < ROWS; i++) {
        if (bhi_status_from_worker(rows[i].value))
            assert_true(rows[i].value >= 32);
    }
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        assert_false(bhi_status_from_worker(never[i]));
    assert_true(bhi_status_from_worker(BH_INVALID_KERNEL));
    assert_true(bhi_status_from_worker(BH_DEVICE_LOST));
    assert_true(bhi_status_from_worker(BH_CANCELLED));
    assert_true(bhi_status_from_worker(BH_DEADLINE)); /* as an answer: core/worker.c */
}

/* T6: by what it is for. */
static void test_from_kind(void **state) {
    (void)state;
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
        assert_int_equal(bhi_status_from_kind(kinds[i].code, BHI_WORKER_DEVICE), kinds[i].device);
        assert_int_equal(bhi_status_from_kind(kinds[i].code, BHI_WORKER_LOADER), kinds[i].loader);
        assert_int_equal(bhi_status_from_kind(kinds[i].code, BHI_WORKER_COMPILER),
                         kinds[i].compiler);
    }
}

static void test_layers(void **state) {
    (void)state;
    for (uint32_t i = 0; i < BHI_LAYER_COUNT; i++) {
        const struct bhi_layer_info *info = bhi_layer_info(i);
        assert_non_null(info);
        assert_int_equal(info->layer, i);
        assert_true(strlen(info->name) > 0 && strlen(info->what) > 0);
        assert_non_null(info->advice);
        for (const char *c = info->name; *c; c++)
            assert_true(islower((unsigned char)*c) || *c == '-');
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(info->name, bhi_layer_info(j)->name);
    }
    assert_null(bhi_layer_info(BHI_LAYER_COUNT));
    assert_null(bhi_layer_info(UINT32_MAX));
    assert_string_equal(bhi_layer_info(BHI_LAYER_NO_NEW_PRIVS)->name, "no-new-privs");
    assert_true(bhi_layer_info(BHI_LAYER_USERNS)->required);
    assert_false(bhi_layer_info(BHI_LAYER_LANDLOCK)->required);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row),
        cmocka_unit_test(test_generated_codes),
        cmocka_unit_test(test_values_are_distinct),
        cmocka_unit_test(test_values_are_fixed),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_from_worker),
        cmocka_unit_test(test_from_kind),
        cmocka_unit_test(test_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
