// The catalog of models for user configurations, in which model.name may be a Hugging Face folder.
#pragma once

#include "kintsugi/config/catalog.h"

namespace kintsugi::exchange {

// models::catalog() plus folders. Throws UserError, as read_config does, for a folder whose config.json does not
// describe a supported model.
const config::Catalog& catalog_with_folders();

}  // namespace kintsugi::exchange
