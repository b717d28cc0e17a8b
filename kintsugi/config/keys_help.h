// Renders the list of keys as tables for docs/configuration.md.
#pragma once

#include <string>

#include "kintsugi/config/catalog.h"
#include "kintsugi/config/keys.h"

namespace kintsugi::config {

// One row of these tables, and all of them.
std::string markdown_row(const Key& key);
std::string markdown_tables();
std::string markdown_families(const Catalog& catalog);
std::string markdown_optimizers(const Catalog& catalog);
std::string markdown_sizes(const Catalog& catalog);

}  // namespace kintsugi::config
