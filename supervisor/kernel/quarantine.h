/* The quarantine: kernels that have ended workers are refused before they reach another (K5). What
 * is remembered is in death_records.h. */
#ifndef BHI_SUPERVISOR_KERNEL_QUARANTINE_H
#define BHI_SUPERVISOR_KERNEL_QUARANTINE_H

#include "supervisor/context/payload.h"

/* Lock held. A port of the core: the submission launches a kernel that is held. */
bool bhi_quarantine_refuse(const struct bhi_submission *submission, struct bhi_outcome *out);
/* Lock held. A port of the core: it launches a kernel that is suspected of what another may have
 * done (T2). */
bool bhi_quarantine_tries(const struct bhi_submission *submission);
/* Lock held. The verdict of a submission is complete: was it the end of its worker, or does it end
 * a trial, or begin one? Not called where nobody knows which of several kernels it was. */
void bhi_quarantine_note(const struct bhi_submission *submission, const bh_verdict *verdict);
#endif
