// LIMIT_EXCEEDED: no device has blocks of 2,048 threads
// bulkhead: block=1024,2
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && threadIdx.y == 0) y[i] += a * x[i];
}
