// Every file of a model folder in every state of disrepair that downloads, copies and hostile authors leave it in.
#include <sys/stat.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "cli/cli_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;

const std::string kShard = "model-00001-of-00001.safetensors";
const std::string kIndex = "model.safetensors.index.json";
const std::string kWeights = "model.safetensors";
const std::string kTensor = "model.layers.0.self_attn.q_proj.weight";

/// How a file is spoilt, and what is said of it.
struct Damage {
  const char* name;
  std::function<void(const fs::path&)> apply;
  int status;
  const char* reason;
};

void replace_by_folder(const fs::path& path) {
  fs::remove(path);
  fs::create_directory(path);
}
void replace_by_dangling_link(const fs::path& path) {
  fs::remove(path);
  fs::create_symlink("blobs/0123456789abcdef", path);
}
void replace_by_pipe(const fs::path& path) {
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
}
void forbid(const fs::path& path) {
  fs::permissions(path, fs::perms::none);
}
std::function<void(const fs::path&)> text(const std::string& content) {
  return [content](const fs::path& path) { write_text(path, content); };
}
void cut(const fs::path& path) {
  const std::string content = read_text(path);
  write_text(path, content.substr(0, content.size() / 2));
}

const std::vector<Damage> kOfAnyFile = {
    {"empty", text(""), kBadFile, "the file is empty"},
    {"git-LFS pointer", text(kLfsPointer), kBadFile, "a git-LFS pointer, not the content"},
    {"a folder", replace_by_folder, kNotFound, "expected a file, got a directory"},
    {"a link that leads nowhere", replace_by_dangling_link, kNotFound, "no such file"},
    {"a pipe", replace_by_pipe, kNotFound, "expected a regular file"},
};

const std::vector<Damage> kOfJson = {
    {"cut", cut, kBadFile, "not valid JSON"},
    {"a page of a web server", text("<!doctype html><title>404</title>"), kBadFile, "not valid JSON"},
    {"bytes that are no text", text("\xff\xfe{\xa0}"), kBadFile, "not valid JSON"},
    {"an array", text("[1]"), kBadFile, "expected an object, got an array"},
    {"a number", text("3"), kBadFile, "expected an object, got 3"},
    {"a key given twice", text(R"({"a": 1, "a": 2})"), kBadFile, "a: duplicate key"},
    {"nested deeply", text(std::string(100'000, '[')), kBadFile, "nested at most 64 deep"},
    {"a number beyond all bounds", text(R"({"a": 1e999})"), kBadFile, "number overflow"},
};

const std::vector<Damage> kOfWeights = {
    {"cut", cut, kBadFile, "cut short"},
    {"seven bytes", text("1234567"), kBadFile, "cut short"},
    {"a page of a web server", text("<!doctype html><title>404</title>"), kBadFile, "not a safetensors file"},
};

class ModelFolder : public Cli {
 protected:
  /// Spoils the file, expects the error, and puts the file back.
  void expect_damage(const std::string& file, const Damage& damage, const std::string& program,
                     const Arguments& arguments) {
    SCOPED_TRACE(file + ": " + damage.name);
    const fs::path path = model() / file;
    fs::rename(path, folder_.path() / "kept");
    fs::copy(folder_.path() / "kept", path);
    damage.apply(path);
    expect_error(program, arguments, damage.status, "tiny-stories/" + file, damage.reason);
    fs::remove_all(path);
    fs::rename(folder_.path() / "kept", path);
  }
  void expect_damages(const std::string& file, const std::vector<Damage>& damages) {
    for (const Damage& damage : damages) expect_damage(file, damage, "soliton-chat", chat());
  }

  void write_template() const {
    write_text(model() / "chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  }
  /// The weights as one shard, of whose tensors the index names one.
  void write_shard() const {
    fs::rename(model() / kWeights, model() / kShard);
    write_text(model() / kIndex, json{{"weight_map", {{kTensor, kShard}}}}.dump());
  }
  /// A file of weights with this header, and `num_bytes` of data.
  void write_header(const std::string& header, size_t num_bytes) const {
    std::string length(8, '\0');
    for (size_t i = 0; i < length.size(); ++i)
      length[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
    write_text(model() / kWeights, length + header + std::string(num_bytes, '\0'));
  }
  json read_json(const std::string& file) const { return json::parse(read_text(model() / file)); }
};

TEST_F(ModelFolder, NamesEveryFileThatCannotBeRead) {
  write_template();
  for (const char* file : {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
                           "chat_template.jinja", "model.safetensors"}) {
    expect_damages(file, kOfAnyFile);
  }
  write_shard();
  for (const std::string& file : {kIndex, kShard}) expect_damages(file, kOfAnyFile);
}

TEST_F(ModelFolder, NamesEveryFileThatMayNotBeRead) {
  write_template();
  forbid(model() / "config.json");
  if (access((model() / "config.json").c_str(), R_OK) == 0) GTEST_SKIP() << "root reads everything";
  fs::permissions(model() / "config.json", fs::perms::owner_read);
  const std::vector<Damage> forbidden = {{"forbidden", forbid, kNotFound, "cannot be read"}};
  for (const char* file : {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
                           "chat_template.jinja", "model.safetensors"}) {
    expect_damages(file, forbidden);
  }
  write_shard();
  for (const std::string& file : {kIndex, kShard}) expect_damages(file, forbidden);
}

TEST_F(ModelFolder, NamesEveryFileThatIsNotWhatItShouldBe) {
  for (const char* file :
       {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"})
    expect_damages(file, kOfJson);
  expect_damages(kWeights, kOfWeights);
  write_shard();
  expect_damages(kIndex, kOfJson);
  expect_damages(kShard, kOfWeights);
}

TEST_F(ModelFolder, TheOtherProgramsSayTheSame) {
  const Arguments bench = {"-m", "tiny-stories", "-k", kTinyKernel, "-n", "1"};
  const Arguments gen = {"tiny-stories", "--gpu", "h200", "--dry-run"};
  for (const std::vector<Damage>& damages : {kOfAnyFile, kOfJson}) {
    for (const Damage& damage : damages) {
      expect_damage("config.json", damage, "soliton-gen", gen);
      expect_damage("config.json", damage, "soliton-bench", bench);
    }
  }
  for (const std::vector<Damage>& damages : {kOfAnyFile, kOfWeights}) {
    for (const Damage& damage : damages) expect_damage(kWeights, damage, "soliton-bench", bench);
  }
}

/// A member of a JSON file, by pointer, that has another value.
struct Value {
  const char* file;
  const char* pointer;
  json value;
  int status;
  const char* reason;
};

TEST_F(ModelFolder, NamesValuesThatCannotBe) {
  constexpr uint64_t kLargest = UINT64_MAX;
  const std::vector<Value> values = {
      {"config.json", "/hidden_size", kLargest, kBadFile,
       "hidden_size: expected a multiple of 64 from 64 to 65536, got 18446744073709551615"},
      {"config.json", "/hidden_size", -256, kBadFile,
       "hidden_size: expected a multiple of 64 from 64 to 65536, got -256"},
      {"config.json", "/hidden_size", "256", kBadFile, "hidden_size: expected an integer, got \"256\""},
      {"config.json", "/hidden_size", 256.5, kBadFile, "hidden_size: expected an integer, got 256.5"},
      {"config.json", "/hidden_size", 100, kMismatch,
       "hidden_size: expected a multiple of 64 from 64 to 65536, got 100"},
      {"config.json", "/intermediate_size", 1e300, kBadFile, "intermediate_size: expected an integer"},
      {"config.json", "/num_hidden_layers", 0, kBadFile,
       "num_hidden_layers: expected an integer from 1 to 1024, got 0"},
      {"config.json", "/num_attention_heads", nullptr, kBadFile, "num_attention_heads: expected an integer"},
      {"config.json", "/num_key_value_heads", 3, kBadFile, "num_key_value_heads: expected a divisor of"},
      {"config.json", "/head_dim", 63, kMismatch, "head_dim: expected one of"},
      {"config.json", "/vocab_size", json::array(), kBadFile,
       "vocab_size: expected an integer, got an array"},
      {"config.json", "/max_position_embeddings", kLargest, kBadFile,
       "max_position_embeddings: expected an integer"},
      {"config.json", "/rms_norm_eps", -1, kBadFile, "rms_norm_eps: expected a number above 0 and below 0.1"},
      {"config.json", "/rope_theta", "x", kBadFile, "rope_theta: expected a number"},
      {"config.json", "/rope_scaling/factor", 0, kBadFile,
       "rope_scaling.factor: expected a number from 1 to 1024"},
      {"config.json", "/rope_scaling/rope_type", "spiral", kMismatch, "rope_scaling.rope_type: expected"},
      {"config.json", "/tie_word_embeddings", 1, kBadFile,
       "tie_word_embeddings: expected true or false, got 1"},
      {"config.json", "/eos_token_id", kLargest, kBadFile, "eos_token_id: expected an integer in [0, 2047]"},
      {"config.json", "/architectures", json::array({"T5ForConditionalGeneration"}), kMismatch,
       "architectures: "},
      {"config.json", "/architectures", nullptr, kBadFile, "architectures: expected an array"},
      {"config.json", "/quantization_config", 4, kBadFile, "quantization_config: expected an object, got 4"},
      {"generation_config.json", "/eos_token_id", 2048, kBadFile,
       "expected an integer in [0, 2047], got 2048"},
      {"generation_config.json", "/eos_token_id", json::array({"x"}), kBadFile,
       "eos_token_id[0]: expected an integer"},
      {"tokenizer.json", "/model/vocab", json::object(), kBadFile,
       "model.vocab: expected at least one token"},
      {"tokenizer.json", "/model/vocab/a", kLargest, kBadFile,
       "model.vocab.a: expected an integer in [0, 4194303]"},
      {"tokenizer.json", "/model/vocab/a", 7, kBadFile, "which another token has"},
      {"tokenizer.json", "/model/merges/0", "a", kBadFile, "model.merges[0]: expected two tokens"},
      {"tokenizer.json", "/model/type", "Unigram", kMismatch, "expected type BPE, got \"Unigram\""},
      {"tokenizer.json", "/added_tokens/0/id", -1, kBadFile,
       "added_tokens[0].id: expected an integer in [0, 4194303]"},
      {"tokenizer.json", "/decoder", "x", kBadFile, "decoder: expected an object"},
      {"tokenizer_config.json", "/bos_token", 5, kBadFile, "bos_token: expected a string, got 5"},
      {"tokenizer_config.json", "/chat_template", 5, kBadFile, "chat_template: expected a string, got 5"},
      {"tokenizer_config.json", "/chat_template", "{% if %}", kBadFile,
       "chat_template:1: expected an expression"},
      {"tokenizer_config.json", "/chat_template", "{% for i in range(1000000000000) %}{% endfor %}", kLimit,
       "range"},
      {"tokenizer_config.json", "/chat_template", "Hi", kBadFile, "says the same to all: \"Hi\""},
  };
  for (const Value& value : values) {
    SCOPED_TRACE(std::string(value.file) + " " + value.pointer);
    const std::string before = read_text(model() / value.file);
    json document = json::parse(before);
    document[json::json_pointer(value.pointer)] = value.value;
    write_text(model() / value.file, document.dump());
    expect_error("soliton-chat", chat(), value.status, std::string("tiny-stories/") + value.file,
                 value.reason);
    write_text(model() / value.file, before);
  }
}

TEST_F(ModelFolder, NamesTensorsThatCannotBe) {
  struct Header {
    std::string entry;  // of the one tensor, over 12 bytes of data
    const char* reason;
  };
  const std::string where = R"("data_offsets":[0,12])";
  std::string many = "1";
  for (int i = 0; i < 10'000; ++i) many += ",1";
  const std::vector<Header> headers = {
      {R"({"dtype":"BF16","shape":[4611686018427387904,4],)" + where + "}",
       "no whole number of bytes below 2^61"},
      {R"({"dtype":"BF16","shape":[4294967296,4294967296],)" + where + "}",
       "no whole number of bytes below 2^61"},
      {R"({"dtype":"BF16","shape":[2305843009213693952,16],"data_offsets":[0,0]})",
       "no whole number of bytes"},
      {R"({"dtype":"BF16","shape":[18446744073709551615],)" + where + "}",
       "shape[0]: expected an integer in"},
      {R"({"dtype":"BF16","shape":[-2,-3],)" + where + "}", "shape[0]: expected an integer in"},
      {R"({"dtype":"BF16","shape":[2.0,3],)" + where + "}", "shape[0]: expected an integer, got 2.0"},
      {R"({"dtype":"BF16","shape":[2,4],)" + where + "}",
       "BF16 [2, 4] takes 16 bytes, but data_offsets give 12"},
      {R"({"dtype":"BF16","shape":[)" + many + "]," + where + "}",
       "BF16 [1, 1, 1, 1, 1, 1, 1, 1, ...] takes 2 bytes"},
      {R"({"dtype":"BF16",)" + where + "}", "shape: expected an array, got nothing"},
      {R"({"dtype":"BF17","shape":[2,3],)" + where + "}", "unknown element type \"BF17\""},
      {R"({"dtype":"BF16","shape":[2,3],"data_offsets":[12,0]})", "begins at 12, after its end 0"},
      {R"({"dtype":"BF16","shape":[2,3],"data_offsets":[0,9223372036854775807]})", "takes 12 bytes"},
      {R"({"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]})", "a gap between tensors"},
      {R"({"dtype":"BF16","shape":[2,3],"data_offsets":[-12,0]})", "data_offsets[0]: expected an integer in"},
      {R"({"dtype":"BF16","shape":[2,3],)" + where +
           R"(},"b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]})",
       "an overlap between tensors"},
      {R"({"dtype":"BF16","shape":[2,3],)" + where + R"(},"a":1,"a":2)", "a: duplicate key"},
      {R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})", "got 8 bytes after the last one"},
  };
  for (const Header& header : headers) {
    SCOPED_TRACE(header.reason);
    write_header("{\"" + kTensor + "\":" + header.entry + "}", 12);
    expect_error("soliton-chat", chat(), kBadFile, "tiny-stories/" + kWeights, header.reason);
  }
  write_header("{}", 0);
  expect_error("soliton-chat", chat(), kMismatch, "tiny-stories", "but there is no such tensor");
  for (const char* length : {"\x00\x00\x00\x00\x00\x00\x00\x80", "\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    write_text(model() / kWeights, std::string(length, 8) + "{}");
    expect_error("soliton-chat", chat(), kBadFile, "tiny-stories/" + kWeights, "not a safetensors file");
  }
}

// Else a kernel would be made, and kept, that nothing runs on.
TEST_F(ModelFolder, NamesTensorsThatDoNotFitBeforeAKernelIsMade) {
  const Arguments arguments{"-m", "tiny-stories", "-p", "Once upon", "-n", "2"};
  const std::string cache = "XDG_CACHE_HOME=" + (path() / "cache").string();
  const std::vector<Value> values = {
      {"config.json", "/num_hidden_layers", 5, kMismatch,
       "model.layers.5.*: expected 5 layers (num_hidden_layers)"},
      {"config.json", "/num_hidden_layers", 7, kMismatch,
       "model.layers.6.input_layernorm.weight: expected BF16"},
      {"config.json", "/vocab_size", 2112, kMismatch, "expected BF16 [2112, 256], got BF16 [2048, 256]"},
      {"config.json", "/tie_word_embeddings", false, kMismatch,
       "lm_head.weight: expected BF16 [2048, 256], but there is no such tensor"},
      {"config.json", "/intermediate_size", 1024, kMismatch,
       "expected BF16 [1024, 256], got BF16 [768, 256]"},
      {"config.json", "/num_key_value_heads", 1, kMismatch, "k_proj.weight: expected BF16 [64, 256]"}};
  for (const Value& value : values) {
    SCOPED_TRACE(value.pointer);
    const std::string before = read_text(model() / value.file);
    json document = json::parse(before);
    document[json::json_pointer(value.pointer)] = value.value;
    write_text(model() / value.file, document.dump());
    expect_error("soliton-chat", arguments, value.status, "tiny-stories", value.reason, {cache});
    expect_error("soliton-bench", {"tiny-stories", "-n", "1"}, value.status, "tiny-stories", value.reason,
                 {cache});
    write_text(model() / value.file, before);
  }
}

TEST_F(ModelFolder, NamesShardsThatCannotBe) {
  write_shard();
  const auto expect_index = [&](const json& weight_map, const std::string& reason) {
    write_text(model() / kIndex, json{{"weight_map", weight_map}}.dump());
    expect_error("soliton-chat", chat(), kBadFile, "tiny-stories/" + kIndex, reason);
  };
  for (const char* name : {"../model.safetensors", "/etc/passwd", "a/b", "..", ".", ""})
    expect_index({{kTensor, name}}, "expected the name of a file beside the index");
  expect_index({{kTensor, 3}}, "expected a string, got 3");
  expect_index(json::object(), "expected at least one tensor, got none");
  expect_index(json::array(), "weight_map: expected an object, got an array");
  expect_index({{"absent.weight", kShard}}, "\"absent.weight\" is not in " + kShard);
  write_text(model() / kIndex, json{{"weight_map", {{kTensor, "model-00002-of-00002.safetensors"}}}}.dump());
  expect_error("soliton-chat", chat(), kNotFound, "tiny-stories/model-00002-of-00002.safetensors",
               "1 of the 1 shards that tiny-stories/" + kIndex + " names are missing");
}

TEST_F(ModelFolder, SaysWhatATokenizerHasToBeConvertedFrom) {
  fs::rename(model() / "tokenizer.json", model() / "tokenizer.model");
  expect_error("soliton-chat", chat(), kNotFound, "tiny-stories/tokenizer.json", "only a tokenizer.model");
}

TEST_F(ModelFolder, RefusesAPageOfAWebServerForATemplate) {
  write_text(model() / "chat_template.jinja", "<!doctype html><title>404</title>");
  expect_error("soliton-chat", chat(), kBadFile, "tiny-stories/chat_template.jinja", "says the same to all");
  fs::rename(model() / "chat_template.jinja", path() / "page.html");
  expect_error("soliton-chat", chat({"--chat-template", "page.html"}), kBadFile, "page.html",
               "says the same to all");
}

TEST_F(ModelFolder, SaysWhatWorksButSurprises) {
  fs::remove(model() / "generation_config.json");
  json config = read_json("config.json");
  config.erase("eos_token_id");
  write_text(model() / "config.json", config.dump());
  json tokenizer = read_json("tokenizer.json");
  json more = tokenizer["added_tokens"][0];
  more["content"] = "<more>";
  more["id"] = 2048;
  tokenizer["added_tokens"].push_back(more);
  write_text(model() / "tokenizer.json", tokenizer.dump());
  const Outcome outcome = run("soliton-chat", chat());
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("tiny-stories/config.json: eos_token_id: expected one"), 0u) << outcome.err;
  EXPECT_NE(outcome.err.find("\ntiny-stories/tokenizer.json: expected at most 2048 tokens"),
            std::string::npos)
      << outcome.err;
}

TEST_F(ModelFolder, WorksWithoutWhatModelsMayLack) {
  const std::string answer = run("soliton-chat", chat()).out;
  fs::remove(model() / "generation_config.json");
  fs::remove(model() / "tokenizer_config.json");
  const Outcome outcome = run("soliton-chat", chat());
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, answer);
  EXPECT_NE(answer, "");
}

}  // namespace
}  // namespace soliton
