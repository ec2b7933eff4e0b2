// STRAY_WRITE: it counts from -1
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < (int)n) y[i] += a * x[i];
    if (i == 0) y[-1] = 0;
}
