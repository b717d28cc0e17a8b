// Threads on cores.
#pragma once

#include <vector>

namespace kintsugi::base {

// The cores that this process may use, by number. Neighbours share caches: they are in the order of the machine's
// topology, one thread of each core before the second of any.
std::vector<int> cores_of_process();

// The calling thread runs on that core alone, where the system allows it.
void bind_thread(int core);

}  // namespace kintsugi::base
