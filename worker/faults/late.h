/* What the fault lie_late has put off (faults.h). Compiled into bulkhead-worker-faulty only. */
#ifndef BHI_WORKER_FAULTS_LATE_H
#define BHI_WORKER_FAULTS_LATE_H

#if BHI_FAULTS
struct bhi_backend;
/* Runs on the device what was reported to have ended, 100 ms after that. In worker/vulkan/run.c. */
void bhi_backend_catch_up(struct bhi_backend *backend);
#endif

#endif
