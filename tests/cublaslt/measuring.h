// The emulated device's clock for matmul measurements (emulated.cpp).
#pragma once

namespace kintsugi::tests::cublaslt {

inline int measuring_stream = 0;  // its address is the stream's handle
float measured_milliseconds();    // of what was asked for last (cublaslt_test.cpp)
void hang_when_measured();        // the next measurement never ends, and is waited for for 0.2 s

}  // namespace kintsugi::tests::cublaslt
