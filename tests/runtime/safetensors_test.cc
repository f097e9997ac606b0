// Safetensors, chiefly every way in which they can be wrong.
#include "runtime/weights/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "refusals.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string length_bytes(uint64_t length) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(length >> (8 * i));
  return bytes;
}

std::string file_of(const std::string& header, const std::string& buffer) {
  return length_bytes(header.size()) + header + buffer;
}

json entry(const char* dtype, const json& shape, const json& offsets) {
  return {{"dtype", dtype}, {"shape", shape}, {"data_offsets", offsets}};
}

class SafetensorsTest : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }
  /// Expects that a file with this header and buffer is refused, naming the file.
  void expect_refused(const std::string& header, const std::string& buffer, const std::string& fragment) {
    const fs::path path = write("t.safetensors", file_of(header, buffer));
    expect_error([&] { TensorSource::open(path); }, ExitCode::kBadFile, fragment);
    expect_error([&] { TensorSource::open(path); }, ExitCode::kBadFile, path.string() + ": ");
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(SafetensorsTest, ReadsTensors) {
  const json header = {{"__metadata__", {{"format", "pt"}}},
                       {"b", entry("BF16", {2, 3}, {4, 16})},
                       {"a", entry("F32", json::array(), {0, 4})},
                       {"empty", entry("I64", {5, 0, 9223372036854775807}, {4, 4})},
                       {"half", entry("F4", {2, 1}, {16, 17})}};
  const fs::path path = write("model.safetensors", file_of(header.dump() + "   ", "0123456789abcdefg"));
  for (const fs::path& from : {path, folder_}) {
    const TensorSource source = TensorSource::open(from);
    EXPECT_EQ(source.names(), (std::vector<std::string_view>{"a", "b", "empty", "half"}));
    EXPECT_EQ(source.total_bytes(), 17u);
    const Tensor& b = source.require("b", DType::kBF16, std::vector<int64_t>{2, 3});
    EXPECT_EQ(std::memcmp(b.data.data(), "456789abcdef", 12), 0);
    EXPECT_EQ(b.data.size(), 12u);
    EXPECT_EQ(*b.file, path.string());
    EXPECT_TRUE(source.find("a")->shape.empty());
    EXPECT_TRUE(source.find("empty")->data.empty());
    EXPECT_EQ(source.find("c"), nullptr);
  }
}

TEST_F(SafetensorsTest, TensorsSurviveAMove) {
  const json header = {{"a", entry("U8", {1}, {0, 1})}};
  TensorSource source = TensorSource::open(write("a.safetensors", file_of(header.dump(), "x")));
  const Tensor* const tensor = source.find("a");
  const TensorSource moved = std::move(source);
  EXPECT_EQ(moved.find("a"), tensor);
  EXPECT_EQ(tensor->name, "a");
  EXPECT_EQ(std::to_integer<char>(tensor->data[0]), 'x');
}

TEST_F(SafetensorsTest, ZeroesATensorAndNothingElse) {
  const json header = {{"a", entry("U8", {4}, {0, 4})},
                       {"b", entry("BF16", {2, 3}, {4, 16})},
                       {"c", entry("U8", {1}, {16, 17})},
                       {"empty", entry("U8", {0}, {17, 17})}};
  const std::string content = file_of(header.dump(), "0123456789abcdefg");
  const fs::path path = write("model.safetensors", content);
  const auto text_of = [](const Tensor* tensor) {
    return std::string(reinterpret_cast<const char*>(tensor->data.data()), tensor->data.size());
  };
  TensorSource opened = TensorSource::open(folder_);
  const Tensor* const b = opened.find("b");
  opened.zero("b");
  opened.zero("c");
  opened.zero("empty");
  const TensorSource source = std::move(opened);
  EXPECT_EQ(source.find("b"), b);
  EXPECT_EQ(&source.require("b", DType::kBF16, std::vector<int64_t>{2, 3}), b);
  EXPECT_EQ(text_of(b), std::string(12, '\0'));
  EXPECT_EQ(text_of(source.find("c")), std::string(1, '\0'));
  EXPECT_TRUE(source.find("empty")->data.empty());
  EXPECT_EQ(text_of(source.find("a")), "0123");
  EXPECT_EQ(source.total_bytes(), 17u);
  EXPECT_EQ(MappedFile::open(path).text(), content);
  EXPECT_EQ(text_of(TensorSource::open(folder_).find("b")), "456789abcdef");
}

TEST_F(SafetensorsTest, ZeroesOnlyWhatThereIs) {
  const json header = {{"a", entry("U8", {1}, {0, 1})}};
  write("model.safetensors", file_of(header.dump(), "x"));
  TensorSource source = TensorSource::open(folder_);
  expect_error([&] { source.zero("a.weight"); }, ExitCode::kMismatch,
               folder_.string() + ": expected a tensor of this folder, got a.weight");
  EXPECT_EQ(std::to_integer<char>(source.find("a")->data[0]), 'x');
}

TEST_F(SafetensorsTest, SaysThatAFileWasCutShort) {
  constexpr int kBytes = 1 << 20;
  const json header = {{"a", entry("U8", {kBytes}, {0, kBytes})}};
  const fs::path path = write("model.safetensors", file_of(header.dump(), std::string(kBytes, 'x')));
  const TensorSource source = TensorSource::open(folder_);
  const Tensor& a = *source.find("a");
  const auto sum = [&] {
    int64_t total = 0;
    for (const std::byte byte : a.data) total += std::to_integer<int64_t>(byte);
    return total;
  };
  EXPECT_EQ(read_whole(source, sum), int64_t{'x'} * kBytes);
  const uintmax_t size = fs::file_size(path);
  fs::resize_file(path, 1000);
  expect_error(
      [&] { read_whole(source, sum); }, ExitCode::kBadFile,
      fmt::format("{}: cut short while it was read: expected {} bytes, got 1000", path.string(), size));
}

TEST_F(SafetensorsTest, AcceptsNoTensorsAtAll) {
  EXPECT_TRUE(TensorSource::open(write("a.safetensors", file_of("{}", ""))).names().empty());
}

TEST_F(SafetensorsTest, RequireSaysWhatItFound) {
  const json header = {{"a", entry("F16", {2, 3}, {0, 12})}};
  const fs::path path = write("a.safetensors", file_of(header.dump(), std::string(12, 'x')));
  const TensorSource source = TensorSource::open(path);
  const auto refused = [&](const char* name, DType dtype, std::vector<int64_t> shape,
                           const std::string& message) {
    expect_error([&] { source.require(name, dtype, shape); }, ExitCode::kMismatch,
                 path.string() + ": " + message);
  };
  refused("a", DType::kBF16, {2, 3}, "a: expected BF16 [2, 3], got F16 [2, 3]");
  refused("a", DType::kF16, {3, 2}, "a: expected F16 [3, 2], got F16 [2, 3]");
  refused("a", DType::kF16, {2, 3, 1}, "a: expected F16 [2, 3, 1], got F16 [2, 3]");
  refused("b", DType::kF16, {}, "b: expected F16 [], but there is no such tensor");
}

TEST_F(SafetensorsTest, RefusesBadHeaderLengths) {
  const auto refused = [&](const std::string& content, const std::string& fragment) {
    const fs::path path = write("t.safetensors", content);
    expect_error([&] { TensorSource::open(path); }, ExitCode::kBadFile, fragment);
  };
  refused("1234567", "cut short: expected at least 8 bytes, got 7");
  refused(length_bytes(1), "cut short: expected a header of 1 bytes, got 0");
  refused(length_bytes(3) + "{}", "cut short: expected a header of 3 bytes, got 2; download it again");
  refused(length_bytes(100'000'000), "cut short: expected a header of 100000000 bytes");
  refused(length_bytes(100'000'001), "at most 100000000 bytes, got 100000001");
  refused(length_bytes(uint64_t{1} << 63), "at most 100000000 bytes, got 9223372036854775808");
  refused(length_bytes(~uint64_t{0}), "at most 100000000 bytes, got 18446744073709551615");
  refused("<!DOCTYPE html><html>", "not a safetensors file");
  refused(length_bytes(0), "no JSON object at byte 8");
  refused(length_bytes(3) + " {}", "no JSON object at byte 8");
  refused("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "git-LFS pointer");
}

TEST_F(SafetensorsTest, RefusesBadHeaders) {
  expect_refused("{", "", "not valid JSON");
  expect_refused("{}{", "", "not valid JSON");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{}})", "x", "a: duplicate key");
  expect_refused(R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", "x",
                 "a.dtype: duplicate");
  expect_refused("{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}", "",
                 "nested at most 64 deep");
  const auto refused = [&](const json& header, const std::string& fragment) {
    expect_refused(header.dump(), "01234567", fragment);
  };
  refused({{"__metadata__", {{"a", 1}}}}, "__metadata__.a: expected a string, got 1");
  refused({{"__metadata__", "x"}}, "__metadata__: expected an object, got \"x\"");
  refused({{"a", 1}}, "a: expected an object, got 1");
  refused({{"a", json::object()}}, "a.dtype: expected a string, got nothing");
  refused({{"a", entry("F128", {1}, {0, 8})}}, "a.dtype: unknown element type \"F128\"");
  refused({{"a", entry("U8", 8, {0, 8})}}, "a.shape: expected an array, got 8");
  refused({{"a", entry("U8", {-8}, {0, 8})}},
          "a.shape[0]: expected an integer in [0, 9223372036854775807], got -8");
  refused({{"a", entry("U8", {8.0}, {0, 8})}}, "a.shape[0]: expected an integer, got 8.0");
  refused({{"a", entry("U8", {~uint64_t{0}}, {0, 8})}}, "got 18446744073709551615");
  refused({{"a", entry("U8", {8}, json::array({0}))}}, "a.data_offsets: expected [begin, end]");
  refused({{"a", entry("U8", {8}, {-8, 0})}}, "a.data_offsets[0]: expected an integer in");
  refused({{"a", entry("U8", {8}, {8, 0})}}, "a.data_offsets: begins at 8, after its end 0");
}

TEST_F(SafetensorsTest, ChecksArithmetic) {
  const auto refused = [&](const json& shape, const char* dtype, const std::string& fragment) {
    expect_refused(json{{"a", entry(dtype, shape, {0, 8})}}.dump(), "01234567", fragment);
  };
  refused({7}, "U8", "a: U8 [7] takes 7 bytes, but data_offsets give 8");
  refused({9}, "U8", "a: U8 [9] takes 9 bytes, but data_offsets give 8");
  refused({5}, "F16", "a: F16 [5] takes 10 bytes, but data_offsets give 8");
  refused(json::array(), "U8", "a: U8 [] takes 1 bytes");
  refused({0}, "U8", "a: U8 [0] takes 0 bytes");
  refused({3}, "F4", "a: F4 [3] is no whole number of bytes");
  // Each product is 8 modulo 2^64.
  refused({int64_t{1} << 32, int64_t{1} << 32, 8}, "U8", "is no whole number of bytes below 2^61");
  refused({int64_t{1} << 60, 17}, "F64", "is no whole number of bytes below 2^61");
  refused({std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()}, "U8", "below 2^61");
}

TEST_F(SafetensorsTest, TensorsTileTheBuffer) {
  const auto refused = [&](const json& first, const json& second, const std::string& fragment) {
    const auto shape = [](const json& offsets) {
      return json::array({offsets[1].get<int64_t>() - offsets[0].get<int64_t>()});
    };
    const json header = {{"a", entry("U8", shape(first), first)}, {"b", entry("U8", shape(second), second)}};
    expect_refused(header.dump(), "01234567", fragment);
  };
  refused({0, 4}, {5, 8}, "\"b\": data_offsets: expected begin 4, got 5: a gap between tensors");
  refused({0, 4}, {3, 8}, "\"b\": data_offsets: expected begin 4, got 3: an overlap between tensors");
  refused({1, 4}, {4, 8}, "\"a\": data_offsets: expected begin 0, got 1: a gap between tensors");
  refused({0, 4}, {4, 9}, "cut short: expected 9 bytes of tensors, got 8; download it again");
  refused({0, 4}, {4, 7}, "expected 7 bytes of tensors, got 1 bytes after the last one");
  refused({0, 8}, {0, 8}, "expected begin 8, got 0");
  refused({0, 4}, {4, int64_t{1} << 60}, "cut short: expected 1152921504606846976 bytes of tensors, got 8");
}

class ShardsTest : public SafetensorsTest {
 protected:
  ShardsTest() {
    write("one.safetensors",
          file_of(json{{"a", entry("U8", {1}, {0, 1})}, {"x", entry("U8", {1}, {1, 2})}}.dump(), "ax"));
    write("two.safetensors", file_of(json{{"b", entry("U8", {1}, {0, 1})}}.dump(), "b"));
  }
  fs::path index(const json& weight_map) {
    return write("model.safetensors.index.json",
                 json{{"metadata", {{"total_size", 2}}}, {"weight_map", weight_map}}.dump());
  }
  void expect_refused(const json& weight_map, ExitCode code, const std::string& fragment) {
    index(weight_map);
    expect_error([&] { TensorSource::open(folder_); }, code, fragment);
  }
};

TEST_F(ShardsTest, OpensWhatTheIndexMaps) {
  const fs::path path = index({{"a", "one.safetensors"}, {"b", "two.safetensors"}});
  for (const fs::path& from : {path, folder_}) {
    const TensorSource source = TensorSource::open(from);
    EXPECT_EQ(source.names(), (std::vector<std::string_view>{"a", "b"})) << "x is not mapped";
    EXPECT_EQ(std::to_integer<char>(source.find("a")->data[0]), 'a');
    EXPECT_EQ(*source.find("b")->file, (folder_ / "two.safetensors").string());
    EXPECT_EQ(source.find("b")->name, "b");
  }
}

TEST_F(ShardsTest, RefusesNamesThatLeaveTheFolder) {
  for (const char* name : {"/etc/passwd", "../one.safetensors", "..", ".", "", "a/../b",
                           "sub/one.safetensors", "a\\b", "one..safetensors"}) {
    expect_refused({{"a", name}}, ExitCode::kBadFile,
                   "weight_map.a: expected the name of a file beside the index");
  }
  expect_refused({{"a", std::string("one\0", 4)}}, ExitCode::kBadFile,
                 "weight_map.a: expected the name of a file");
  expect_refused({{"a", std::string(256, 'x')}}, ExitCode::kBadFile,
                 "weight_map.a: expected the name of a file beside the index, got \"xxxx");
  expect_refused({{"a", 1}}, ExitCode::kBadFile, "weight_map.a: expected a string, got 1");
}

TEST_F(ShardsTest, RefusesWhatIsMissing) {
  expect_refused({{"b", "one.safetensors"}}, ExitCode::kBadFile,
                 "weight_map: \"b\" is not in one.safetensors");
  expect_refused({{"a", "one.safetensors"}, {"b", "gone.safetensors"}, {"c", "lost.safetensors"}},
                 ExitCode::kNotFound, "gone.safetensors: no such file; 2 of the 3 shards");
  expect_refused(json::object(), ExitCode::kBadFile, "weight_map: expected at least one tensor");
  expect_refused(json::array(), ExitCode::kBadFile, "weight_map: expected an object, got an array");
  write("model.safetensors.index.json",
        R"({"weight_map": {"a": "one.safetensors", "a": "two.safetensors"}})");
  expect_error([&] { TensorSource::open(folder_); }, ExitCode::kBadFile, "weight_map.a: duplicate key");
  write("model.safetensors.index.json", "{}");
  expect_error([&] { TensorSource::open(folder_); }, ExitCode::kBadFile,
               "weight_map: expected an object, got nothing");
}

TEST_F(SafetensorsTest, FolderWithoutWeightsIsNamed) {
  expect_error(
      [&] { TensorSource::open(folder_); }, ExitCode::kNotFound,
      folder_.string() + ": expected model.safetensors or model.safetensors.index.json in it, got neither");
  write("pytorch_model.bin", "x");
  expect_error([&] { TensorSource::open(folder_); }, ExitCode::kNotFound,
               "pytorch_model.bin, which has to be converted");
  expect_error([&] { TensorSource::open(folder_ / "none"); }, ExitCode::kNotFound, "none: no such file");
}

}  // namespace
}  // namespace soliton
