// What programs of kernels stop at.
#ifndef REQUIRE_CUH
#define REQUIRE_CUH

#include <cstdlib>
#include <iostream>

inline void require(bool right, const char *what) {
    if (right) return;
    std::cerr << what << " is wrong" << std::endl;
    std::exit(1);
}

inline void require(cudaError_t status, const char *what) { require(status == cudaSuccess, what); }

#endif
