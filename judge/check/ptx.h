/* What PTX text says of a kernel: its parameters, and the blocks that it takes. Nobody trusts it: what is wrong
 * there harms only the kernel. */
#ifndef BHI_JUDGE_CHECK_PTX_H
#define BHI_JUDGE_CHECK_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BHI_PTX_PARAMETERS = 256, BHI_PTX_NAME = 256 };

struct bhi_ptx_entry {
    char name[BHI_PTX_NAME]; /* as in the text; cut if it is longer */
    uint32_t count;          /* of parameters */
    struct bhi_ptx_parameter {
        char kind; /* 'u', 's', 'f' or 'b' (bits) */
        uint32_t bytes;
    } parameters[BHI_PTX_PARAMETERS];
    uint32_t required[3]; /* .reqntid: threads of each block; 0: none is required */
    uint32_t most[3];     /* .maxntid, likewise */
};

/* Finds the kernel |name|, also where C++ has mangled it; NULL, or a name that none has: the only one. |text| has a
 * NUL after |size| bytes. Returns false if it is no PTX, or that is no single kernel. */
bool bhi_ptx_find(const char *text, size_t size, const char *name, struct bhi_ptx_entry *out);

#endif
