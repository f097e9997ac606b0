// GGUF files: what is read, and everything that a file may say that cannot be.
#include "models/gguf.h"

#include <gtest/gtest.h>

#include <limits>

#include "error_of.h"
#include "gguf_builder.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

class Gguf : public testing::Test {
 protected:
  std::filesystem::path write(std::string_view bytes, const std::string& name = "m.gguf") const {
    return folder_.write(name, bytes);
  }
  /// What opening these bytes is refused with, behind the file's name.
  std::string refusal(std::string_view bytes) const {
    const std::string path = write(bytes).string();
    std::string error = error_of([&] { GgufFile::open(path); });
    const size_t at = error.find(path + ": ");
    return at == std::string::npos ? error : error.substr(0, at) + error.substr(at + path.size() + 2);
  }

  const TemporaryFolder folder_;
};

GgufBuilder small() {
  GgufBuilder builder;
  builder.key("general.architecture", "llama").tensor("a", GgufType::kF32, {2, 3}, std::string(24, 'a'));
  return builder;
}

TEST_F(Gguf, HasWhatTheFileHas) {
  for (const uint32_t version : {2u, 3u}) {
    GgufBuilder builder = small();
    builder.version = version;
    builder.raw("u8", 0, bytes_of(uint8_t{200})).raw("i8", 1, bytes_of(int8_t{-3}));
    builder.raw("u64", 10, bytes_of(~uint64_t{0})).raw("i64", 11, bytes_of(int64_t{-1} << 40));
    builder.raw("f64", 12, bytes_of(0.1))
        .key("f32", 1e-5f)
        .key("flag", true)
        .key("flags", std::vector<float>{});
    builder.key("texts", std::vector<std::string>{"", "\u2581a"}).key("numbers", std::vector<int32_t>{1, -2});
    builder.tensor("b", GgufType::kQ4_0, {2, 64}, std::string(72, 'b'));
    builder.tensor("c", GgufType::kQ6_K, {256}, std::string(210, 'c'));
    const GgufFile file = GgufFile::open(write(builder.file()));
    EXPECT_EQ(file.metadata(), nlohmann::json::parse(R"({"general.architecture": "llama", "u8": 200, "i8": -3,
      "u64": 18446744073709551615, "i64": -1099511627776, "f64": 0.1, "f32": 1e-5, "flag": true, "flags": [],
      "texts": ["", "▁a"], "numbers": [1, -2]})"));
    ASSERT_EQ(file.tensors().size(), 3u);
    EXPECT_EQ(file.find("d"), nullptr);
    const GgufTensor& b = *file.find("b");
    EXPECT_EQ(b.type, GgufType::kQ4_0);
    EXPECT_EQ(b.shape, (std::vector<int64_t>{2, 64}));
    EXPECT_EQ(b.data.size(), 72u);
    for (const GgufTensor& tensor : file.tensors()) {
      for (const std::byte byte : tensor.data) ASSERT_EQ(static_cast<char>(byte), tensor.name[0]);
    }
  }
}

TEST_F(Gguf, AlignsAsTheFileSays) {
  GgufBuilder builder = small();
  builder.alignment = 256;
  builder.key("general.alignment", 256).tensor("b", GgufType::kF16, {5}, std::string(10, 'b'));
  EXPECT_EQ(static_cast<char>(GgufFile::open(write(builder.file())).find("b")->data[9]), 'b');
  for (const int alignment : {0, 3, 48, 1 << 21}) {
    GgufBuilder odd = small();
    odd.key("general.alignment", alignment);
    EXPECT_NE(refusal(odd.file()).find("4 general.alignment: expected "), std::string::npos) << alignment;
  }
}

TEST_F(Gguf, EndsAnywhere) {
  GgufBuilder builder = small();
  builder.key("tokens", std::vector<std::string>{"a", "b"}).key("scores", std::vector<float>{1, 2});
  const std::string whole = builder.file();
  for (size_t size = 1; size < whole.size(); ++size) {
    const std::string error = refusal(whole.substr(0, size));
    EXPECT_TRUE(error.starts_with("4 ")) << size << ": " << error;
  }
  EXPECT_EQ(refusal(whole), "no error");
}

TEST_F(Gguf, RefusesCountsBeyondTheFile) {
  constexpr uint64_t kHuge = uint64_t{1} << 63;
  const std::string magic = "GGUF" + bytes_of(uint32_t{3});
  EXPECT_EQ(refusal(magic + bytes_of(kHuge) + bytes_of(uint64_t{0})),
            "4 expected at most 1048576 tensors, got 9223372036854775808");
  EXPECT_EQ(refusal(magic + bytes_of(uint64_t{0}) + bytes_of(kHuge)),
            "4 expected at most 65536 keys of metadata, got 9223372036854775808");
  const auto with_key = [&](uint32_t type, const std::string& value) {
    return refusal(GgufBuilder().raw("k", type, value).file());
  };
  EXPECT_EQ(with_key(8, bytes_of(kHuge)),
            "4 k: expected a string of at most 100000000 bytes, got 9223372036854775808");
  for (const uint32_t element : {0u, 7u, 8u, 12u})
    EXPECT_NE(with_key(9, bytes_of(element) + bytes_of(kHuge)).find("4 k: cut short"), std::string::npos);
  EXPECT_NE(with_key(9, bytes_of(uint32_t{9}) + bytes_of(uint64_t{1})).find("expected an array of numbers"),
            std::string::npos);
  EXPECT_EQ(with_key(13, ""), "4 \"k\": expected a type of metadata, got 13");
  EXPECT_EQ(with_key(8, gguf_text("\xff")), "4 k: expected UTF-8, got other bytes");
  const std::string many(8'000'001, '\0');
  EXPECT_NE(
      with_key(9, bytes_of(uint32_t{0}) + bytes_of(uint64_t{many.size()}) + many).find("8000000 values"),
      std::string::npos);
}

TEST_F(Gguf, RefusesTensorsThatCannotBe) {
  const auto with_tensor = [&](GgufType type, std::vector<int64_t> shape) {
    return refusal(GgufBuilder().tensor("t", type, std::move(shape), std::string(32, '\0')).file());
  };
  EXPECT_EQ(with_tensor(GgufType::kF32, {8}), "no error");
  EXPECT_NE(with_tensor(GgufType::kF32, {9}).find("\"t\": cut short: expected 36 bytes"), std::string::npos);
  EXPECT_EQ(with_tensor(GgufType::kQ4_0, {16}),
            "4 \"t\": expected a multiple of 32 columns for Q4_0, got 16");
  EXPECT_EQ(with_tensor(GgufType::kF32, {}), "4 \"t\": expected 1 to 4 extents, got 0");
  EXPECT_EQ(with_tensor(GgufType::kF32, {1, 1, 1, 1, 1}), "4 \"t\": expected 1 to 4 extents, got 5");
  EXPECT_NE(with_tensor(GgufType::kF32, {0}).find("expected extents of 1 to 2^56, got 0"), std::string::npos);
  EXPECT_NE(with_tensor(GgufType::kF32, {-1}).find("expected extents of 1 to 2^56"), std::string::npos);
  const int64_t large = int64_t{1} << 40;
  EXPECT_NE(with_tensor(GgufType::kF32, {large, large}).find("at most 2^56 elements"), std::string::npos);
  EXPECT_NE(with_tensor(GgufType::kF32, {1 << 16, large}).find("cut short"), std::string::npos);
  EXPECT_EQ(with_tensor(static_cast<GgufType>(16), {256}),
            "5 t: expected a type that is read, got IQ2_XXS (16)");
  EXPECT_EQ(with_tensor(static_cast<GgufType>(99), {256}),
            "5 t: expected a type that is read, got a type that is not known (99)");
  EXPECT_EQ(refusal(small().tensor("a", GgufType::kF32, {1}, "1234").file()),
            "4 \"a\": two tensors of that name");
  EXPECT_EQ(refusal(small().key("general.architecture", "x").file()),
            "4 \"general.architecture\": duplicate key");
  std::string odd = small().file();
  odd[small().header().size() - 8] = 1;  // the offset
  EXPECT_EQ(refusal(odd), "4 \"a\": expected an offset that is a multiple of 32, got 1");
}

TEST_F(Gguf, NamesWhatElseTheFileIs) {
  EXPECT_EQ(refusal("PK\x03\x04 and so on"),
            "4 not a GGUF file: expected \"GGUF\" at its start, got \"PK\\x03\\x04\"");
  EXPECT_NE(refusal("version https://git-lfs.github.com/spec/v1\n").find("a git-LFS pointer"),
            std::string::npos);
  const auto of_version = [&](uint32_t version) {
    GgufBuilder builder = small();
    builder.version = version;
    return refusal(builder.file());
  };
  EXPECT_EQ(of_version(1), "5 expected GGUF of version 2 or 3, got 1");
  EXPECT_EQ(of_version(4), "5 expected GGUF of version 2 or 3, got 4");
  EXPECT_EQ(of_version(3u << 24), "5 expected a little-endian GGUF file, got a big-endian one");
}

/// One of `count` parts, with a tensor of its own.
GgufBuilder part(int number, int count, int num_tensors) {
  GgufBuilder builder;
  builder.key("split.no", number).key("split.count", count).key("split.tensors.count", num_tensors);
  builder.tensor("t" + std::to_string(number), GgufType::kF32, {1}, "1234");
  return builder;
}

TEST_F(Gguf, ReadsAllParts) {
  const auto name = [](int number) { return "m-0000" + std::to_string(number + 1) + "-of-00003.gguf"; };
  for (const int number : {0, 1, 2}) write(part(number, 3, 3).file(), name(number));
  const auto open = [&](const std::string& first) {
    return error_of([&] { EXPECT_EQ(GgufFile::open(folder_.path() / first).tensors().size(), 3u); });
  };
  EXPECT_EQ(open(name(0)), "no error");
  EXPECT_NE(open(name(1)).find("2 "), std::string::npos);
  EXPECT_NE(open(name(1)).find("expected the first part, m-00001-of-00003.gguf, got another"),
            std::string::npos);
  write(part(2, 3, 3).file(), name(1));
  EXPECT_NE(open(name(0)).find("m-00002-of-00003.gguf: split.no: expected"), std::string::npos);
  write(part(1, 3, 3).tensor("t0", GgufType::kF32, {1}, "1234").file(), name(1));
  EXPECT_NE(open(name(0)).find("split.tensors.count: expected 4, as the parts have together, got 3"),
            std::string::npos);
  write(part(0, 3, 4).file(), name(0));
  EXPECT_NE(open(name(0)).find("\"t0\": also in another part"), std::string::npos);
  std::filesystem::remove(folder_.path() / name(2));
  EXPECT_NE(open(name(0)).find("m-00003-of-00003.gguf: no such file"), std::string::npos);
  write(part(0, 3, 3).file(), "renamed.gguf");
  EXPECT_NE(open("renamed.gguf").find("expected a name that ends in -00001-of-00003.gguf"),
            std::string::npos);
}

}  // namespace
}  // namespace soliton
