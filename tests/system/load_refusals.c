/* Buffers from files: what is refused and how that is told, and what is right. */
#include "files.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static bh_detail refused(bh_context *context, const bh_file_source *source, bh_status status,
                         const char *words) {
    return fx_no_buffer(context, 0, (bh_buffer_options){.file = source}, status, words);
}

/* -- what there is to refuse ------------------------------------------------------------------ */

TEST(no_regular_file) {
    bh_context *context = fx_context(NULL);
    enter_folder();
    static const struct {
        const char *path, *words;
        int error;
    } cases[] = {
        {"missing", "bh_buffer_create: missing: No such file or directory", ENOENT},
        {"folder", "folder: it is a directory", 0},
        {"fifo", "fifo: it is a FIFO, not a regular file", 0},
        {"socket", "socket: ", 0},
        {"link", "link: No such file", ENOENT},
        {"loop", "loop: Too many levels of symbolic links", ELOOP},
        {"file/below", "file/below: Not a directory", ENOTDIR},
        {"/dev/zero", "/dev/zero: it is a device, not a regular file", 0},
        {"/proc/self/maps", "/proc/self/maps: its file system generates the content on reading", 0},
        {"/proc/cpuinfo", "generates the content on reading", 0},
        {"/sys/kernel/mm/transparent_hugepage/enabled", "/enabled: ", 0},
    };
    BHT_EQ(mkdir("folder", 0700), 0);
    BHT_EQ(mkfifo("fifo", 0600), 0);
    BHT_EQ(symlink("missing", "link"), 0);
    BHT_EQ(symlink("loop", "loop"), 0);
    fx_write_file("file", "x", 1);
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    BHT_EQ(bind(socket_fd, (const struct sockaddr *)&address, sizeof address), 0);
    for (bh_file_format format = BH_FILE_RAW; format <= BH_FILE_SAFETENSORS; format++) {
        for (size_t i = 0; i < BHT_COUNT(cases); i++) {
            bh_file_source source =
                source_of(cases[i].path, format, format == BH_FILE_SAFETENSORS ? "t" : NULL);
            bh_detail detail = refused(context, &source, BH_LOAD_FAILED, "bh_buffer_create: ");
            BHT_EQ(detail.reason, strstr(cases[i].words, ", not a regular file")
                                      ? BH_REASON_NOT_REGULAR
                                      : BH_REASON_FILE);
            BHT_STR_HAS(detail.message,
                        format == BH_FILE_SAFETENSORS ? ", tensor 't': " : cases[i].words);
            if (cases[i].error) {
                BHT_EQ(detail.sys_errno, cases[i].error);
            }
        }
    }
    close(socket_fd);
}

TEST(descriptors) {
    bh_context *context = fx_context(NULL);
    enter_folder();
    fx_write_file("file", "0123456789", 10);
    bh_file_source source = source_of(NULL, BH_FILE_RAW, NULL);
    source.fd = -1;
    refused(context, &source, BH_INVALID_ARGUMENT, "file.fd is not a descriptor");
    source.fd = 987;
    refused(context, &source, BH_LOAD_FAILED, "descriptor 987: Bad file descriptor");
    int pair[2];
    BHT_EQ(pipe2(pair, O_CLOEXEC), 0);
    source.fd = pair[0];
    refused(context, &source, BH_LOAD_FAILED, "it is a FIFO");
    close(pair[0]);
    close(pair[1]);
    /* What can be written to is opened again, only for reading; its position is its own. */
    source.fd = open("file", O_RDWR | O_CLOEXEC);
    BHT_EQ(lseek(source.fd, 7, SEEK_SET), 7);
    bh_buffer *buffer = fx_load(context, &source);
    BHT_EQ(lseek(source.fd, 0, SEEK_CUR), 7);
    close(source.fd);
    BHT_EQ(bh_buffer_size(buffer), 10);
    BHT_MEM_EQ(fx_mapped(buffer), "0123456789", 10);
    /* A memfd is a file like any other. */
    source.fd = memfd_create("test", MFD_CLOEXEC);
    BHT_EQ(write(source.fd, "memory", 6), 6);
    buffer = fx_load(context, &source);
    close(source.fd);
    BHT_MEM_EQ(fx_mapped(buffer), "memory", 6);
}

/* Where the file cannot be opened again, as by a thread without the right to, a copy of the descriptor
 * does: of one that cannot be written to, which nobody between here and the loader could misuse. */
TEST(a_descriptor_that_cannot_be_opened_again) {
    bh_context *context = fx_context(NULL);
    enter_folder();
    fx_write_file("file", "0123456789", 10);
    const int reads = open("file", O_RDONLY | O_CLOEXEC), writes = open("file", O_RDWR | O_CLOEXEC);
    BHT_TRUE(reads >= 0 && writes >= 0);
    BHT_EQ(chmod("file", 0), 0);
    if (geteuid() == 0) {
        (void)setfsuid(1001); /* whom the mode concerns */
    }
    bh_file_source source = source_of(NULL, BH_FILE_RAW, NULL);
    source.fd = writes;
    const bh_detail detail = refused(context, &source, BH_LOAD_FAILED, "Permission denied");
    BHT_EQ(detail.sys_errno, EACCES);
    source.fd = reads;
    bh_buffer *buffer = fx_load(context, &source);
    BHT_MEM_EQ(fx_mapped(buffer), "0123456789", 10);
    if (geteuid() == 0) {
        (void)setfsuid(0);
    }
    close(reads);
    close(writes);
}

TEST(ranges) {
    bh_context *context = fx_context(NULL);
    enter_folder();
    fx_write_file("file", "0123456789", 10);
    bh_file_source source = source_of("file", BH_FILE_RAW, NULL);
    static const struct {
        uint64_t offset, size;
    } bad[] = {
        {11, 0},
        {0, 11},
        {10, 1},
        {UINT64_MAX, 1},
        {1, UINT64_MAX - 1},
        {UINT64_MAX, 0},
        {1ull << 63, 1ull << 63},
    };
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {
        source.offset = bad[i].offset;
        fx_no_buffer(context, bad[i].size, (bh_buffer_options){.file = &source}, BH_LOAD_FAILED,
                     bad[i].size ? "reach past the end of the file of 10 bytes"
                                 : "is outside the file of 10 bytes");
    }
    source.offset = 10;
    bh_buffer *end = fx_load(context, &source);
    BHT_EQ(bh_buffer_size(end), 0);
    fx_mapped(end);
    source.offset = 3;
    bh_buffer *part = fx_buffer_with(context, 4, (bh_buffer_options){.file = &source});
    BHT_MEM_EQ(fx_mapped(part), "3456", 4);
    bh_array_info info = {.struct_size = sizeof info, .rank = 9};
    BHT_EQ(bh_buffer_array(part, &info, NULL), BH_OK);
    BHT_EQ(info.dtype, BH_DTYPE_NONE);
    BHT_EQ(info.rank, 0);
}

TEST(bad_safetensors) {
    bh_context *context = fx_context(NULL);
    enter_folder();
    static const struct {
        const char *header;
        size_t bytes;
        const char *words;
    } cases[] = {
        {"{" TENSOR("b", "F32", "2", "0,8") "}", 8, "it has no tensor 't'; it has 1: b"},
        {"{" TENSOR("t", "F32", "2", "0,8") "," TENSOR("b", "F32", "2", "4,12") "}", 12,
         "tensors 't' and 'b' overlap at offset 4"},
        {"{" TENSOR("t", "F32", "2", "0,8") "," TENSOR("b", "F32", "2", "12,20") "}", 20,
         "tensor 'b': the 4 bytes before its offset 12 belong to no tensor"},
        {"{" TENSOR("t", "F32", "2", "0,8") "}", 7,
         "tensor 't': its data_offsets, 0 and 8, are not a range of the 7 bytes of data"},
        {"{" TENSOR("t", "F32", "2", "8,0") "}", 8,
         "tensor 't': its data_offsets, 8 and 0, are not a range"},
        {"{" TENSOR("t", "F32", "2", "0,8") "}", 9,
         "the tensors end at offset 8, but the file's data ends at 9"},
        {"{" TENSOR("t", "F32", "3", "0,8") "}", 8,
         "tensor 't': its dtype and shape need 12 bytes, but its data_offsets, 0 and 8, hold 8"},
        {"{" TENSOR("t", "C64", "1", "0,8") "}", 8, "tensor 't': dtype 'C64' is not supported"},
        {"{" TENSOR("t", "F32", "2", "0,8") "," TENSOR("t", "F32", "2", "0,8") "}", 8, "duplicate"},
        {"{" TENSOR("t", "F32", "9223372036854775807,2", "0,8") "}", 8,
         "tensor 't': more bytes than 64 bits can count"},
        {"{" TENSOR("t", "U8", "9223372036854775807,3", "0,8") "}", 8,
         "tensor 't': the shape has more elements than 64 bits can count"},
        {"{" TENSOR("t", "U8", "9223372036854775808", "0,8") "}", 8, "too big"},
        {"{" TENSOR("t", "U8", "0,9223372036854775807,9223372036854775807", "0,0") "}", 0,
         "the shape has more elements than 64 bits can count"},
        {"{" TENSOR("t", "U8", "-1", "0,8") "}", 8,
         "tensor 't': shape[0] is not a whole number from 0 on"},
        {"{" TENSOR("t", "U8", "8.0", "0,8") "}", 8,
         "tensor 't': shape[0] is not a whole number from 0 on"},
        {"{" TENSOR("t", "U8", "8", "0,8,9") "}", 8, "'data_offsets' is not an array of two"},
        {"{" TENSOR("t", "U8", "8", "\"0\",8") "}", 8, "'data_offsets' is not an array of two"},
        {"{\"t\":{\"dtype\":\"U8\",\"shape\":[8]}}", 8, "tensor 't': its entry has 2 keys"},
        {"{\"t\":[]}", 8, "tensor 't': its entry is not an object"},
        {"{\"t\":{\"dtype\":8,\"shape\":[8],\"data_offsets\":[0,8]}}", 8,
         "'dtype' is missing, or not a string"},
        {"{\"__metadata__\":{\"t\":1}," TENSOR("t", "U8", "8", "0,8") "}", 8,
         "'__metadata__': 't' is not a string"},
        {"[]", 0, "the header is not a JSON object"},
        {"{\"t\":[[[[[[[[[[]]]]]]]]]]}", 0, "the header is nested more than 8 deep"},
        {"{", 0, "the header is not valid JSON"},
        {"{}x", 0, "the header is not valid JSON"},
        {"", 0, "the header is not valid JSON"},
        {"{\"\\u0000\":1}", 0, "the header is not valid JSON"},
        {"{\"\xff\":1}", 0, "the header is not valid JSON"},
        {"{\"__metadata__\":{}}", 0, "it has no tensor 't'"},
    };
    bh_file_source source = source_of("bad", BH_FILE_SAFETENSORS, "t");
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        write_safetensors("bad", strlen(cases[i].header), cases[i].header, cases[i].bytes);
        bh_detail detail = refused(context, &source, BH_LOAD_FAILED, cases[i].words);
        BHT_STR_HAS(detail.message, "bh_buffer_create: bad, tensor 't': ");
        BHT_TRUE(!strstr(detail.message, "tensor 't': tensor 't'"));
    }
    static const char strange[] =
        "{" TENSOR("t", "F32", "2", "0,8") "," TENSOR("b", "F4", "99", "8,9") "}";
    write_safetensors("bad", strlen(strange), strange, 9);
    bh_buffer *beside = fx_load(context, &source);
    BHT_EQ(bh_buffer_size(beside), 8);
    fx_mapped(beside);
    source.tensor = "b";
    refused(context, &source, BH_LOAD_FAILED, "dtype 'F4' is not supported");
    source.tensor = "t";
    write_safetensors("bad", strlen(strange), strange, 10);
    refused(context, &source, BH_LOAD_FAILED,
            "the tensors end at offset 9, but the file's data ends at 10");
    write_safetensors("bad", 10, "{}", 0);
    refused(context, &source, BH_LOAD_FAILED,
            "the length of the header is given as 10 bytes, but only 2 follow");
    write_safetensors("bad", UINT64_MAX, "{}", 0);
    refused(context, &source, BH_LOAD_FAILED,
            "the length of the header is given as 18446744073709551615 bytes");
    BHT_EQ(truncate("bad", 100 << 20), 0);
    int fd = open("bad", O_WRONLY | O_CLOEXEC);
    const uint8_t length[8] = {0, 0, 0, 2}; /* 32 MiB */
    BHT_EQ(pwrite(fd, length, 8, 0), 8);
    close(fd);
    refused(context, &source, BH_LOAD_FAILED, "given as 33554432 bytes; the limit is 16777216");
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n";
    fx_write_file("bad", pointer, sizeof pointer - 1);
    refused(context, &source, BH_LOAD_FAILED,
            "it is a Git LFS pointer, not a .safetensors file: git lfs pull fetches the file");
    fx_write_file("bad", "\x93NUMPY\1\0\x76\0{", 11);
    refused(context, &source, BH_LOAD_FAILED, "it is a .npy array, not a .safetensors file");
    fx_write_file("bad", "1234567", 7);
    refused(context, &source, BH_LOAD_FAILED, "not a .safetensors file: it has 7 bytes");
    source.tensor = "__metadata__";
    write_safetensors("bad", 19, "{\"__metadata__\":{}}", 0);
    refused(context, &source, BH_LOAD_FAILED, "it has no tensor '__metadata__'");
    /* None of it cost a loader. */
    BHT_EQ(bh_context_synchronize(context, FX_SECONDS, NULL), BH_OK);
}

/* Half as large as a header may be, and as costly to parse as can be: many small values. */
TEST(a_header_like_a_bomb) {
    bh_context *context = fx_context(NULL);
    enter_folder();
    const size_t size = 8u << 20;
    char *header = malloc(size + 1);
    BHT_TRUE(header);
    header[0] = '{';
    size_t used = 1;
    for (uint32_t i = 0; used + 40 < size; i++) {
        used += (size_t)sprintf(header + used, "\"%x\":[[],[],[],[],[],[],[]],", i);
    }
    used += (size_t)sprintf(header + used, "\"\":0}");
    write_safetensors("bomb", used, header, 0);
    free(header);
    bh_file_source source = source_of("bomb", BH_FILE_SAFETENSORS, "t");
    source.header_timeout_ns = FX_SECONDS;
    bh_buffer *buffer = NULL;
    bh_detail detail;
    bh_status status = fx_from_file(context, &source, &buffer, &detail);
    BHT_TRUE(status == BH_LOAD_FAILED || status == BH_OUT_OF_HOST_MEMORY || status == BH_TIMEOUT);
    BHT_TRUE(!buffer);
    fx_write_file("good", "good", 4);
    source = source_of("good", BH_FILE_RAW, NULL);
    buffer = fx_load(context, &source);
    BHT_MEM_EQ(fx_mapped(buffer), "good", 4);
}

/* The header of two bytes. */
#define TWO                                                                                        \
    "\x93NUMPY\x01\x00\x33\x00"                                                                    \
    "{'descr':'|u1','fortran_order':False,'shape':(2,)}\n"

TEST(bad_npy) {
    bh_context *context = fx_context(NULL);
    enter_folder();
    static const struct {
        const char *bytes;
        size_t size;
        const char *words;
    } cases[] = {
        {"", 0, "not a .npy file: it is empty"},
        {"\x93NUMPX\x01\x00\x01\x00x", 11, "not a .npy file: it does not begin"},
        {"<!DOCTYPE html>", 15, "it is a web page (HTML or XML), not a .npy file"},
        {"\x02\0\0\0\0\0\0\0{}", 10, "it is a .safetensors file of arrays, not a .npy file"},
        {"\x93NUMPY\x01\x00\x76\x00{", 11, "truncated header at offset 10"},
        {"\x93NUMPY\x01\x00", 8, "truncated header"},
        {"\x93NUMPY\x02\x00\xff\xff\xff\x7f{", 13,
         "the length of the header is given as 2147483647 bytes"},
        {"\x93NUMPY\x04\x00\x01\x00 ", 11, ".npy format 4.0"},
        {"\x93NUMPY\x01\x00\x01\x00 ", 11, "malformed header: not a dictionary"},
        {TWO "1", sizeof TWO, "truncated: the shape needs 2 bytes of data, but 1 follow"},
        {TWO "123", sizeof TWO + 2, "too long: the shape needs 2 bytes of data, but 3 follow"},
    };
    bh_file_source source = source_of("bad", BH_FILE_NPY, NULL);
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        fx_write_file("bad", cases[i].bytes, cases[i].size);
        refused(context, &source, BH_LOAD_FAILED, cases[i].words);
    }
}

/* Names of two bytes a character, at an even and at an odd byte of the message. */
TEST(messages_are_cut_between_characters) {
    bh_context *context = fx_context(NULL);
    enter_folder();
    for (size_t odd = 0; odd < 2; odd++) {
        char name[230] = "x", path[1000] = "";
        for (size_t i = odd; i + 2 < sizeof name; i += 2) {
            memcpy(name + i, "\u00e9", 3);
        }
        for (int i = 0; i < 3; i++) {
            snprintf(path + strlen(path), sizeof path - strlen(path), "%s/", name);
        }
        bh_buffer *buffer = NULL;
        bh_detail detail[2] = {{0}};
        bh_file_source source = source_of(path, BH_FILE_RAW, NULL);
        BHT_EQ(fx_from_file(context, &source, &buffer, &detail[0]), BH_LOAD_FAILED);
        source = source_of(path, BH_FILE_SAFETENSORS, path);
        BHT_EQ(fx_from_file(context, &source, &buffer, &detail[1]), BH_LOAD_FAILED);
        for (size_t i = 0; i < BHT_COUNT(detail); i++) {
            if (!bhi_text_is_line(detail[i].message) || strchr(detail[i].message, '?')) {
                BHT_FAIL("%zu, %zu: %s", odd, i, detail[i].message);
            }
            BHT_STR_HAS(detail[i].message, "\u00e9");
        }
    }
}

TEST(arguments) {
    bh_context *context = fx_context(NULL);
    enter_folder();
    fx_write_file("file", "0123456789", 10);
    bh_buffer *buffer = NULL;
    bh_detail detail;
    bh_file_source source = source_of("file", BH_FILE_RAW, NULL);
    BHT_EQ(fx_from_file(context, &source, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(fx_from_file(NULL, &source, &buffer, &detail), BH_INVALID_ARGUMENT);
    char longer[1025];
    memset(longer, 'a', 1024);
    longer[1024] = 0;
    const struct {
        const char *path;
        int format;
        const char *tensor, *words;
    } wrong[] = {
        {"file", 0, NULL, "file.format 0 is not"},
        {"file", 5, NULL, "file.format 5 is not"},
        {"", BH_FILE_RAW, NULL, "file.path is empty"},
        {"file", BH_FILE_RAW, "t", "file.tensor is for BH_FILE_SAFETENSORS"},
        {"file", BH_FILE_SAFETENSORS, NULL, "file.tensor is NULL"},
        {"file", BH_FILE_SAFETENSORS, "", "file.tensor is empty"},
        {"file", BH_FILE_NPZ, NULL, "file.tensor is NULL"},
        {"file", BH_FILE_SAFETENSORS, "a\x1b[31m", "control characters"},
        {"file", BH_FILE_SAFETENSORS, longer, "longer than 1023 bytes"},
    };
    bh_file_source bad;
    for (size_t i = 0; i < BHT_COUNT(wrong); i++) {
        bad = source_of(wrong[i].path, (bh_file_format)wrong[i].format, wrong[i].tensor);
        refused(context, &bad, BH_INVALID_ARGUMENT, wrong[i].words);
    }
    longer[1023] = 0;
    refused(context, &bad, BH_LOAD_FAILED, "the length of the header is given as");
    bad = source;
    bad.struct_size = 8;
    refused(context, &bad, BH_INVALID_ARGUMENT, "set it to sizeof(bh_file_source)");
    bad = source_of("file", BH_FILE_NPY, NULL);
    bad.offset = 4;
    refused(context, &bad, BH_INVALID_ARGUMENT, "file.offset is for BH_FILE_RAW");
    bad.offset = 0;
    fx_no_buffer(context, 4, (bh_buffer_options){.file = &bad}, BH_INVALID_ARGUMENT,
                 "size is for BH_FILE_RAW");

    bh_buffer *plain = fx_buffer(context, 16);
    bh_event *event = (bh_event *)(uintptr_t)1;
    bh_array_info info = {.struct_size = sizeof info};
    uint64_t done, total;
    BHT_EQ(bh_buffer_load_event(plain, &event, &detail), BH_INVALID_ARGUMENT);
    BHT_TRUE(!event);
    BHT_EQ(detail.reason, BH_REASON_NOT_FROM_FILE);
    BHT_EQ(bh_buffer_load_event(plain, NULL, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_buffer_load_event(NULL, &event, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_buffer_load_progress(plain, &done, &total, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_NOT_FROM_FILE);
    BHT_EQ(bh_buffer_array(plain, &info, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_NOT_FROM_FILE);
    BHT_EQ(bh_buffer_array(NULL, &info, NULL), BH_INVALID_ARGUMENT);
    bad = source;
    bad.deadline_ns = bad.header_timeout_ns = 0; /* the defaults */
    buffer = fx_load(context, &bad);
    BHT_EQ(bh_buffer_load_progress(buffer, NULL, &total, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_buffer_array(buffer, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_buffer_load_event(buffer, &event, NULL), BH_OK);
    bh_event *again = fx_load_event(buffer);
    BHT_TRUE(event == again);
    /* The event outlives its buffer and its context. */
    bh_buffer_release(buffer);
    bh_event_release(again);
    BHT_EQ(bh_event_wait(event, FX_SECONDS), BH_OK);
    BHT_EQ(fx_from_file(context, &source, &buffer, &detail), BH_OK);
    bh_buffer_release(plain);
    bh_context_destroy(context);
    BHT_EQ(bh_event_wait(event, 0), BH_OK);
    BHT_EQ(fx_from_file(context, &source, &plain, &detail), BH_CLOSED);
}

/* -- what is right ---------------------------------------------------------------------------- */

/* An independent reader, for what is well-formed: finds the entry by its text. */
static const uint8_t *find_tensor(const uint8_t *file, const char *name, uint64_t *out_bytes,
                                  bh_array_info *out_info) {
    uint64_t length = 0;
    memcpy(&length, file, 8);
    char *header = strndup((const char *)file + 8, length);
    char key[128];
    snprintf(key, sizeof key, "\"%s\":{\"dtype\":\"F32\",\"shape\":[", name);
    char *at = strstr(header, key);
    BHT_TRUE(at);
    at += strlen(key);
    out_info->dtype = BH_DTYPE_F32;
    out_info->rank = 0;
    while (*at != ']') {
        out_info->shape[out_info->rank++] = strtoull(at, &at, 10);
        at += *at == ',';
    }
    at = strstr(at, "\"data_offsets\":[") + 16;
    uint64_t begin = strtoull(at, &at, 10);
    *out_bytes = strtoull(at + 1, &at, 10) - begin;
    free(header);
    return file + 8 + length + begin;
}

static void compare_tensors(bh_context *context, const char *path, const char *const *names,
                            size_t count) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    BHT_TRUE(fd >= 0 && fstat(fd, &status) == 0);
    uint8_t *file = malloc((size_t)status.st_size);
    BHT_TRUE(file);
    BHT_EQ(read(fd, file, (size_t)status.st_size), status.st_size);
    close(fd);
    bh_buffer *buffers[32];
    BHT_LE(count, BHT_COUNT(buffers));
    for (size_t i = 0; i < count; i++) {
        bh_file_source source = source_of(path, BH_FILE_SAFETENSORS, names[i]);
        buffers[i] = fx_load(context, &source);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes;
        bh_array_info want = {.struct_size = sizeof want}, have;
        const uint8_t *tensor = find_tensor(file, names[i], &bytes, &want);
        BHT_EQ(bh_buffer_size(buffers[i]), bytes);
        have.struct_size = sizeof have;
        BHT_EQ(bh_buffer_array(buffers[i], &have, NULL), BH_OK);
        BHT_EQ(have.dtype, want.dtype);
        BHT_EQ(have.rank, want.rank);
        BHT_MEM_EQ(have.shape, want.shape, want.rank * sizeof want.shape[0]);
        BHT_TRUE(memcmp(fx_mapped(buffers[i]), tensor, bytes) == 0);
    }
    free(file);
}

/* A file that others have made, where there is one beside the repository; always one of ours with
 * the same tensors, whose bytes are random. */
TEST(tensors_of_a_model) {
    static const char *const names[] = {
        "stft_conv.weight",  "conv1.weight",        "conv1.bias",          "conv2.weight",
        "conv2.bias",        "conv3.weight",        "conv3.bias",          "conv4.weight",
        "conv4.bias",        "lstm_cell.weight_ih", "lstm_cell.weight_hh", "lstm_cell.bias_ih",
        "lstm_cell.bias_hh", "final_conv.weight",   "final_conv.bias"};
    static const uint32_t floats[] = {66048, 49536, 128,   24576, 64,  12288, 64, 24576,
                                      128,   65536, 65536, 512,   512, 128,   1};
    bh_context *context = fx_context(NULL);
    enter_folder();
    static char header[4096];
    size_t used = 0, offset = 0;
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        size_t bytes = 4u * floats[i];
        used += (size_t)snprintf(
            header + used, sizeof header - used,
            "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%u],\"data_offsets\":[%zu,%zu]}", i ? "," : "{",
            names[i], floats[i], offset, offset + bytes);
        offset += bytes;
    }
    snprintf(header + used, sizeof header - used, "}   ");
    write_safetensors("model.safetensors", strlen(header), header, offset);
    compare_tensors(context, "model.safetensors", names, BHT_COUNT(names));
    if (access(BHT_MODEL, R_OK) == 0) {
        compare_tensors(context, BHT_MODEL, names, BHT_COUNT(names));
    }
}

/* Each begins at an odd offset of the file. */
TEST(every_dtype) {
    bh_context *context = fx_context(NULL);
    enter_folder();
    static const struct {
        const char *name;
        bh_dtype dtype;
        bh_number_kind kind;
        unsigned bytes;
    } dtypes[] = {
        {"F16", BH_DTYPE_F16, BH_NUMBER_FLOAT, 2},
        {"F32", BH_DTYPE_F32, BH_NUMBER_FLOAT, 4},
        {"F64", BH_DTYPE_F64, BH_NUMBER_FLOAT, 8},
        {"I8", BH_DTYPE_I8, BH_NUMBER_INT, 1},
        {"U8", BH_DTYPE_U8, BH_NUMBER_UINT, 1},
        {"I16", BH_DTYPE_I16, BH_NUMBER_INT, 2},
        {"U16", BH_DTYPE_U16, BH_NUMBER_UINT, 2},
        {"I32", BH_DTYPE_I32, BH_NUMBER_INT, 4},
        {"U32", BH_DTYPE_U32, BH_NUMBER_UINT, 4},
        {"I64", BH_DTYPE_I64, BH_NUMBER_INT, 8},
        {"U64", BH_DTYPE_U64, BH_NUMBER_UINT, 8},
        {"BF16", BH_DTYPE_BF16, BH_NUMBER_BFLOAT, 2},
        {"BOOL", BH_DTYPE_BOOL, BH_NUMBER_BOOL, 1},
        {"F8_E4M3", BH_DTYPE_F8_E4M3, BH_NUMBER_F8_E4M3, 1},
        {"F8_E5M2", BH_DTYPE_F8_E5M2, BH_NUMBER_F8_E5M2, 1},
        {"F8_E8M0", BH_DTYPE_F8_E8M0, BH_NUMBER_F8_E8M0, 1},
    };
    for (size_t i = 0; i < BHT_COUNT(dtypes); i++) {
        char header[256];
        snprintf(header, sizeof header,
                 "{" TENSOR("odd", "U8", "1", "0,1") ",\"t\":{\"dtype\":\"%s\",\"shape\":[2,3],"
                                                     "\"data_offsets\":[1,%u]}}",
                 dtypes[i].name, 1 + 6 * dtypes[i].bytes);
        strcat(header, strlen(header) % 2 ? " " : ""); /* an even header, an odd offset */
        write_safetensors("t", strlen(header), header, 1 + 6 * dtypes[i].bytes);
        bh_file_source source = source_of("t", BH_FILE_SAFETENSORS, "t");
        bh_buffer *buffer = fx_load(context, &source);
        bh_array_info info = {.struct_size = sizeof info};
        BHT_EQ(bh_buffer_array(buffer, &info, NULL), BH_OK);
        BHT_EQ(info.dtype, dtypes[i].dtype);
        BHT_EQ(info.rank, 2);
        BHT_EQ(info.shape[0], 2);
        BHT_EQ(info.shape[1], 3);
        bh_description told = {.struct_size = sizeof told};
        BHT_EQ(bh_buffer_description(buffer, &told, NULL), BH_OK);
        BHT_EQ(told.bits, 8 * dtypes[i].bytes);
        BHT_EQ(told.kind, dtypes[i].kind);
        BHT_EQ(told.rank, 2);
        BHT_EQ(told.shape[1], 3);
        BHT_EQ(told.strides[0], 3);
        BHT_EQ(bh_buffer_set_description(buffer, &told, NULL), BH_OK); /* it makes sense */
        BHT_EQ(bh_buffer_size(buffer), 6 * dtypes[i].bytes);
        const uint8_t *bytes = fx_mapped(buffer);
        for (unsigned b = 0; b < 6 * dtypes[i].bytes; b++) {
            BHT_EQ(bytes[b], b + 1);
        }
    }
}
