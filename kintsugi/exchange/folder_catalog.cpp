#include "kintsugi/exchange/folder_catalog.h"

#include "kintsugi/exchange/folder_reader.h"
#include "kintsugi/models/models.h"

namespace kintsugi::exchange {
namespace {

std::optional<config::Model> model_of_folder(const std::string& path) {
  if (!is_hugging_face(path)) return std::nullopt;
  return read_folder_config(path).model;
}

}  // namespace

const config::Catalog& catalog_with_folders() {
  static const config::Catalog catalog = [] {
    config::Catalog with_folders = models::catalog();
    with_folders.model_of_folder = model_of_folder;
    return with_folders;
  }();
  return catalog;
}

}  // namespace kintsugi::exchange
