#include "cli/inspect_print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/dtype.h"
#include "tool/json.h"
#include "tool/text.h"

enum { FEW_SETS = 8 }; /* the assumed number of sets of a device: see bh_inspection.guard_set */

/* -- parts ----------------------------------------------------------------------------------- */

const char *bhi_print_type(bh_dtype dtype) {
    const char *name = bhi_dtype_any_name(dtype);
    return name ? name : "?";
}

static double float_value(const bh_inspected_constant *constant) {
    float single;
    double value;
    uint32_t word = (uint32_t)constant->bits;
    switch (constant->dtype) {
    case BH_DTYPE_F16:
        return bhi_f16_to_double((uint16_t)constant->bits);
    case BH_DTYPE_F32:
        memcpy(&single, &word, sizeof single);
        return (double)single;
    default:
        memcpy(&value, &constant->bits, sizeof value);
        return value;
    }
}

static bool is_float(const bh_inspected_constant *constant) {
    return constant->dtype >= BH_DTYPE_F16 && constant->dtype <= BH_DTYPE_F64;
}

static int64_t signed_value(const bh_inspected_constant *constant) {
    switch (constant->dtype) {
    case BH_DTYPE_I8:
        return (int8_t)constant->bits;
    case BH_DTYPE_I16:
        return (int16_t)constant->bits;
    case BH_DTYPE_I32:
        return (int32_t)constant->bits;
    default:
        return (int64_t)constant->bits;
    }
}

/* Writes the value in the form that --spec takes. */
static void value_text(const bh_inspected_constant *constant, char out[64]) {
    if (constant->dtype == BH_DTYPE_BOOL) {
        snprintf(out, 64, "%s", constant->bits ? "true" : "false");
    } else if (is_float(constant)) {
        snprintf(out, 64, "%.*g", constant->dtype == BH_DTYPE_F64 ? 17 : 9, float_value(constant));
    } else if (constant->dtype == BH_DTYPE_U64) {
        snprintf(out, 64, "%llu", (unsigned long long)constant->bits);
    } else {
        snprintf(out, 64, "%lld", (long long)signed_value(constant));
    }
}

static const char *access_text(bh_access access) {
    return access == BH_ACCESS_READ ? "read" : access == BH_ACCESS_WRITE ? "write" : "read_write";
}

static void hash_text(const uint8_t hash[32], char out[65]) {
    for (int i = 0; i < 32; i++) {
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
    }
}

/* -- for a person ---------------------------------------------------------------------------- */

/* Cleans a name that the module's author chose. */
static const char *clean(const char *name) {
    static char out[128];
    return bhi_text_clean(out, sizeof out, name);
}

static void print_list(const char *title, const char names[][64], uint32_t count) {
    printf("  %-14s", title);
    for (uint32_t i = 0; i < count; i++) {
        printf(" %s", clean(names[i]));
    }
    printf("\n");
}

/* Writes "0.1", or "0.1[3]" for an array of three buffers. */
static int binding_place(const bh_inspected_binding *binding, char *out, size_t size) {
    return binding->count > 1
               ? snprintf(out, size, "%u.%u[%u]", binding->set, binding->binding, binding->count)
               : snprintf(out, size, "%u.%u", binding->set, binding->binding);
}

static void print_bindings(const bh_inspection *said) {
    int width = 6;
    printf("  bindings%s\n", said->binding_count ? "" : "      none");
    for (uint32_t i = 0; i < said->binding_count; i++) {
        char place[48];
        const int length = binding_place(&said->bindings[i], place, sizeof place);
        width = length > width ? length : width;
    }
    for (uint32_t i = 0; i < said->binding_count; i++) {
        const bh_inspected_binding *binding = &said->bindings[i];
        char place[48];
        binding_place(binding, place, sizeof place);
        printf("    %-*s %-7s %-10s %-12s", width, place,
               binding->kind == BH_BINDING_UNIFORM_BUFFER ? "uniform" : "storage",
               access_text(binding->access), binding->type);
        printf(" %s\n", clean(binding->name));
    }
}

static void print_push(const bh_inspection *said) {
    if (!said->push_size) {
        printf("  push           none\n");
        return;
    }
    printf("  push           %u bytes\n", said->push_size);
    for (uint32_t i = 0; i < said->member_count; i++) {
        printf("    %-6u %-12s %s\n", said->members[i].offset, said->members[i].type,
               clean(said->members[i].name));
    }
}

static void print_constants(const bh_inspection *said) {
    if (!said->constant_count) {
        printf("  constants      none\n");
        return;
    }
    printf("  constants\n");
    for (uint32_t i = 0; i < said->constant_count; i++) {
        const bh_inspected_constant *constant = &said->constants[i];
        char value[64];
        value_text(constant, value);
        printf("    %-6u %-4s = %-10s %s\n", constant->constant_id, bhi_print_type(constant->dtype),
               value, clean(constant->name));
    }
}

void bhi_inspect_print(const struct bhi_inspected *inspected) {
    const bh_inspection *said = inspected->said;
    char hash[65];
    hash_text(inspected->hash, hash);
    printf("%s\n", clean(inspected->name));
    printf("  hash           %s\n", hash);
    printf("  entry          %s", clean(inspected->entry));
    if (inspected->source_entry && strcmp(inspected->source_entry, inspected->entry) != 0) {
        printf(" (in the source: %s)", clean(inspected->source_entry));
    }
    printf("\n");
    if (said->entry_count > 1) {
        print_list("entry points", said->entries, said->entry_count);
    }
    printf("  workgroup      %u x %u x %u, %llu bytes of shared memory\n", said->local_size[0],
           said->local_size[1], said->local_size[2], (unsigned long long)said->shared_bytes);
    print_bindings(said);
    print_push(said);
    print_constants(said);
    print_list("capabilities", said->capabilities, said->capability_count);
    printf("  SPIR-V         %u.%u\n", said->spirv_version >> 8, said->spirv_version & 255);
}

static bool shares_set(const bh_inspection *said) {
    bool shares = false;
    for (uint32_t i = 0; i < said->binding_count; i++) {
        shares |= said->bindings[i].set == said->guard_set;
    }
    return shares;
}

void bhi_inspect_print_guarded(const struct bhi_inspected *inspected) {
    const bh_inspection *said = inspected->said;
    printf("; %s, guarded: the guard's buffer is set %u, binding %u\n", clean(inspected->name),
           said->guard_set, said->guard_binding);
    if (shares_set(said) && said->guard_set < FEW_SETS) {
        printf("; (on a device with more than %d descriptor sets: set %d, binding 0)\n", FEW_SETS,
               FEW_SETS);
    }
    printf("; of %u loops %u are left alone, %u covered by an inner one, %u run in chunks, %u "
           "polled\n",
           said->loops, said->left_alone, said->covered, said->lowered, said->polled);
    printf("; %u indices are kept in range, %u workgroup variables begin as zero\n", said->clamps,
           said->zeroed);
    /* It has lines, and the library has cleaned it. */
    fputs(inspected->disassembly, stdout);
}

/* -- for a program --------------------------------------------------------------------------- */

static json_t *names_json(const char names[][64], uint32_t count) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_array_append_new(array, bhi_json_text(names[i]));
    }
    return array;
}

static json_t *bindings_json(const bh_inspection *said) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < said->binding_count; i++) {
        const bh_inspected_binding *binding = &said->bindings[i];
        json_array_append_new(
            array, json_pack("{s:i, s:i, s:i, s:s, s:s, s:o, s:o}", "set", (int)binding->set,
                             "binding", (int)binding->binding, "count", (int)binding->count, "kind",
                             binding->kind == BH_BINDING_UNIFORM_BUFFER ? "uniform" : "storage",
                             "access", access_text(binding->access), "type",
                             bhi_json_text(binding->type), "name", bhi_json_text(binding->name)));
    }
    return array;
}

static json_t *push_json(const bh_inspection *said) {
    json_t *members = json_array();
    for (uint32_t i = 0; i < said->member_count; i++) {
        json_array_append_new(members, json_pack("{s:I, s:o, s:o}", "offset",
                                                 (json_int_t)said->members[i].offset, "type",
                                                 bhi_json_text(said->members[i].type), "name",
                                                 bhi_json_text(said->members[i].name)));
    }
    return json_pack("{s:I, s:o}", "size", (json_int_t)said->push_size, "members", members);
}

/* A number that JSON cannot represent becomes null. */
static json_t *value_json(const bh_inspected_constant *constant) {
    if (constant->dtype == BH_DTYPE_BOOL) {
        return json_boolean(constant->bits != 0);
    }
    if (is_float(constant)) {
        double value = float_value(constant);
        return isfinite(value) ? json_real(value) : json_null();
    }
    return json_integer((json_int_t)signed_value(constant));
}

static json_t *constants_json(const bh_inspection *said) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < said->constant_count; i++) {
        const bh_inspected_constant *constant = &said->constants[i];
        json_array_append_new(
            array, json_pack("{s:I, s:s, s:o, s:o}", "id", (json_int_t)constant->constant_id,
                             "type", bhi_print_type(constant->dtype), "default",
                             value_json(constant), "name", bhi_json_text(constant->name)));
    }
    return array;
}

static json_t *guard_json(const struct bhi_inspected *inspected) {
    const bh_inspection *said = inspected->said;
    if (!inspected->disassembly) {
        return json_null();
    }
    return json_pack("{s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "set",
                     (int)said->guard_set, "binding", (int)said->guard_binding, "loops",
                     (json_int_t)said->loops, "left_alone", (json_int_t)said->left_alone, "covered",
                     (json_int_t)said->covered, "lowered", (json_int_t)said->lowered, "polled",
                     (json_int_t)said->polled, "clamps", (json_int_t)said->clamps, "zeroed",
                     (json_int_t)said->zeroed, "disassembly", inspected->disassembly);
}

void bhi_inspect_print_json(const struct bhi_inspected *inspected) {
    const bh_inspection *said = inspected->said;
    char hash[65], version[16];
    hash_text(inspected->hash, hash);
    snprintf(version, sizeof version, "%u.%u", said->spirv_version >> 8, said->spirv_version & 255);
    json_t *size = json_array();
    for (int axis = 0; axis < 3; axis++) {
        json_array_append_new(size, json_integer(said->local_size[axis]));
    }
    bhi_json_print(BHI_JSON(
        {"name", bhi_json_text(inspected->name)}, {"hash", json_string(hash)},
        {"entry", bhi_json_text(inspected->entry)},
        {"source_entry",
         inspected->source_entry ? bhi_json_text(inspected->source_entry) : json_null()},
        {"entry_points", names_json(said->entries, said->entry_count)}, {"local_size", size},
        {"shared_bytes", bhi_json_number(said->shared_bytes)}, {"bindings", bindings_json(said)},
        {"push", push_json(said)}, {"constants", constants_json(said)},
        {"capabilities", names_json(said->capabilities, said->capability_count)},
        {"spirv_version", json_string(version)}, {"guard", guard_json(inspected)}));
}

void bhi_inspect_print_image(const char *name, const char *kind, size_t bytes, bool json) {
    if (json) {
        bhi_json_print(BHI_JSON({"name", bhi_json_text(name)}, {"kind", json_string(kind)},
                                {"bytes", bhi_json_number(bytes)}));
    } else {
        printf("%s for CUDA, %zu bytes\n", kind, bytes);
    }
}
