/* Writes seeds for the fuzz targets, and their dictionaries, from the tables:
 *     make_corpus FOLDER     makes FOLDER/KIND and FOLDER/KIND.dict
 * KIND: wire, record, safetensors, npy, expression, cache_envelope, inspection, job,
 * plan, ptx, history, feed, image. */
#include "../tests/proto/sample.h"
#include "ipc/commands.h"
#include "ipc/inspection.h"
#include "worker/opener/cache_envelope.h"
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *folder;

static FILE *create(const char *kind, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s%s", folder, kind, name ? "/" : "", name ? name : "");
    FILE *file = fopen(path, "wbe");
    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

static void make_folder(const char *kind) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, kind);
    if (mkdir(path, 0777) && errno != EEXIST) {
        perror(path);
        exit(1);
    }
}

static void finish(FILE *file) {
    if (fclose(file)) {
        perror(folder);
        exit(1);
    }
}

static void write_seed(const char *kind, const char *name, const void *bytes, size_t size) {
    FILE *file = create(kind, name);
    fwrite(bytes, 1, size, file);
    finish(file);
}

/* One each, under its number. */
static void write_texts(const char *kind, const char *const *texts, size_t count) {
    make_folder(kind);
    for (size_t i = 0; i < count; i++) {
        char name[24];
        snprintf(name, sizeof name, "%zu", i);
        write_seed(kind, name, texts[i], strlen(texts[i]));
    }
}

/* Of a dictionary. */
static void put_words(FILE *file, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "\"%s\"\n", words[i]);
    }
}

/* -- wire ---------------------------------------------------------------------------------- */

static void wire_seeds(void) {
    static const char *const suffixes[] = {"min", "max", "random"};
    uint64_t random = 0x5eed;
    make_folder("wire");
    for (size_t i = 0; i < sample_type_count; i++) {
        for (int how = SAMPLE_MIN; how <= SAMPLE_RANDOM; how++) {
            struct bhi_message m;
            uint8_t bytes[BHI_WIRE_MAX];
            char name[80];
            sample_message(&m, sample_types[i], (enum sample)how, &random);
            int length = bhi_wire_encode(&m, bytes, sizeof bytes);
            if (length < 0) {
                abort();
            }
            snprintf(name, sizeof name, "%s-%s", bhi_message_info(sample_types[i])->name,
                     suffixes[how]);
            write_seed("wire", name, bytes, (size_t)length);
        }
    }
}

static void token(FILE *file, uint64_t value, size_t width) {
    fputc('"', file);
    for (size_t i = 0; i < width; i++) {
        fprintf(file, "\\x%02x", (unsigned)(value >> (8 * i)) & 0xff);
    }
    fputs("\"\n", file);
}

static void wire_dictionary(void) {
    FILE *f = create("wire.dict", NULL);
    token(f, BHI_WIRE_MAGIC, 4);
#define EDGE_U32(name, min, max, doc) token(f, min, 4), token(f, max, 4);
#define EDGE_U64(name, min, max, doc) token(f, min, 8), token(f, max, 8);
#define EDGE_I32(name, min, max, doc)                                                              \
    token(f, (uint64_t)(int64_t)(min), 4), token(f, (uint64_t)(int64_t)(max), 4);
#define EDGE_BLOB(name, length, doc)   token(f, length, 4);
#define EDGE_TEXT(name, capacity, doc) token(f, (capacity) - 1, 4);
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc)                                 \
    token(f, type | BHI_WIRE_VERSION << 16, 4);                                                    \
    BHI_FIELDS_##NAME(EDGE_U32, EDGE_U64, EDGE_I32, EDGE_BLOB, EDGE_TEXT)
#include "ipc/messages.def"
    finish(f);
}

/* -- record -------------------------------------------------------------------------------- */

struct record {
    _Alignas(8) uint8_t bytes[16384];
    size_t size;
};

static void *append(struct record *r, uint16_t type, size_t size) {
    struct bhi_cmd_header *header = (void *)(r->bytes + r->size);
    *header = (struct bhi_cmd_header){.type = type, .size = (uint32_t)size};
    r->size += size;
    ((struct bhi_lane_record *)r->bytes)->command_count++;
    return header;
}

static void append_dispatch(struct record *r, uint32_t bindings, uint32_t push) {
    struct bhi_cmd_dispatch *d = append(r, BHI_CMD_DISPATCH, bhi_cmd_dispatch_size(bindings, push));
    d->kernel = 1;
    d->groups_x = d->groups_y = d->groups_z = 1;
    d->binding_count = bindings;
    d->push_size = push;
    struct bhi_cmd_binding *b = (void *)(d + 1);
    for (uint32_t i = 0; i < bindings; i++) {
        b[i] = (struct bhi_cmd_binding){.buffer = i + 1,
                                        .size = 64,
                                        .set = i % 4,
                                        .binding = i / 2,
                                        .access = 1 + i % 3,
                                        .element = i % 2};
    }
}

static void append_one(struct record *r, uint32_t type) {
    if (type == BHI_CMD_DISPATCH) {
        append_dispatch(r, 2, 12);
    } else if (type == BHI_CMD_COPY) {
        struct bhi_cmd_copy *c = append(r, BHI_CMD_COPY, sizeof *c);
        c->src = 1;
        c->dst = 2;
        c->bytes = 64;
    } else if (type == BHI_CMD_FILL) {
        struct bhi_cmd_fill *c = append(r, BHI_CMD_FILL, sizeof *c);
        c->dst = 2;
        c->bytes = 64;
    } else if (type == BHI_CMD_PREPARE) {
        struct bhi_cmd_prepare *c = append(r, BHI_CMD_PREPARE, sizeof *c);
        c->kernel = 1;
    } else if (type == BHI_CMD_INSPECT) {
        struct bhi_cmd_inspect *c = append(r, BHI_CMD_INSPECT, sizeof *c);
        c->file = 1;
        c->answer = 2;
        c->room = 3;
    } else if (type == BHI_CMD_LOAD) {
        struct bhi_cmd_load *c = append(r, BHI_CMD_LOAD, sizeof *c);
        c->file = 1;
        c->buffer = 2;
        c->bytes = 64;
    } else if (type == BHI_CMD_COMPILE) {
        struct bhi_cmd_compile *c = append(r, BHI_CMD_COMPILE, sizeof *c);
        c->source = 1;
        c->answer = 2;
    } else if (type == BHI_CMD_REFLECT) {
        struct bhi_cmd_reflect *c = append(r, BHI_CMD_REFLECT, sizeof *c);
        c->source = 1;
        c->answer = 2;
    } else {
        fprintf(stderr, "make_corpus: command %u has no seed\n", type);
        exit(1);
    }
}

static void begin(struct record *r) {
    memset(r, 0, sizeof *r);
    *(struct bhi_lane_record *)r->bytes = (struct bhi_lane_record){.seq = 1, .control_seq = 2};
    r->size = sizeof(struct bhi_lane_record);
}

static void write_record(struct record *r, const char *name) {
    ((struct bhi_lane_record *)r->bytes)->size = r->size;
    char why[160];
    if (bhi_record_check((const void *)r->bytes, r->size, why, sizeof why)) {
        fprintf(stderr, "make_corpus: %s: %s\n", name, why);
        exit(1);
    }
    write_seed("record", name, r->bytes, r->size);
}

static void record_seeds(void) {
    static struct record r;
    make_folder("record");
#define BHI_COMMAND(name, NAME, type, doc)                                                         \
    begin(&r);                                                                                     \
    append_one(&r, type);                                                                          \
    write_record(&r, #name);
#include "ipc/commands.def"
    begin(&r);
#define BHI_COMMAND(name, NAME, type, doc) append_one(&r, type);
#include "ipc/commands.def"
    write_record(&r, "all");
    begin(&r);
    append_dispatch(&r, 256, 4096);
    write_record(&r, "dispatch-max");
    begin(&r);
    append_dispatch(&r, 0, 0);
    write_record(&r, "dispatch-min");
}

static void record_dictionary(void) {
    FILE *f = create("record.dict", NULL);
#define CMD_U64(name, min, max, doc) token(f, min, 8), token(f, max, 8);
#define CMD_U32(name, min, max, doc) token(f, min, 4), token(f, max, 4);
#define BHI_COMMAND(name, NAME, type, doc)                                                         \
    token(f, type | (uint64_t)sizeof(struct bhi_cmd_##name) << 32, 8);                             \
    BHI_COMMAND_FIELDS_##NAME(CMD_U64, CMD_U32)
#include "ipc/commands.def"
    finish(f);
}

/* -- safetensors ---------------------------------------------------------------------------- */

static void write_tensors(const char *name, const char *header, size_t data) {
    uint8_t bytes[4096] = {0};
    size_t length = strlen(header);
    bytes[0] = (uint8_t)length;
    bytes[1] = (uint8_t)(length >> 8);
    memcpy(bytes + 8, header, length);
    write_seed("safetensors", name, bytes, 8 + length + data);
}

static void safetensors_seeds(void) {
    make_folder("safetensors");
    write_tensors("one", "{\"t\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", 24);
    write_tensors("two",
                  "{\"__metadata__\":{\"format\":\"pt\"},"
                  "\"a\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
                  "\"t\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[8,16]}}  ",
                  16);
    write_tensors("empty", "{\"t\":{\"dtype\":\"U8\",\"shape\":[0,7],\"data_offsets\":[0,0]}}", 0);
    write_tensors("none", "{}", 0);
    write_tensors("overlap",
                  "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                  "\"u\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
                  6);
    write_tensors("huge",
                  "{\"t\":{\"dtype\":\"F64\",\"shape\":[9223372036854775807,9],"
                  "\"data_offsets\":[0,18446744073709551615]}}",
                  8);
    write_tensors("deep", "{\"t\":[[[[[[[[[[[[]]]]]]]]]]]]}", 0);
    write_tensors("twice", "{\"t\":{},\"t\":{}}", 0);
}

static void safetensors_dictionary(void) {
    static const char *const words[] = {
        "dtype", "shape", "data_offsets", "__metadata__", "F16",     "F32",     "F64",  "I8",
        "U8",    "I16",   "U16",          "I32",          "U32",     "I64",     "U64",  "BF16",
        "BOOL",  "t",     "[]",           "{}",           "F8_E4M3", "F8_E5M2", "[0,8]"};
    FILE *f = create("safetensors.dict", NULL);
    put_words(f, words, sizeof words / sizeof words[0]);
    finish(f);
}

/* -- image ------------------------------------------------------------------------------------ */

static void image_seeds(void) {
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr segment;
        Elf64_Shdr sections[2];
        char code[64];
    } elf = {
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                   .e_machine = 190,
                   .e_phoff = sizeof elf.header,
                   .e_phentsize = sizeof elf.segment,
                   .e_phnum = 1,
                   .e_shoff = sizeof elf.header + sizeof elf.segment,
                   .e_shentsize = sizeof elf.sections[0],
                   .e_shnum = 2},
        .segment = {.p_type = PT_LOAD, .p_filesz = sizeof elf},
        .sections = {[1] = {.sh_type = SHT_PROGBITS,
                            .sh_offset = sizeof elf - sizeof elf.code,
                            .sh_size = sizeof elf.code}},
    };
    static const uint32_t fatbin[] = {0xba55ed50u, 16u << 16 | 1, 16, 0, 1, 2, 3, 4};
    static const char ptx[] =
        ".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry f()\n{ ret; }\n";
    make_folder("image");
    write_seed("image", "elf", &elf, sizeof elf);
    write_seed("image", "fatbin", fatbin, sizeof fatbin);
    write_seed("image", "ptx", ptx, sizeof ptx);
    FILE *dict = create("image.dict", NULL);
    fputs("\"\\x7fELF\"\n\"\\x50\\xed\\x55\\xba\"\n\".version\"\n", dict);
    finish(dict);
}

/* -- npy -------------------------------------------------------------------------------------- */

static void write_npy(const char *name, uint8_t version, const char *header) {
    uint8_t bytes[512] = "\x93NUMPY";
    size_t length = strlen(header), at = version > 1 ? 12 : 10;
    bytes[6] = version;
    bytes[8] = (uint8_t)length;
    bytes[9] = (uint8_t)(length >> 8);
    memcpy(bytes + at, header, length);
    write_seed("npy", name, bytes, at + length);
}

/* A .npz with the array "x" of no elements, whose extra fields are those of zip64. */
static void write_npz(void) {
    static const char header[] = "\x93NUMPY\1\0\x40\0{'descr': '<f4', 'fortran_order': False, "
                                 "'shape': (0,), }         \n",
                      local[] = "PK\3\4\x2d\0\0\0\0\0\0\0!\0\0\0\0\0J\0\0\0J\0\0\0\5\0\0\0x.npy",
                      entry[] =
                          "PK\1\2\x2d\3\x2d\0\0\0\0\0\0\0!\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff"
                          "\xff\5\0\x1c\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xffx.npy\1\0\x18\0J\0\0\0"
                          "\0\0\0\0J\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                      end[] = "PK\5\6\0\0\0\0\1\0\1\0O\0\0\0m\0\0\0\0\0";
    uint8_t bytes[256];
    size_t at = 0;
    const struct {
        const char *bytes;
        size_t size;
    } parts[] = {{local, sizeof local - 1},
                 {header, sizeof header - 1},
                 {entry, sizeof entry - 1},
                 {end, sizeof end - 1}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        memcpy(bytes + at, parts[i].bytes, parts[i].size);
        at += parts[i].size;
    }
    write_seed("npy", "archive", bytes, at);
}

static void npy_seeds(void) {
    make_folder("npy");
    write_npy("one", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n");
    write_npy("two", 2, "{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n");
    write_npy("three", 3, "{'shape':(7,),'fortran_order':False,'descr':'|u1'}\n");
    write_npy("fortran", 1, "{'descr': '<f8', 'fortran_order': True, 'shape': (4, 3, 2), }\n");
    write_npy("empty", 1, "{'descr': '<f2', 'fortran_order': False, 'shape': (0, 9), }\n");
    write_npy("huge", 1,
              "{'descr': '<u8', 'fortran_order': False, "
              "'shape': (9223372036854775807, 18446744073709551615, 9), }\n");
    write_npy("fields", 1,
              "{'descr': [('a', '<f4'), ('b', '>i2', (3,))], 'fortran_order': False, "
              "'shape': (1,), }\n");
    write_npy("twice", 1, "{'descr': '<f4', 'descr': '>f4', 'shape': (1,), }\n");
    write_npz();
}

static void npy_dictionary(void) {
    static const char *const words[] = {"'descr'", "'fortran_order'",
                                        "'shape'", "False",
                                        "True",    "'<f4'",
                                        "'|u1'",   "'>i2'",
                                        "(",       ")",
                                        ",",       "'|O'",
                                        "'<c8'",   "{",
                                        "}"};
    FILE *f = create("npy.dict", NULL);
    put_words(f, words, sizeof words / sizeof words[0]);
    fputs("\"\\x93NUMPY\"\n", f);
    finish(f);
}

/* -- expression ------------------------------------------------------------------------------- */

static void expression_seeds(void) {
    static const char *const seeds[] = {
        "z = 2*x + y",
        "t = x > 0 ? x : 0.1*x; z = sqrt(t) # a comment",
        "z = x // 3 % y & 7 | x ^ ~y << 2 >> 1\nw = !(x < y) && x != 0 || isnan(x)",
        "q = i8(clamp(round(x / 0.1), -128, 127)); z = mix(x, y, 0.5) + smoothstep(0, 1, x)",
        "z = pow(x, 3) + abs(-x) + sign(x) + min(x, max(y, 2)) + f16(x) * f64(y) + u64(x)",
        "x = x + 1; z = pi * x + inf - nan + (true ? 0x10 : 1e-3)",
        "e = exp(x - max(x, axis=-1, keepdims=1)); z = e / sum(e, axis=(0, -1)) + argmin(\nx)",
        "z = sum(x, parts=-7); w = where(any(x), mean(x, axis=()), prod(x, axis=None))",
        "z = 18446744073709551615 > x == (y <= -9223372036854775807 - 1)",
    };
    make_folder("expression");
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        char name[16], text[256];
        snprintf(name, sizeof name, "%zu", i);
        const int length = snprintf(text, sizeof text, "%c%s", (char)('a' + i), seeds[i]);
        write_seed("expression", name, text, (size_t)length);
    }
}

static void expression_dictionary(void) {
    static const char *const words[] = {
        "==",       "!=",         "<=",       ">=",
        "&&",       "||",         "//",       "<<",
        ">>",       "? x :",      "sin(",     "atan(x,",
        "pow(x,",   "clamp(x,0,", "mix(x,y,", "smoothstep(0,1,",
        "step(",    "mod(",       "fract(",   "sign(",
        "isinf(",   "f16(",       "f64(",     "i8(",
        "u8(",      "i64(",       "u64(",     "bool(",
        "radians(", "trunc(",     "true",     "nan",
    };
    FILE *f = create("expression.dict", NULL);
    put_words(f, words, sizeof words / sizeof words[0]);
    finish(f);
}

/* -- pipeline caches -------------------------------------------------------------------------- */

static void cache_envelope_seeds(void) {
    static const uint8_t identity[BHI_ENVELOPE_IDENTITY] = {9};
    uint8_t file[BHI_ENVELOPE_HEADER + 64];
    make_folder("cache_envelope");
    for (size_t bytes = 0; bytes <= 64; bytes += 32) {
        char name[16];
        memset(file, (int)bytes, sizeof file);
        bhi_envelope_seal(file, identity, file + BHI_ENVELOPE_HEADER, bytes);
        snprintf(name, sizeof name, "%zu", bytes);
        write_seed("cache_envelope", name, file, BHI_ENVELOPE_HEADER + bytes);
    }
}

static void cache_envelope_dictionary(void) {
    FILE *f = create("cache_envelope.dict", NULL);
    fputs("\"BHCACHE\\x0a\"\n", f);
    finish(f);
}

/* -- guard ------------------------------------------------------------------------------------ */

static void copy_module(const char *from, const char *name) {
    char path[4096];
    uint8_t bytes[16384];
    snprintf(path, sizeof path, "%s/%s", from, name);
    FILE *file = fopen(path, "rbe");
    if (!file) {
        perror(path);
        exit(1);
    }
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    if (size < sizeof bytes) { /* larger ones are too slow to be mutated */
        write_seed("guard", name, bytes, size);
    }
}

static void guard_seeds(char **folders, int count) {
    make_folder("guard");
    for (int i = 0; i < count; i++) {
        DIR *directory = opendir(folders[i]);
        if (!directory) {
            perror(folders[i]);
            exit(1);
        }
        for (struct dirent *entry; (entry = readdir(directory));) {
            const size_t length = strlen(entry->d_name);
            if (length > 4 && strcmp(entry->d_name + length - 4, ".spv") == 0) {
                copy_module(folders[i], entry->d_name);
            }
        }
        closedir(directory);
    }
}

/* First words of instructions: control flow, pointers, what the guard looks for. */
static void guard_dictionary(void) {
    static const uint32_t words[] = {0x000100fd, 0x000200f9, 0x000400fa, 0x000400f6, 0x000300f7,
                                     0x000200f8, 0x000100ff, 0x00050041, 0x00060041, 0x00040020,
                                     0x0004002b, 0x0003003e, 0x0004003d, 0x00040039, 0x0004003b,
                                     0x000300e0, 0x000700f5, 0x000500b0, 0x000500ae, 0x00050080};
    FILE *f = create("guard.dict", NULL);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        fprintf(f, "\"\\x%02x\\x%02x\\x%02x\\x%02x\"\n", words[i] & 255, words[i] >> 8 & 255,
                words[i] >> 16 & 255, words[i] >> 24);
    }
    finish(f);
}

/* -- what a compiler says of a module --------------------------------------------------------- */

static void inspection_seeds(void) {
    static struct bhi_inspection one;
    make_folder("inspection");
    one.spirv_version = 0x103;
    one.local_size[0] = one.local_size[1] = one.local_size[2] = 1;
    one.entries = 1;
    strcpy(one.entry[0], "main");
    write_seed("inspection", "none", (const uint8_t *)&one, 2048);
    one.bindings = 2;
    for (uint32_t i = 0; i < 2; i++) {
        one.binding[i] = (struct bhi_inspected_binding){
            .binding = i, .kind = 1 + i, .access = 1, .count = 1 + i};
        strcpy(one.binding[i].type, "f32[]");
        strcpy(one.binding[i].name, "x");
    }
    write_seed("inspection", "two", (const uint8_t *)&one, 2048);
}

static void inspection_dictionary(void) {
    FILE *f = create("inspection.dict", NULL);
    static const uint32_t counts[] = {
        0, 1, 2, 3, BHI_INSPECT_ENTRIES, BHI_INSPECT_BINDINGS, BHI_INSPECT_MEMBERS, 255, 257};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        token(f, counts[i], 4);
    }
    finish(f);
}

/* -- job -------------------------------------------------------------------------------------- */

static void job_seeds(void) {
    static const char *const seeds[] = {
        "{\"id\":\"j1\",\"kernel\":\"k.spv\",\"groups\":[4,1,1]}",
        "{\"id\":\"j1\",\"kernel\":\"k.spv\",\"groups\":[4],\"in\":{\"0\":\"x.npy\",\"1.2\":"
        "\"m.safetensors:w\"},\"out\":{\"1\":\"y.npy:u32[256]\"},\"inout\":{\"2\":\"z.npy\"}}",
        "{\"id\":\"j2\",\"kernel\":\"k.comp\",\"groups\":\"4,2\",\"push\":\"u32:256,7\",\"spec\":"
        "{\"0\":\"f32:1.0\"},\"D\":{\"N\":\"4\",\"F\":null},\"I\":[\"inc\"],\"entry\":\"main\"}",
        "{\"id\":\"\\u00e4\",\"kernel\":\"k\",\"groups\":[1],\"deadline\":\"500ms\",\"retries\":2,"
        "\"priority\":-1,\"depends_on\":[\"j0\",\"j1\"],\"trusted\":true}",
    };
    write_texts("job", seeds, sizeof seeds / sizeof seeds[0]);
}

static void job_dictionary(void) {
    static const char *const words[] = {
        "id",   "kernel", "groups", "in",      "out",           "inout",   "push",     "spec",
        "D",    "I",      "entry",  "trusted", "deadline",      "retries", "priority", "depends_on",
        "null", "true",   "false",  ".npy",    ".safetensors:", "u32[1]",  "f32:",     "\\\\u0000",
        "ms",   "none",   "grid",   "block",   "shared",
    };
    FILE *f = create("job.dict", NULL);
    put_words(f, words, sizeof words / sizeof words[0]);
    finish(f);
}

/* -- plan ------------------------------------------------------------------------------------- */

static void plan_seeds(void) {
    static const char *const seeds[] = {
        "// a\n// bulkhead: {\"kernels\": [{\"D\": {\"PASS\": 1}, \"groups\": [\"ceildiv(n, "
        "local_x)\"]}, {}], "
        "\"scratch\": {\"T\": {\"dtype\": \"i32\", \"shape\": [\"n\", 2]}}}\n#version 450\n",
        "{\"kernel\": \"lib/a.comp\", \"groups\": [4, 1, \"m\"], \"I\": [\"lib\"], \"spec\": "
        "{\"0\": "
        "\"u32:64\"}}",
        "{\"kernels\": [{\"source\": \"void main\", \"entry\": \"go\", \"language\": \"hlsl\", "
        "\"D\": "
        "{\"A\": \"1\", \"B\": true, \"C\": 0.5}}], \"scratch\": {\"0.1\": {\"dtype\": \"f16\", "
        "\"shape\": "
        "[\"max(n, 3)\"]}}}",
        "// bulkhead: block=16,16 shared=9 entry=s<float> grid=ceildiv(n,9),m parameters=X,n\n",
        "block=256 parameters=X,Y",
    };
    write_texts("plan", seeds, sizeof seeds / sizeof seeds[0]);
}

static void plan_dictionary(void) {
    static const char *const words[] = {
        "kernels",   "kernel", "source",  "entry", "language", "groups",  "D",
        "spec",      "I",      "scratch", "dtype", "shape",    "glsl",    "u32:",
        "ceildiv",   "max(",   "min(",    "n",     "m",        "local_x", "// bulkhead:",
        "\\\\u0000", "true",   "i32",     "X",     "block",    "grid=",   "parameters",
        "shared",
    };
    FILE *f = create("plan.dict", NULL);
    put_words(f, words, sizeof words / sizeof words[0]);
    finish(f);
}

/* -- ptx -------------------------------------------------------------------------------------- */

static void ptx_seeds(void) {
    static const char *const seeds[] = {
        "// a\n.version 9.0\n.target sm_75\n.address_size 64\n/* .entry b */\n"
        ".visible .entry _Z5saxpyPKfPf(\n\t.param .u64 .ptr .global .align 16 p0,\n"
        "\t.param .f32 p1, .param .align 8 .b8 p2[16]\n)\n.maxntid 64, 1, 1\n"
        ".minnctapersm 2\n{\n\tret;\n}\n",
        ".entry a()\n.reqntid 32\n{ ret; }\n.entry b { ret; }\n.file 1 \"x.cu\"\n",
    };
    write_texts("ptx", seeds, sizeof seeds / sizeof seeds[0]);
}

static void ptx_dictionary(void) {
    static const char *const words[] = {
        ".entry", ".param", ".align", ".ptr", ".u64", ".f32", ".b8", ".reqntid", ".maxntid",
        "_Z5",    "saxpy",  "(",      ")",    "[16]", "//",   "/*",  "*/",       ",",
    };
    FILE *f = create("ptx.dict", NULL);
    put_words(f, words, sizeof words / sizeof words[0]);
    finish(f);
}

/* -- history ---------------------------------------------------------------------------------- */

#define HISTORY_HEADER                                                                             \
    "{\"bulkhead_chaos\":1,\"version\":\"0.1.0\",\"seed\":\"18446744073709551615\",\"duration_"    \
    "ns\":"                                                                                        \
    "60000000000,\"faults_asked\":0,\"streams\":2,\"faults\":[\"kill\",\"hang\",\"full\"],"        \
    "\"rate\":20.0,"                                                                               \
    "\"outside\":false,\"accelerator\":false,\"patience_ns\":30000000000,\"recovery_ns\":"         \
    "20000000000,\"device\":\"a:"                                                                  \
    "0\","                                                                                         \
    "\"driver\":\"b\"}\n"
#define HISTORY_OP(op, stream, event, bait, inputs)                                                \
    "{\"kind\":\"op\",\"at_ns\":10,\"op\":" op ",\"stream\":" stream ",\"event\":" event           \
    ",\"bait\":" bait ",\"inputs\":[" inputs                                                       \
    "],\"wait\":0,\"reuses\":0,\"deadline_ns\":2000000000,\"words\":4,"                            \
    "\"multiplier\":3,\"addend\":5,\"shift\":7,\"rounds\":1}\n"
#define HISTORY_END(op, state, status, executed, signal, pid, origin, hops)                        \
    "{\"kind\":\"end\",\"at_ns\":40,\"op\":" op ",\"lost\":false,\"state\":\"" state               \
    "\",\"status\":\"" status "\",\"executed\":\"" executed "\",\"signal\":" signal                \
    ",\"worker_pid\":" pid ",\"origin\":" origin ",\"hops\":" hops                                 \
    ",\"submitted_ns\":10,\"started_ns\":20,\"ended_ns\":30,\"blame\":\"none\",\"changed\":false}" \
    "\n"
#define HISTORY_FAULT(op, number, kind, pids)                                                      \
    "{\"kind\":\"fault\",\"at_ns\":25,\"op\":" op ",\"stream\":0,\"number\":" number               \
    ",\"fault\":\"" kind "\",\"outside\":false,\"missed\":false,\"pids\":[" pids                   \
    "],\"after_op\":2,\"lasts_ns\":5}\n"
#define HISTORY_SAMPLE                                                                             \
    "{\"kind\":\"sample\",\"at_ns\":50,\"descriptors\":20,\"processes\":4,\"files\":3,\"rss_"      \
    "bytes\":"                                                                                     \
    "8000000,\"idle\":true}\n"

#define HISTORY_ATTEMPT(op, request)                                                               \
    "{\"kind\":\"attempt\",\"at_ns\":10,\"op\":" op ",\"request\":" request                        \
    ",\"once\":true,\"expects\":true,\"expected\":\"00112233445566778899aabbccddeeff\"}\n"
#define HISTORY_RESULT(op)                                                                         \
    "{\"kind\":\"result\",\"at_ns\":41,\"op\":" op                                                 \
    ",\"status\":\"OK\",\"digest\":\"00112233445566778899aabbccddeeff\"}\n"
#define HISTORY_ANSWER(request, good)                                                              \
    "{\"kind\":\"answer\",\"at_ns\":45,\"request\":" request ",\"good\":" good "}\n"

static void history_seeds(void) {
    static const char *const seeds[] = {
        HISTORY_HEADER "{\"kind\":\"complete\"}\n",
        HISTORY_HEADER HISTORY_OP("1", "0", "3", "false", "")
            HISTORY_OP("2", "1", "4", "false", "1") HISTORY_FAULT("0", "1", "kill", "100")
                HISTORY_END("1", "poisoned", "WORKER_SIGNAL", "unknown", "9", "100", "3", "0")
                    HISTORY_END("2", "poisoned", "WORKER_SIGNAL", "no", "9", "100", "3", "1")
                        HISTORY_SAMPLE HISTORY_SAMPLE "{\"kind\":\"complete\"}\n",
        HISTORY_HEADER HISTORY_OP("1", "0", "3", "true", "") HISTORY_FAULT("1", "1", "hang", "")
            HISTORY_END("1", "poisoned", "DEADLINE", "unknown", "0", "100", "3", "0")
                HISTORY_OP("2", "0", "4", "false", "") HISTORY_END(
                    "2", "ready", "OK", "yes", "0", "100", "4",
                    "0") "{\"kind\":\"result\",\"at_ns\":41,\"op\":2,\"status\":\"OK\",\"digest\":"
                         "\"00112233445566778899aabbccddeeff\"}\n" HISTORY_SAMPLE HISTORY_SAMPLE
                         "{\"kind\":\"complete\"}\n",
        HISTORY_HEADER HISTORY_FAULT(
            "0", "1", "full",
            "") "{\"kind\":\"refused\",\"at_ns\":26,\"op\":1,\"stream\":0,\"status\":\"NO_MEMORY\","
                "\"call\":"
                "\"bh_buffer_create\"}\n{\"kind\":\"healed\",\"at_ns\":30,\"number\":1}\n"
                "{\"kind\":\"stall\",\"at_ns\":31,\"lasted_ns\":250000000}\n"
                "{\"kind\":\"stall\",\"at_ns\":32,\"lasted_ns\":9,\"pid\":7}\n{\"kind\":"
                "\"overflow\"}"
                "\n",
        HISTORY_HEADER HISTORY_ATTEMPT("3", "1")
            HISTORY_END("3", "ready", "OK", "yes", "0", "100", "3", "0") HISTORY_RESULT("3")
                HISTORY_ANSWER("1", "true") HISTORY_ATTEMPT("4", "2")
                    HISTORY_END("4", "poisoned", "WORKER_SIGNAL", "unknown", "9", "100", "4", "0")
                        HISTORY_ATTEMPT("5", "2") HISTORY_ANSWER("2", "false")
                            HISTORY_SAMPLE HISTORY_SAMPLE "{\"kind\":\"complete\"}\n",
    };
    write_texts("history", seeds, sizeof seeds / sizeof seeds[0]);
}

static void history_dictionary(void) {
    static const char *const words[] = {
        "kind",        "op",          "end",     "result", "fault",   "healed",   "sample",
        "stall",       "refused",     "inputs",  "wait",   "reuses",  "true",     "false",
        "ready",       "poisoned",    "pending", "lost",   "pids",    "zygote",   "garbage",
        "oom",         "slow",        "stop",    "origin", "hops",    "complete", "overflow",
        "attempt",     "answer",      "request", "once",   "expects", "DEADLINE", "WORKER_LOST",
        "ZYGOTE_LOST", "UNAVAILABLE",
    };
    FILE *f = create("history.dict", NULL);
    put_words(f, words, sizeof words / sizeof words[0]);
    finish(f);
}

/* -- feed ------------------------------------------------------------------------------------- */

#define FEED_HEAD                                                                                  \
    "{\"feed\":1,\"batch\":\"0f1e\",\"host\":\"n1\",\"pid\":7,\"began\":1700000000000000000}\n"
#define FEED_JOB(job, id, state)                                                                   \
    "{\"job\":" job ",\"id\":\"" id "\",\"line\":3,\"kernel\":\"k.spv\",\"state\":" state "}\n"

static void feed_seeds(void) {
    static const char *const seeds[] = {
        FEED_HEAD "{\"end\":1700000000000000009}\n",
        FEED_HEAD FEED_JOB("1", "a", "0") FEED_JOB(
            "2", "b",
            "3") "{\"job\":1,\"attempt\":1,\"given\":1,\"stream\":2,\"started\":5,\"host\":\"n2\","
                 "\"state\":2,\"attempts\":1}\n"
                 "{\"job\":1,\"attempt\":1,\"ended\":9,\"blamed\":1,\"status\":35,\"executed\":1,"
                 "\"signal\":9,\"exit\":-1,\"worker\":70,\"limit\":5,\"blame\":2,\"kernel_name\":"
                 "\"k\","
                 "\"message\":\"it ended\",\"on\":\"a:0\",\"state\":5,\"guilty\":3,\"verdict\":1,"
                 "\"at\":9}\n"
                 "{\"job\":2,\"state\":4,\"origin\":1,\"at\":9}\n{\"end\":10}\n",
        FEED_HEAD FEED_JOB("1", "a",
                           "0") "{\"job\":9,\"state\":1}\nno line\n{\"later\":true}\n{\"job",
    };
    write_texts("feed", seeds, sizeof seeds / sizeof seeds[0]);
}

static void feed_dictionary(void) {
    static const char *const words[] = {
        "feed",     "batch",  "host",    "pid",         "began",    "end",    "job",
        "id",       "line",   "kernel",  "eval",        "device",   "state",  "attempt",
        "attempts", "guilty", "verdict", "origin",      "at",       "given",  "stream",
        "started",  "ended",  "blamed",  "status",      "executed", "signal", "exit",
        "worker",   "limit",  "blame",   "kernel_name", "message",  "on",
    };
    FILE *f = create("feed.dict", NULL);
    put_words(f, words, sizeof words / sizeof words[0]);
    finish(f);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s FOLDER [KERNELS...]\n", argv[0]);
        return 2;
    }
    folder = argv[1];
    if (mkdir(folder, 0777) && errno != EEXIST) {
        perror(folder);
        return 1;
    }
    wire_seeds();
    wire_dictionary();
    record_seeds();
    record_dictionary();
    safetensors_seeds();
    safetensors_dictionary();
    image_seeds();
    npy_seeds();
    npy_dictionary();
    expression_seeds();
    expression_dictionary();
    cache_envelope_seeds();
    cache_envelope_dictionary();
    guard_seeds(argv + 2, argc - 2);
    guard_dictionary();
    inspection_seeds();
    inspection_dictionary();
    job_seeds();
    job_dictionary();
    plan_seeds();
    plan_dictionary();
    ptx_seeds();
    ptx_dictionary();
    history_seeds();
    history_dictionary();
    feed_seeds();
    feed_dictionary();
    return 0;
}
