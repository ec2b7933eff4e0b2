/* What the cases about buffers from files share. */
#ifndef BHT_EVENTS_FILES_H
#define BHT_EVENTS_FILES_H

#include "../system/files.h"
#include "stage.h"

/* The floats 0, 1, 2, … as a file of raw bytes. */
void write_floats(const char *path, uint32_t count);
/* Bytes that differ from one read's length to the next. */
void write_bytes(const char *path, size_t size);
void expect_bytes(bh_buffer *buffer, size_t offset, size_t size);

bh_buffer *from_raw(bh_context *context, const char *path);
bh_event *load_of(bh_buffer *buffer);
/* Mapping and the load's event give the same verdict, whose message contains |words|. */
bh_verdict expect_failed(bh_buffer *buffer, bh_status status, const char *words);

#endif
