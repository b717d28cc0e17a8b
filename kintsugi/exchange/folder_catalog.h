// The catalog of models for whatever reads a configuration of the user, in which model.name may be a Hugging Face
// folder.
#pragma once

#include "kintsugi/config/catalog.h"

namespace kintsugi::exchange {

// models::catalog(), with folders. UserError, as read_config, for a folder whose config.json is not a model of ours.
const config::Catalog& catalog_with_folders();

}  // namespace kintsugi::exchange
