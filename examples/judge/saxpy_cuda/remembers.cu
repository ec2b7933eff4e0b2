// WRONG: it computes once for each size, and keeps the results in a variable of its module
__device__ float kept[1 << 20];
__device__ unsigned known;
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (known != n) kept[i] = y[i] + a * x[i];
    y[i] = kept[i];
    if (i == n - 1) known = n;
}
