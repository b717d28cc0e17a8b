// A second tree of folders with the same files.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace kintsugi::data {

// Makes the content of the folder `from` appear in the folder `to` as well: files by hard links, or copied where there
// can be no link, and folders made again. What `to` has already stays. Names in `from` itself for which `skip` holds
// are left out. False if not everything can be brought along: another file system is mounted in it, or it cannot be
// read.
bool link_tree(const std::filesystem::path& from, const std::filesystem::path& to,
               const std::function<bool(const std::string&)>& skip);

// Another file system, or another part of this one, is mounted there; true too where that cannot be said.
bool is_mount_point(const std::filesystem::path& folder);

// Gives a folder the owner, as far as this process may, and the permissions of another.
void copy_owner(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace kintsugi::data
