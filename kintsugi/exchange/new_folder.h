// A folder that is written as a whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace kintsugi::exchange {

// UserError "[where] ..." if the path is a file, or a folder that holds anything.
void require_empty(std::string_view where, const std::filesystem::path& folder);

class NewFolder {
 public:
  // UserError as require_empty. What a writer that was killed has left is removed.
  NewFolder(std::string_view where, const std::filesystem::path& folder);
  ~NewFolder();  // if it was not finished: removes what was written
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::filesystem::path& part() const { return part_; }  // where to write: ".part-NAME", beside it
  void finish();                                               // renames it, durably

 private:
  std::filesystem::path folder_;
  std::filesystem::path part_;
};

}  // namespace kintsugi::exchange
