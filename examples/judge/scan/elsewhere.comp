// LOAD_FAILED: launches what is not in its folder
// bulkhead: {"kernel": "../softmax/reference.comp"}
