/* What the tests of this folder share. */
#ifndef BHT_SCENE_H
#define BHT_SCENE_H

#include "fixture.h"
#include "seam.h"
#include "tamper.h"

/* The N after |n|: each of the first |dense|, then steps of n / |part| (nightly: each). */
unsigned bht_next(unsigned n, unsigned dense, unsigned part);
/* The same walk where each step takes long: an ordinary build takes every step of bht_next(), those
 * of the sanitizers every third, beginning at the first, second or third by |row| (nightly: each).
 */
unsigned bht_walk_first(unsigned row, unsigned dense, unsigned part);
unsigned bht_walk_next(unsigned n, unsigned dense, unsigned part);
/* How many steps of such a walk meet a call at least, where an ordinary build meets |calls|. */
unsigned bht_walk_least(unsigned calls);
/* Whether this build runs row |i| of a table that takes long: an ordinary one runs all of them,
 * those of the two sanitizers half each (nightly: all). */
bool bht_mine(size_t i);

/* A result that is not BH_OK must be typed and say something. |what| is for the failure's text. */
void bht_check_detail(bh_status status, const bh_detail *detail, const char *what);
/* An event that was submitted must end, within the usual time: READY, or poisoned with a verdict
 * that says something. Returns its status and releases it. NULL is fine: BH_OK. */
bh_status bht_end(bh_event *event, const char *what);
/* The library refuses |command|, and says |words|. */
void bht_refused(bh_stream *stream, bh_command command, bh_status status, const char *words);
/* Squares 64 times 2.0, into a buffer of its own: *out_y, unless that is NULL. */
bh_event *bht_square(bh_context *context, bh_stream *stream, bh_buffer **out_y);
/* Has what bh_context_describe says |one|, and |other| behind it? */
bool bht_says(bh_context *context, const char *one, const char *other);
/* Like fx_kernel, but it may fail. */
bh_status bht_kernel(bh_context *context, const char *name, bh_kernel **out, bh_detail *detail);

#endif
