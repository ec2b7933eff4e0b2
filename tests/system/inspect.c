/* What bh_kernel_inspect says of a module, and what is wrong with one. */
#include "fixture.h"

#include <stdio.h>

static const char everything[] =
    "#version 450\n"
    "#extension GL_EXT_shader_16bit_storage : require\n"
    "layout(local_size_x_id = 9, local_size_y = 2) in;\n"
    "layout(constant_id = 4) const int count = -7;\n"
    "layout(constant_id = 2) const bool flag = true;\n"
    "layout(constant_id = 3) const float scale = 1.5;\n"
    "layout(set = 0, binding = 1) readonly buffer X { float x[]; };\n"
    "layout(set = 0, binding = 3) writeonly buffer Y { uint n; vec4 y[]; } result;\n"
    "layout(set = 1, binding = 0) uniform U { mat4 m; uint w[4]; } table;\n"
    "layout(push_constant) uniform P { float a; uvec2 size; uint list[3]; } push;\n"
    "shared float tile[64];\n"
    "void main() {\n"
    "    uint i = gl_GlobalInvocationID.x;\n"
    "    tile[i % 64] = x[i];\n"
    "    barrier();\n"
    "    for (uint k = 0; k < push.size.x; k++)\n"
    "        result.y[i] += table.m[0] * tile[k % 64] * push.a * float(push.list[2]);\n"
    "    if (flag) result.n = uint(count) + uint(scale) + table.w[1];\n"
    "}\n";

static bh_context *context;
static bh_detail detail; /* of the last call */

static void open_context(void) {
    context = fx_context(NULL);
}
BHT_AT_START(bht_around(open_context, NULL))

static bh_kernel *kernel_of(const char *text, const bh_kernel_options *options) {
    const bh_source source = {.struct_size = sizeof source,
                              .text = text,
                              .name = "test.comp",
                              .deadline_ns = 3 * FX_SECONDS};
    bh_kernel *kernel = NULL;
    if (bh_kernel_create_source(context, &source, options, &kernel, &detail) != BH_OK) {
        BHT_FAIL("%s", detail.message);
    }
    return kernel;
}

/* What bh_kernel_inspect's comment says of it. */
_Static_assert(sizeof(bh_inspection) / 1024 == 72, "some 72 KiB");

static bh_inspection said = {.struct_size = sizeof said};

static bh_status try_to_inspect(bh_kernel *kernel, const bh_inspect_options *options) {
    return bh_kernel_inspect(kernel, options, &said, &detail);
}

static void inspect(bh_kernel *kernel, const bh_inspect_options *options) {
    if (try_to_inspect(kernel, options) != BH_OK) {
        BHT_FAIL("%s", detail.message);
    }
}

TEST(who_asks_for_a_length_is_told) {
    static const char asks[] = "#version 450\n"
                               "layout(binding = 0) readonly buffer X { float x[]; };\n"
                               "layout(binding = 1) buffer Y { uint many; float y[]; };\n"
                               "layout(binding = 2) buffer Z { float z[]; };\n"
                               "void main() { z[0] = x[0] + float(y.length()); y[1] = 0; }\n";
    bh_kernel *kernel = kernel_of(asks, NULL);
    inspect(kernel, NULL);
    BHT_EQ(said.binding_count, 3);
    BHT_TRUE(!said.bindings[0].measured && said.bindings[1].measured && !said.bindings[2].measured);
    bh_kernel_release(kernel);
}

/* Of several declarations at one binding one suffices. */
TEST(who_asks_for_a_length_by_another_name_is_told) {
    static const char asks[] =
        "#version 450\n"
        "layout(binding = 0) buffer A { float a[]; };\n"
        "layout(binding = 0) buffer B { uint b[]; };\n"
        "layout(binding = 1) buffer C { float c[]; };\n"
        "layout(binding = 1) buffer D { uint d[]; };\n"
        "void main() { a[0] = 1; b[1] = b.length(); c[2] = 1; d[3] = c.length(); }\n";
    bh_kernel *kernel = kernel_of(asks, NULL);
    inspect(kernel, NULL);
    BHT_EQ(said.binding_count, 2);
    BHT_TRUE(said.bindings[0].measured && said.bindings[1].measured);
    bh_kernel_release(kernel);
}

TEST(all_of_it_is_told) {
    bh_specialization given = {.constant_id = 9, .size = 4, .bits = 32};
    bh_kernel_options options = {.struct_size = sizeof options};
    options.specializations = &given;
    options.specialization_count = 1;
    bh_kernel *kernel = kernel_of(everything, &options);
    inspect(kernel, NULL);
    BHT_EQ(said.spirv_version, 0x103);
    BHT_EQ(said.entry_count, 1);
    BHT_STR_EQ(said.entries[0], "main");
    BHT_EQ(said.local_size[0], 32); /* as specialized */
    BHT_EQ(said.local_size[1], 2);
    BHT_EQ(said.local_size[2], 1);
    BHT_EQ(said.shared_bytes, 256);

    BHT_EQ(said.binding_count, 3);
    BHT_EQ(said.bindings[0].binding, 1);
    BHT_EQ(said.bindings[0].kind, BH_BINDING_STORAGE_BUFFER);
    BHT_EQ(said.bindings[0].access, BH_ACCESS_READ);
    BHT_STR_EQ(said.bindings[0].type, "f32[]");
    BHT_STR_EQ(said.bindings[0].name, "X");
    BHT_EQ(said.bindings[1].binding, 3);
    BHT_EQ(said.bindings[1].access & BH_ACCESS_WRITE, BH_ACCESS_WRITE);
    BHT_STR_EQ(said.bindings[1].type, "{u32, f32x4[]}");
    BHT_STR_EQ(said.bindings[1].name, "result");
    BHT_EQ(said.bindings[2].set, 1);
    BHT_EQ(said.bindings[2].kind, BH_BINDING_UNIFORM_BUFFER);
    BHT_STR_EQ(said.bindings[2].type, "{f32x4x4, u32[4]}");

    BHT_EQ(said.push_size, 28);
    BHT_EQ(said.member_count, 3);
    BHT_STR_EQ(said.members[0].name, "a");
    BHT_STR_EQ(said.members[0].type, "f32");
    BHT_STR_EQ(said.members[1].name, "size");
    BHT_STR_EQ(said.members[1].type, "u32x2");
    BHT_EQ(said.members[1].offset, 8);
    BHT_STR_EQ(said.members[2].type, "u32[3]");
    BHT_EQ(said.members[2].offset, 16);
    BHT_EQ(said.members[2].stride, 4);
    BHT_EQ(said.members[2].step, 4);

    BHT_EQ(said.constant_count, 4); /* by id */
    BHT_EQ(said.constants[0].constant_id, 2);
    BHT_EQ(said.constants[0].dtype, BH_DTYPE_BOOL);
    BHT_EQ(said.constants[0].bits, 1);
    BHT_STR_EQ(said.constants[0].name, "flag");
    BHT_EQ(said.constants[1].dtype, BH_DTYPE_F32);
    BHT_EQ(said.constants[1].bits, 0x3fc00000);
    BHT_EQ(said.constants[2].dtype, BH_DTYPE_I32);
    BHT_EQ(said.constants[2].bits, (uint32_t)-7);
    BHT_STR_EQ(said.constants[2].name, "count");
    BHT_EQ(said.constants[3].constant_id, 9);
    BHT_EQ(said.constants[3].bits, 1); /* the module's own */
    BHT_STR_EQ(said.constants[3].name, "local_size_x");

    BHT_GE(said.capability_count, 1);
    BHT_STR_EQ(said.capabilities[0], "Shader");
}

/* A module keeps a negative number of fewer than 32 bits as one of 32. */
TEST(constants_are_as_wide_as_their_types) {
    static const char narrow[] =
        "#version 450\n"
        "#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require\n"
        "layout(constant_id = 1) const int16_t below = -2s;\n"
        "layout(constant_id = 2) const uint16_t above = 40000us;\n"
        "layout(binding = 0) buffer A { int a[]; };\n"
        "void main() { a[0] = int(below) + int(above); }\n";
    bh_kernel *kernel = kernel_of(narrow, NULL);
    inspect(kernel, NULL);
    BHT_EQ(said.constant_count, 2);
    BHT_EQ(said.constants[0].dtype, BH_DTYPE_I16);
    BHT_EQ(said.constants[0].bits, (uint16_t)-2);
    BHT_EQ(said.constants[1].dtype, BH_DTYPE_U16);
    BHT_EQ(said.constants[1].bits, 40000);
    bh_kernel_release(kernel);
}

TEST(guarded) {
    bh_kernel *kernel = kernel_of(everything, NULL);
    static char text[1 << 20];
    bh_inspect_options options = {.struct_size = sizeof options};
    options.guarded = true;
    inspect(kernel, &options);
    BHT_EQ(said.loops, 1);
    BHT_EQ(said.loops, said.left_alone + said.covered + said.lowered + said.polled);
    uint64_t whole = said.text_bytes;
    BHT_GT(whole, 1000);
    options.text = text;
    options.text_size = sizeof text;
    inspect(kernel, &options);
    BHT_EQ(said.text_bytes, whole);
    BHT_EQ(strlen(text), whole);
    BHT_STR_HAS(text, "OpEntryPoint GLCompute %main \"main\"");
    BHT_STR_HAS(text, " Volatile"); /* the poll */
    /* Cut where there is no room. */
    options.text_size = 100;
    inspect(kernel, &options);
    BHT_EQ(said.text_bytes, whole);
    BHT_EQ(strlen(text), 99);
}

/* An atomic minimum of floats is no plain store, and writes all the same. */
TEST(atomics_write) {
    bh_kernel *kernel = kernel_of("#version 450\n"
                                  "#extension GL_EXT_shader_atomic_float2 : require\n"
                                  "layout(local_size_x = 1) in;\n"
                                  "layout(set = 0, binding = 0) buffer D { float d[]; };\n"
                                  "void main() { atomicMin(d[0], 1.0); }\n",
                                  NULL);
    bh_inspect_options options = {.struct_size = sizeof options};
    inspect(kernel, &options);
    BHT_EQ(said.bindings[0].access, BH_ACCESS_READ_WRITE);
}

/* What a worker would refuse, guarded or not (K4). */
TEST(the_guards_limits) {
    bh_kernel *kernel = kernel_of("#version 450\nlayout(local_size_x = 1) in;\n"
                                  "layout(set = 0, binding = 0) buffer D { uint d[]; };\n"
                                  "void main() { float t[20000]; t[d[0]] = 1.0;\n"
                                  "d[1] = uint(t[d[2]]); }\n",
                                  NULL);
    bh_inspect_options options = {.struct_size = sizeof options};
    inspect(kernel, &options);
    BHT_EQ(said.binding_count, 1);
    options.guarded = true;
    BHT_EQ(try_to_inspect(kernel, &options), BH_LIMIT_EXCEEDED);
    BHT_STR_HAS(detail.message, "20000");
}

/* More text than the first answer has room for. */
TEST(a_long_disassembly) {
    size_t size = 400000, used = 0;
    char *source = bht_own(malloc(size));
    used += (size_t)snprintf(source, size,
                             "#version 450\nlayout(local_size_x = 1) in;\n"
                             "layout(set = 0, binding = 0) buffer D { uint d[]; };\n"
                             "void main() {\n");
    for (int i = 0; i < 3000; i++) {
        used +=
            (size_t)snprintf(source + used, size - used, "d[%d] = d[%d] * %du;\n", i, i + 1, i + 3);
    }
    snprintf(source + used, size - used, "}\n");
    bh_kernel *kernel = kernel_of(source, NULL);
    char *text = bht_own(malloc(8 << 20));
    bh_inspect_options options = {.struct_size = sizeof options};
    options.guarded = true;
    options.text = text;
    options.text_size = 8 << 20;
    inspect(kernel, &options);
    BHT_GT(said.text_bytes, 256 << 10);
    BHT_EQ(strlen(text), said.text_bytes);
}

TEST(refusals) {
    BHT_EQ(try_to_inspect(NULL, NULL), BH_INVALID_ARGUMENT);
    bh_kernel *kernel = fx_kernel_entry(context, "square", "nothing");
    BHT_EQ(bh_kernel_inspect(kernel, NULL, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(try_to_inspect(kernel, NULL), BH_INVALID_KERNEL);
    BHT_EQ(detail.reason, BH_REASON_ENTRY_POINT);
    BHT_STR_HAS(detail.message, "there is no entry point \"nothing\"; the module has \"main\"");
    bh_inspect_options options = {.struct_size = sizeof options};
    options.text = detail.message; /* and no size */
    BHT_EQ(try_to_inspect(kernel, &options), BH_INVALID_ARGUMENT);
    options.text = NULL; /* and the default deadline */
    BHT_EQ(try_to_inspect(kernel, &options), BH_INVALID_KERNEL);
    options.struct_size = 1;
    BHT_EQ(try_to_inspect(kernel, &options), BH_INVALID_ARGUMENT);
    /* Noise with the right magic number. */
    uint32_t noise[256] = {0x07230203, 0x10300, 0, 64};
    for (uint32_t i = 5; i < 256; i++) {
        noise[i] = i * 2654435761u;
    }
    BHT_EQ(bh_kernel_create_spirv(context, noise, sizeof noise, NULL, &kernel, NULL), BH_OK);
    BHT_EQ(try_to_inspect(kernel, NULL), BH_INVALID_KERNEL);
    BHT_EQ(detail.reason, BH_REASON_NOT_VALID);
    BHT_EQ(bh_context_synchronize(context, FX_SECONDS, NULL), BH_OK);
}

/* -- one that was taken over, or dies ----------------------------------------------------------- */

/* Inspects square with a compiler that has |fault|; the context is none the worse for it. */
static bh_status inspect_with(const char *fault) {
    static char text[1 << 20];
    const bh_inspect_options options = {
        .struct_size = sizeof options,
        .guarded = true,
        .text = text,
        .text_size = sizeof text,
        .deadline_ns = strstr(fault, "hang") ? 500 * bht_slowness() * FX_MS : FX_SECONDS};
    context = fx_context(fault);
    const bh_status status = try_to_inspect(fx_kernel(context, "square"), &options);
    BHT_EQ(bh_context_synchronize(context, FX_SECONDS, NULL), BH_OK);
    fx_release_all();
    return status;
}

TEST(lies_are_seen_through) {
    static const char *const lies[] = {"*:lie_counts:1=fail", "*:lie_kind:1=fail",
                                       "*:lie_text_bytes:1=fail", "*:lie_status:1=fail"};
    for (size_t i = 0; i < BHT_COUNT(lies); i++) {
        if (inspect_with(lies[i]) != BH_PROTOCOL) {
            BHT_FAIL("%s is believed", lies[i]);
        }
        BHT_EQ(detail.reason, BH_REASON_IMPOSSIBLE);
    }
    BHT_EQ(inspect_with("*:lie_names:1=fail"), BH_OK);
    BHT_TRUE(!strchr(said.bindings[0].name, '\x1b'));
    BHT_EQ(strlen(said.bindings[0].name), 63);
    BHT_TRUE(!strchr(said.entries[0], '\xff'));
}

TEST(deaths_have_a_cause) {
    BHT_EQ(inspect_with("*:reflect:1=segv"), BH_COMPILE_FAILED);
    BHT_EQ(detail.reason, BH_REASON_COMPILER_CRASHED);
    /* Under load its deadline may pass before. */
    BHT_EQ(inspect_with("?*:reflect:1=hang"), BH_COMPILE_FAILED);
    BHT_EQ(detail.reason, BH_REASON_COMPILE_DEADLINE);
}
