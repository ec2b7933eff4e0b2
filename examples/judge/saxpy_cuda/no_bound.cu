// STRAY_WRITE: the last block has threads that have no element
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] += a * x[i];
}
