// DEVICE_FAULT: nobody can write an input
extern "C" __global__ void saxpy(float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] += a * x[i];
        x[i] = 0;
    }
}
