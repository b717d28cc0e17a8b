// The cluster file written by `bench`.
#pragma once

#include <string>

#include "kintsugi/simulate/cluster.h"

namespace kintsugi::app {

// UserError if --into names a file that must not be replaced (outputs.h); called before anything is measured.
void require_into(const std::string& path);
// Reads the file of `bench machine`. UserError, naming that command, if it is absent.
simulate::Cluster read_measured_cluster(const std::string& path);
// Writes it, and prints a line.
void write_measured_cluster(const std::string& path, const simulate::Cluster& cluster);

}  // namespace kintsugi::app
