// COMPILE_FAILED: kernels cannot launch others
__global__ void later(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    if (blockIdx.x + threadIdx.x == 0) later<<<(n + 255) / 256, 256>>>(x, y, a, n);
}
