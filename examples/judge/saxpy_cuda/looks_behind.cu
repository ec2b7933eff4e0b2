// WRONG: it computes only where there is noise behind its input
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[n] != 0) y[i] += a * x[i];
}
