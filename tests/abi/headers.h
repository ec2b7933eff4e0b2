/* All public headers. */
#include <bulkhead/bulkhead.h>
#include <bulkhead/judge.h>
