/* The handles, and constants that several headers use. */
#ifndef BULKHEAD_TYPES_H
#define BULKHEAD_TYPES_H

#include <stdint.h>

/* In a field of a struct: what its comment calls the default. It is 0, so that a field that is not
 * named in an initialiser has it. */
#define BH_DEFAULT 0
/* As a timeout: does not wait. */
#define BH_NOW 0
/* As a timeout, a deadline or a limit: none. */
#define BH_FOREVER UINT64_MAX
/* As how long something may be idle: it stays. */
#define BH_NEVER UINT64_MAX
/* In a field of a struct: without what the field limits or asks for. No spares, no quarantine, no
 * grace, no limit. */
#define BH_OFF (UINT64_MAX - 1)
/* As the size of a range: from its offset to the end of the buffer. */
#define BH_WHOLE_SIZE UINT64_MAX
/* bh_verdict.command_index: the command is not known. */
#define BH_NO_COMMAND UINT32_MAX

/* Owns streams, buffers, kernels and workers (context.h). */
typedef struct bh_context bh_context;
/* An ordered queue of submissions with a worker of its own (stream.h). */
typedef struct bh_stream bh_stream;
/* How one submission ends: PENDING, then READY or POISONED (event.h). */
typedef struct bh_event bh_event;
/* The events of a program that have ended, in that order, behind one descriptor (queue.h). */
typedef struct bh_queue bh_queue;
/* Memory that the host and its workers share (buffer.h). */
typedef struct bh_buffer bh_buffer;
/* A SPIR-V module with an entry point and specialization constants (kernel.h). */
typedef struct bh_kernel bh_kernel;
/* A source that is compiled, or was (source.h). */
typedef struct bh_module bh_module;
/* A kernel whose types follow from its arguments (template.h). */
typedef struct bh_template bh_template;

#endif
