/* The quarantine: kernels that have killed workers are refused before they reach another (K5).
 * Their records are in death_records.h. */
#ifndef BHI_SUPERVISOR_KERNEL_QUARANTINE_H
#define BHI_SUPERVISOR_KERNEL_QUARANTINE_H

#include "supervisor/context/payload.h"

/* Core op: returns true if the submission launches a kernel that is held. Lock held. */
bool bhi_quarantine_refuse(const struct bhi_submission *submission, struct bhi_outcome *out);
/* Core op: returns true if the submission launches a kernel that is on trial (T2). Lock held. */
bool bhi_quarantine_tries(const struct bhi_submission *submission);
/* Called with the complete verdict of a submission: records a death of its worker, and ends or
 * begins a trial. Not called if it is unknown which of several kernels has failed. Lock held. */
void bhi_quarantine_note(const struct bhi_submission *submission, const bh_verdict *verdict);
/* A spare has died while it compiled a kernel for |tenant|, ahead of any submission. Counts as the
 * death of a submission's worker does; |verdict| has no event. Lock held. */
void bhi_quarantine_note_spare(struct bh_context *context, const char *tenant,
                               const bh_verdict *verdict);
#endif
