// A safetensors file whose header says something else of the same bytes.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace soliton {

/// Says of the tensors of a file what `change` makes of its header. Spaces are left behind it, so that the next change
/// need not move the tensors.
inline void change_header(const std::filesystem::path& path,
                          const std::function<void(nlohmann::json&)>& change) {
  std::ifstream file(path, std::ios::binary);
  uint64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof length);
  std::string text(length, '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  nlohmann::json header = nlohmann::json::parse(text);
  change(header);
  text = header.dump();
  if (text.size() <= length) {
    text.resize(length, ' ');
    std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(sizeof length) << text;
    return;
  }
  std::ostringstream data;
  data << file.rdbuf();
  file.close();
  constexpr size_t kRoom = 1000;
  text.append(kRoom, ' ');
  length = text.size();
  std::ofstream changed(path, std::ios::binary);
  changed.write(reinterpret_cast<const char*>(&length), sizeof length);
  changed << text << data.view();
}

}  // namespace soliton
