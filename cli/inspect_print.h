/* Prints what a kernel declares, as text or as JSON. */
#ifndef BHI_CLI_INSPECT_PRINT_H
#define BHI_CLI_INSPECT_PRINT_H

#include <bulkhead/bulkhead.h>

struct bhi_inspected {
    const char *name, *entry;
    const char *source_entry; /* what --entry names in a source; NULL: nothing */
    uint8_t hash[32];
    const bh_inspection *said;
    const char *disassembly; /* guarded; NULL: it is not */
};

void bhi_inspect_print(const struct bhi_inspected *inspected);
/* The disassembly of the guarded module, behind comments that say what was done. */
void bhi_inspect_print_guarded(const struct bhi_inspected *inspected);
/* One JSON object on stdout, and a line end. */
void bhi_inspect_print_json(const struct bhi_inspected *inspected);

/* "f32". */
const char *bhi_print_type(bh_dtype dtype);

#endif
