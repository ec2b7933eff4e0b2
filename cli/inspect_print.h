/* Prints what a kernel declares, as text or as JSON. */
#ifndef BHI_CLI_INSPECT_PRINT_H
#define BHI_CLI_INSPECT_PRINT_H

#include <bulkhead/array.h>
#include <bulkhead/bulkhead.h>
#include <bulkhead/inspect.h>

struct bhi_inspected {
    const char *name, *entry;
    const char *source_entry; /* the --entry of a source; NULL: none */
    uint8_t hash[32];
    const bh_inspection *said;
    const char *disassembly; /* of the guarded module; NULL: not guarded */
};

void bhi_inspect_print(const struct bhi_inspected *inspected);
/* Prints the disassembly of the guarded module, after comments about what the guard did. */
void bhi_inspect_print_guarded(const struct bhi_inspected *inspected);
/* Prints one JSON object and a newline to stdout. */
void bhi_inspect_print_json(const struct bhi_inspected *inspected);

/* Prints what an image for CUDA is. It is not parsed. */
void bhi_inspect_print_image(const char *name, const char *kind, size_t bytes, bool json);

/* Returns for example "f32". */
const char *bhi_print_type(bh_dtype dtype);

#endif
