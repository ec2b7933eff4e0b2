/* Faults that a test has told its workers to have (worker/faults/faults.h): each must have happened
 * when the test ends, and be one that the build knows. A test whose fault has been renamed, or is
 * not come to any more, fails: it shows nothing. */
#ifndef BHT_FAULTS_H
#define BHT_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

/* |list| for $BULKHEAD_TEST_FAULTS, with the item that has the processes note what happens, into
 * |out|. An item that begins with ? may happen or not. In the test's own process only: in another
 * that it has forked nothing is noted, and nothing checked. */
void bht_faults_note(const char *list, char *out, size_t size);

/* Whether all that were noted so far have happened. */
bool bht_faults_happened(void);

/* The harness's: this process is the test's; what was noted is looked at; it is left alone. */
void bht_faults_begin(void);
void bht_faults_check(void);
void bht_faults_forget(void);

#endif
