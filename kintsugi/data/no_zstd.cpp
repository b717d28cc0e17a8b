#include "kintsugi/base/error.h"
#include "kintsugi/data/text_stream.h"

namespace kintsugi::data {

std::unique_ptr<TextStream> open_zstd(const std::filesystem::path&, const std::string& name) {
  throw base::UserError("prepare",
                        "\"{}\" is compressed by zstd, which this build cannot read: install libzstd-dev and build "
                        "again, or decompress the file",
                        name);
}

}  // namespace kintsugi::data
