/* Arrays: element types, shapes and strides. A buffer can carry a description of the array in it,
 * for programs that pass the buffer on. The library itself reads it only for kernel templates
 * (template.h). */
#ifndef BULKHEAD_ARRAY_H
#define BULKHEAD_ARRAY_H

#include <bulkhead/detail.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The maximum number of dimensions. */
#define BH_MAX_RANK 64

/* The element type of an array in a file, or of a template's argument. */
typedef enum bh_dtype {
    BH_DTYPE_NONE = 0,     /* raw bytes */
    BH_DTYPE_F16 = 1,      /* IEEE 754 binary16 */
    BH_DTYPE_F32 = 2,      /* IEEE 754 binary32 */
    BH_DTYPE_F64 = 3,      /* IEEE 754 binary64 */
    BH_DTYPE_I8 = 4,       /* int8_t */
    BH_DTYPE_U8 = 5,       /* uint8_t */
    BH_DTYPE_I16 = 6,      /* int16_t */
    BH_DTYPE_U16 = 7,      /* uint16_t */
    BH_DTYPE_I32 = 8,      /* int32_t */
    BH_DTYPE_U32 = 9,      /* uint32_t */
    BH_DTYPE_I64 = 10,     /* int64_t */
    BH_DTYPE_U64 = 11,     /* uint64_t */
    BH_DTYPE_BF16 = 12,    /* bfloat16; of files in a .safetensors only, as those below */
    BH_DTYPE_BOOL = 13,    /* one byte */
    BH_DTYPE_F8_E4M3 = 14, /* OCP's E4M3: up to 448, no infinities (ml_dtypes' float8_e4m3fn) */
    BH_DTYPE_F8_E5M2 = 15, /* OCP's E5M2: up to 57344 */
    BH_DTYPE_F8_E8M0 = 16, /* 8 bits of exponent, a power of two */
} bh_dtype;

/* Kinds of numbers, with the values of DLPack's DLDataTypeCode. */
typedef enum bh_number_kind {
    BH_NUMBER_INT = 0,      /* 8, 16, 32 or 64 bits */
    BH_NUMBER_UINT = 1,     /* 8, 16, 32 or 64 bits */
    BH_NUMBER_FLOAT = 2,    /* 8, 16, 32 or 64 bits */
    BH_NUMBER_BFLOAT = 4,   /* 16 bits */
    BH_NUMBER_COMPLEX = 5,  /* 64 or 128 bits: two floats */
    BH_NUMBER_BOOL = 6,     /* 8 bits */
    BH_NUMBER_F8_E4M3 = 10, /* 8 bits; these three as in DLPack 1.1 */
    BH_NUMBER_F8_E5M2 = 12,
    BH_NUMBER_F8_E8M0 = 14,
} bh_number_kind;

/* An array in a buffer: DLPack's DLTensor without its pointers. */
typedef struct bh_description {
    size_t struct_size;  /* sizeof(bh_description) */
    bh_number_kind kind; /* of one number */
    uint32_t bits;       /* of one number */
    uint32_t lanes;      /* numbers in an element, at most 65535; default 1 */
    uint32_t rank;       /* dimensions, at most BH_MAX_RANK; 0: a single element */
    bool strided;        /* false: rows follow each other without gaps, and |strides| is ignored */
    uint64_t offset;     /* bytes from the beginning of the buffer to element 0, 0, … */
    uint64_t shape[BH_MAX_RANK];  /* elements along each dimension */
    int64_t strides[BH_MAX_RANK]; /* in elements; may be 0 or negative */
} bh_description;

/* Attaches a copy of |description| to the buffer, in place of an earlier one; NULL removes it. Each
 * element must lie in the buffer. Neither the number of elements nor their bytes may exceed 2^63
 * - 1. Changes no content, and may be called while the buffer is in use. Returns BH_OK,
 * BH_NO_MEMORY, or BH_INVALID_ARGUMENT (the detail names the field). */
BH_API BH_MUST_USE bh_status bh_buffer_set_description(bh_buffer *buffer,
                                                       const bh_description *description,
                                                       bh_detail *detail);
/* Returns the buffer's description, with its strides filled in. A loaded buffer without one is
 * described as the array that bh_buffer_array returns. Any other buffer is an array of bytes: UINT,
 * 8 bits, rank 1. Set out_description->struct_size first. */
BH_API BH_MUST_USE bh_status bh_buffer_description(bh_buffer *buffer,
                                                   bh_description *out_description,
                                                   bh_detail *detail);

#ifdef __cplusplus
}
#endif

#endif
