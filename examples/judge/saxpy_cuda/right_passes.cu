// CORRECT: two kernels with scratch between them
// bulkhead: {"kernels": [{"entry": "scale", "parameters": ["x", "t", "a", "n"]}, {"entry": "add", "block": 512, "parameters": ["t", "y", "n"]}], "scratch": {"t": {"dtype": "f32", "shape": ["n"]}}}
extern "C" __global__ void scale(const float *x, float *t, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) t[i] = a * x[i];
}
extern "C" __global__ void add(const float *t, float *y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += t[i];
}
