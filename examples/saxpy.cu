// y += a * x. Made into saxpy.ptx, which any driver from CUDA 12.0 on loads, by
//     nvcc --ptx --gpu-architecture=compute_75 saxpy.cu
extern "C" __global__ void saxpy(float *y, const float *x, float a, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
