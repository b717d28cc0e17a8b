#include "kintsugi/base/error.h"
#include "kintsugi/data/text_stream.h"

namespace kintsugi::data {

std::unique_ptr<TextStream> open_gzip(const std::filesystem::path&, const std::string& name) {
  throw base::UserError("prepare",
                        "\"{}\" is compressed by gzip, which this build cannot read: install zlib1g-dev and build "
                        "again, or decompress the file",
                        name);
}

}  // namespace kintsugi::data
