// The list of keys in readable form.
#pragma once

#include <string>

#include "kintsugi/config/catalog.h"
#include "kintsugi/config/keys.h"

namespace kintsugi::config {

// A page for a terminal: per section each key with its default, what is allowed, and its help.
std::string keys_page(const Catalog& catalog);

// The row of a key in the tables of docs/configuration.md, and the whole of these tables.
std::string markdown_row(const Key& key);
std::string markdown_tables();
std::string markdown_families(const Catalog& catalog);
std::string markdown_sizes(const Catalog& catalog);

}  // namespace kintsugi::config
