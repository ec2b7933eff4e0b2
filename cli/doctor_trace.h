/* `bulkhead doctor --trace-driver`: prints the trace of a driver. */
#ifndef BHI_CLI_DOCTOR_TRACE_H
#define BHI_CLI_DOCTOR_TRACE_H

struct bhi_args;

/* Traces a driver and prints its calls. Returns the exit status. */
int bhi_doctor_trace(const struct bhi_args *args);

#endif
