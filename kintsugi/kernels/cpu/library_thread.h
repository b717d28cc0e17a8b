// oneDNN is built with OpenMP. Our team is the only parallelism, so each of its threads tells OpenMP once to use one
// thread per call.
#pragma once

namespace kintsugi::kernels::cpu {

// To be called before each call of the library. std::bad_alloc if OpenMP would get no memory, where it would end the
// process.
void stay_on_this_thread();

}  // namespace kintsugi::kernels::cpu
