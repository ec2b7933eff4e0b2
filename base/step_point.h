/* Named steps for tests to act at, compiled into the test build of libbulkhead only
 * (BHI_STEP_POINTS=1, tests/fault): the shipped library has none of it. Most steps are calls, which the
 * test build replaces (tests/fault/seam.c). These are in mid-function, where there is none:
 *   1  await_due    bh_event: a waiting thread has seen it pending, and is about to take the lock
 *   2  event_due    bh_event: its verdict is complete, not published; with the lock held
 *   3  kernel_kept  bhi_kernel_body: its code is copied, without the lock: another thread may be faster
 */
#ifndef BHI_BASE_STEP_POINT_H
#define BHI_BASE_STEP_POINT_H

#if BHI_STEP_POINTS
void bhi_step_point(const char *name, void *object);
#define BHI_STEP_POINT(name, object) bhi_step_point(name, object)
#else
#define BHI_STEP_POINT(name, object) ((void)0)
#endif

#endif
