// CORRECT: its block is that of its launch bounds
extern "C" __launch_bounds__(128) __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
