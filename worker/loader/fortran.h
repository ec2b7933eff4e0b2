/* Reads an array that is in Fortran order into a memfd, in C order. */
#ifndef BHI_WORKER_LOADER_FORTRAN_H
#define BHI_WORKER_LOADER_FORTRAN_H

#include "formats/array.h"
#include "worker/loader/reads.h"

/* As bhi_reads_run, of array->bytes from |offset| on, in the calling thread. */
bool bhi_fortran_read(int fd, int out, uint64_t offset, const struct bhi_array *array,
                      _Atomic uint64_t *done, struct bhi_read_failure *failure);

#endif
