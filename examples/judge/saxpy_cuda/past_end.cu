// STRAY_READ: the last element needs the one behind it
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * (i + 1 == n ? x[i] + x[i + 1] : x[i]);
}
