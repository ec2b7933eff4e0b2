// LOAD_FAILED: launches the reference
// bulkhead: {"kernel": "reference.comp"}
