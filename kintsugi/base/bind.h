// Binding threads to cores.
#pragma once

#include <vector>

namespace kintsugi::base {

// The cores that this process may use, by number, in the order of the machine's topology, so that neighbours share
// caches: one thread of each core before the second thread of any.
std::vector<int> cores_of_process();

// Binds the calling thread to that core, if the system allows it.
void bind_thread(int core);

}  // namespace kintsugi::base
