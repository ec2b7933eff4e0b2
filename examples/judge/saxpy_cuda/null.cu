// DEVICE_FAULT: there is no memory at 0
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
    if (i == 0) *(volatile float *)(unsigned long long)(n - n) = a;
}
