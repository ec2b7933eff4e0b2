/* What a batch records of an output is what the file has, even if the worker that wrote the output
 * goes on writing. */
#include "harness.h"
#include <unistd.h>

#include "request/content.h"

enum { WORDS = 3 << 17 }; /* 3 MiB: several pieces */

static uint8_t *changing; /* memory that is different after each write; or NULL */

BHT_WRAP(ssize_t, write, int fd, const void *bytes, size_t size) {
    const ssize_t written = __real_write(fd, bytes, size);
    for (size_t i = 0; changing && i < WORDS * sizeof(uint64_t); i += 4096) {
        changing[i]++;
    }
    return written;
}

TEST(a_hash_is_of_the_bytes_in_the_file) {
    struct bhi_complaint complaint;
    bh_detail detail = {0};
    bh_context *context;
    struct bhi_run_binding binding = {
        .array = {.dtype = BH_DTYPE_U64, .dimensions = 1, .shape = {WORDS}},
        .out = BHI_OUTFILE_CLOSED};
    char folder[] = "/tmp/bulkhead-content-XXXXXX";
    void *bytes;
    BHT_NE(mkdtemp(folder), NULL);
    BHT_EQ(chdir(folder), 0);
    binding.array.bytes = WORDS * sizeof(uint64_t);
    binding.header_size =
        bhi_npy_write_header(&binding.array, binding.header, sizeof binding.header);
    BHT_EQ(bh_context_create(NULL, &context, &detail), BH_OK);
    BHT_EQ(bh_buffer_create(context, binding.array.bytes, NULL, &binding.buffer, &detail), BH_OK);
    BHT_EQ(bh_buffer_map(binding.buffer, BH_MAP_DISCARD, 0, &bytes, &detail), BH_OK);
    BHT_TRUE(bhi_outfile_open_named("y.npy", ".y.npy.tmp",
                                    binding.array.bytes + binding.header_size, &binding.out,
                                    &complaint));
    changing = bytes;
    BHT_TRUE(bhi_content_save(&binding, &detail, &complaint));
    changing = NULL;
    bhi_outfile_close(&binding.out);
    BHT_TRUE(bhi_outfile_rename(&binding.out, &complaint));
    BHT_TRUE(binding.out.mark.hashed);
    BHT_EQ(bhi_outfile_compare(&binding.out, &binding.out.mark), BHI_OUTFILE_EQUAL);
    bhi_outfile_abandon(&binding.out);
    bh_buffer_release(binding.buffer);
    bh_context_destroy(context);
    BHT_EQ(unlink("y.npy"), 0);
    BHT_EQ(chdir("/"), 0);
    BHT_EQ(rmdir(folder), 0);
}
