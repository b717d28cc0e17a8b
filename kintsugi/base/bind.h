// Binds threads to cores.
#pragma once

#include <vector>

namespace kintsugi::base {

// The cores that this process may use, in topology order, so that adjacent entries share caches: one thread of each
// core before the second thread of any.
std::vector<int> cores_of_process();

// Binds the calling thread to that core, if the system permits.
void bind_thread(int core);

}  // namespace kintsugi::base
