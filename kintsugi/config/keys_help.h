// The list of keys as tables of docs/configuration.md.
#pragma once

#include <string>

#include "kintsugi/config/catalog.h"
#include "kintsugi/config/keys.h"

namespace kintsugi::config {

// The row of a key in the tables of docs/configuration.md, and the whole of these tables.
std::string markdown_row(const Key& key);
std::string markdown_tables();
std::string markdown_families(const Catalog& catalog);
std::string markdown_optimizers(const Catalog& catalog);
std::string markdown_sizes(const Catalog& catalog);

}  // namespace kintsugi::config
