// The cluster file that `bench` writes.
#pragma once

#include <string>

#include "kintsugi/simulate/cluster.h"

namespace kintsugi::app {

// UserError where --into names a file that must not be replaced (outputs.h); before anything is measured.
void require_into(const std::string& path);
// What `bench machine` has written. UserError, with that command, if there is none.
simulate::Cluster read_measured_cluster(const std::string& path);
// Writes it, and says so.
void write_measured_cluster(const std::string& path, const simulate::Cluster& cluster);

}  // namespace kintsugi::app
