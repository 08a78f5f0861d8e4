// y += a * x on the default stream; the code of cudaGetLastError.
__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

extern "C" int launch_saxpy(int n, float a, const float *x, float *y) {
    saxpy<<<(n + 255) / 256, 256>>>(n, a, x, y);
    return cudaGetLastError();
}
