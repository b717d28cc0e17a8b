// oneDNN is built with OpenMP. Our team is the only parallelism, so each of its threads limits OpenMP to one thread per
// call.
#pragma once

namespace kintsugi::kernels::cpu {

// Call before each library call. Throws std::bad_alloc if OpenMP could not allocate memory, where it would end the
// process.
void stay_on_this_thread();

}  // namespace kintsugi::kernels::cpu
