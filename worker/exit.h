/* Exit codes of a worker, for verdicts and logs. */
#ifndef BHI_WORKER_EXIT_H
#define BHI_WORKER_EXIT_H

enum bhi_exit {
    BHI_EXIT_OK = 0,
    BHI_EXIT_DEVICE_LOST = 70,
    BHI_EXIT_START_FAILED = 71, /* progress says at which step */
    BHI_EXIT_SUPERVISOR = 72,   /* a malformed record or message from the supervisor */
};

#endif
