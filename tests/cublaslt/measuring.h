// The clock of the emulated device that products are measured with (emulated.cpp).
#pragma once

namespace kintsugi::tests::cublaslt {

inline int measuring_stream = 0;  // its address is the stream's handle
float measured_milliseconds();    // of what was asked for last (cublaslt_test.cpp)

}  // namespace kintsugi::tests::cublaslt
