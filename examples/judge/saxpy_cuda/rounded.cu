// WRONG: three digits are not enough
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = rintf((y[i] + a * x[i]) * 1000.0f) / 1000.0f;
}
