/* Buffers whose content comes from a file. */
#ifndef BULKHEAD_FILE_H
#define BULKHEAD_FILE_H

#include <bulkhead/array.h>
#include <bulkhead/detail.h>
#include <bulkhead/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What to read of a file. */
typedef enum bh_file_format {
    BH_FILE_RAW = 1,         /* the buffer's size, or to the end of the file, from |offset| on */
    BH_FILE_NPY = 2,         /* all of a .npy: format 1.0 to 3.0, little endian; in C order, also if
                                the file is in Fortran order */
    BH_FILE_SAFETENSORS = 3, /* the tensor named |tensor| of a .safetensors */
    BH_FILE_NPZ = 4,         /* the array named |tensor| of a .npz, as numpy.savez writes it: not
                                compressed; as BH_FILE_NPY */
} bh_file_format;

/* A file, and what to read of it: for a buffer whose content is loaded from it (B7). The buffer has
 * its size when bh_buffer_create returns. Its content is PENDING until a loader has read the file.
 * A loader is a sandboxed worker that gets the open file and the memory of the buffer, and nothing
 * else. Submissions that bind the buffer wait for the load, and so does bh_buffer_map.
 *
 * A load that fails poisons the buffer and its dependents with LOAD_FAILED. The verdict has
 * sys_errno; its message names path, tensor and, if a read failed, the offset in the file. This
 * offset counts from the beginning of the file, unlike the offsets in a .safetensors header. If the
 * loader dies, the buffer is poisoned, and the verdict describes the loader's death. When the load
 * has ended, nothing more is written into the buffer.
 *
 * A load into device memory is done in pieces of 16 MiB; more than 16 GiB are loaded in 1024 larger
 * pieces; an array in Fortran order is one piece. A loader reads a piece into host memory while the
 * worker of |stream| copies the previous piece. So the load also waits for its turn on the stream,
 * and at most two pieces are in host memory. The load's event belongs to the last piece, a
 * submission of the stream: bh_stream_cancel cancels it, and a strict stream that has failed
 * poisons it. A cancel poisons the content, but the other queued pieces still run.
 *
 * The file must be a regular one, and not in /proc, /sys or the like. Until the load has ended, the
 * file must not change and must stay at its path: if it is written, truncated, replaced or removed,
 * the load fails. Writes through a shared mapping need not change the file's times, and then they
 * are not noticed. An empty range or array is allowed.
 *
 * Blocks while the file is opened, the header is parsed and the memory is reserved (about 1 ms a
 * MiB). The opener, a child process, opens the file with the rights, the root and the current
 * folder of the calling thread. So a mount that does not answer delays the call by
 * header_timeout_ns at most. In a log callback only RAW works. bh_buffer_create then also
 * returns
 *   BH_LOAD_FAILED       the file cannot be opened, is not a regular one, has a bad header or no
 *                        such tensor, or does not have the whole range. The detail has errno, if
 *                        there is one, and names path, tensor and offset
 *   BH_TIMEOUT           the file was not opened, or its header not parsed, in time
 *   BH_INVALID_ARGUMENT  a field is set that the format does not use; or the call has a size,
 *                        which only RAW takes
 *   a verdict's code     the loader died while it parsed the header
 *   BH_UNAVAILABLE       no loader can start, or no process can open the file; or another status of
 *                        class ENVIRON */
typedef struct bh_file_source {
    size_t struct_size;    /* sizeof(bh_file_source) */
    const char *path;      /* opened for reading; links are followed; NULL: use |fd| */
    int fd;                /* if |path| is NULL: an open file. The library opens it again, so the
                              position of |fd| does not move. The caller may close it after the
                              call */
    bh_file_format format; /* what to read */
    uint64_t offset;       /* RAW: of the first byte */
    const char *tensor;    /* SAFETENSORS, NPZ: the array's name, without .npy; at most 1023 bytes
                              of UTF-8 */
    uint64_t header_timeout_ns; /* for opening the file and parsing its header; default 10 s */
    uint64_t deadline_ns;       /* how long the load (into device memory: each piece) may take, once
                                   a loader begins it; default 10 min */
    const char *tenant;         /* the tenant whose loader reads the file (T1). NULL (default): that
                                   of the buffer's stream, or ""; at most 63 bytes */
} bh_file_source;

/* Returns the event of the load, to wait for, to cancel, or to name among the waits of a
 * submission. The caller releases it. BH_INVALID_ARGUMENT: the buffer is not from a file. */
BH_API BH_MUST_USE bh_status bh_buffer_load_event(bh_buffer *buffer, bh_event **out_event,
                                                  bh_detail *detail);
/* Returns how many bytes are loaded: *out_done of *out_total. Both are the buffer's size once the
 * load is READY; *out_done is 0 after a failure. The loader reports the number, and it is not
 * trusted: use it for a display only. BH_INVALID_ARGUMENT: the buffer is not from a file. */
BH_API BH_MUST_USE bh_status bh_buffer_load_progress(bh_buffer *buffer, uint64_t *out_done,
                                                     uint64_t *out_total, bh_detail *detail);

/* The array that a buffer was loaded from. */
typedef struct bh_array_info {
    size_t struct_size;          /* sizeof(bh_array_info) */
    bh_dtype dtype;              /* of its elements; BH_DTYPE_NONE: raw bytes */
    uint32_t rank;               /* dimensions; 0: one element, or raw bytes */
    uint64_t shape[BH_MAX_RANK]; /* elements along each dimension, in C order */
} bh_array_info;

/* Returns the type and shape that the file's header gives. BH_INVALID_ARGUMENT: the buffer is not
 * from a file. */
BH_API BH_MUST_USE bh_status bh_buffer_array(const bh_buffer *buffer, bh_array_info *out_info,
                                             bh_detail *detail);

/* An array in a file. */
typedef struct bh_file_tensor {
    size_t struct_size;          /* sizeof(bh_file_tensor) */
    bh_dtype dtype;              /* of its elements; BH_DTYPE_NONE: the library does not know the
                                    type, and bh_buffer_create refuses this array */
    uint32_t rank;               /* dimensions; 0: one element */
    uint64_t shape[BH_MAX_RANK]; /* elements along each dimension, in C order */
    uint64_t offset;             /* of its data, from the beginning of the file */
    uint64_t bytes;              /* of its data */
    char type[16]; /* the type as the file writes it, such as "BF16", or in a .npy "f4" (without the
                      byte order) */
    char name[1024]; /* empty for a .npy; cut if it is longer. "?" replaces characters that are not
                        printable; bh_buffer_create refuses such a name */
} bh_file_tensor;

/* Lists the arrays of a .npy (one), .npz or .safetensors (all, in the file's order) without loading
 * them. |file| is as for bh_buffer_create, without a tensor; its deadline_ns is not used.
 * Fills in the first |capacity| elements, of about 1.6 KiB each; *out_count is how many there are.
 * A header that bh_buffer_create refuses is refused here, too.
 *
 * A loader parses the header. The library checks its answer: each tensor lies in the file and has
 * as many bytes as its shape takes.
 *
 * Blocks, at most header_timeout_ns. Not in a log callback. Returns what bh_buffer_create
 * returns. */
BH_API BH_MUST_USE bh_status bh_file_tensors(bh_context *context, const bh_file_source *file,
                                             bh_file_tensor *out_tensors, size_t capacity,
                                             size_t *out_count, bh_detail *detail);

#ifdef __cplusplus
}
#endif

#endif
