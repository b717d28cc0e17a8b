// Mirrors a folder tree with hard links.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace kintsugi::data {

// Mirrors the content of `from` in `to`: hard-links files, or copies them where links are impossible, and recreates
// folders. Leaves existing content of `to` unchanged. Skips names in `from` itself for which `skip` returns true.
// Returns false if the mirror is incomplete because another file system is mounted inside or something cannot be read.
bool link_tree(const std::filesystem::path& from, const std::filesystem::path& to,
               const std::function<bool(const std::string&)>& skip);

// Whether a file system, or another part of this one, is mounted there; also true if unknown.
bool is_mount_point(const std::filesystem::path& folder);

// Copies the permissions of a folder and, as far as this process may, the owner.
void copy_owner(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace kintsugi::data
