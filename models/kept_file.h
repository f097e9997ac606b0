// Files that programs keep for later: written as a whole or not at all, whatever ends the program or the machine meanwhile;
// sealed, so that damage is noticed; and trusted only where nobody else can have written them.
#pragma once

#include <filesystem>
#include <string_view>

namespace soliton {

/// Replaces the file, or what a link leads to, which keeps its permissions. Throws Error (kNotFound); then too a whole file
/// stands there, the one before or, if only the folder could not be synced, the new one.
void write_kept_file(const std::filesystem::path& path, std::string_view text);

/// Moves a file within its file system over another one. Once it returns, both the file and its name are on the disk. Throws
/// Error (kNotFound).
void move_kept_file(const std::filesystem::path& from, const std::filesystem::path& to);

/// Makes a folder with its parents, if need be, which only their owner may write. Throws Error (kNotFound).
void make_private_folder(const std::filesystem::path& folder);

/// Throws Error (kNotFound) unless a file or folder is this user's or root's, and nobody else may write it; in folders where
/// files stay their owners' (the sticky bit) all may.
void check_trusted(const std::filesystem::path& path);

/// Puts a hash of the file behind its end, where readers of shared libraries do not look. Not in a file of its own: between
/// two renames there would be a moment when they do not belong together, and two programs may make the same file at once.
/// Throws Error (kNotFound).
void seal_file(const std::filesystem::path& path);

/// Whether the file has a seal, and is as it was when it was sealed. Throws what MappedFile::open() does.
bool is_sealed(const std::filesystem::path& path);

}  // namespace soliton
