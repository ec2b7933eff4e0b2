// WRONG: it computes the first half alone
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (n + 1) / 2) y[i] += a * x[i];
}
