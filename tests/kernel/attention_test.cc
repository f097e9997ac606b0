// Variants of attention, one by one and in pairs, with every head dim, in kernels of one row, 8 and 64: whole kernels of one
// small layer, over a cache of random keys and values, whose vectors are read once a step has been launched. What the kernel has
// of q, k and v is compared with a float64 product, norm and rotation, and what attention makes of these with attention in
// float64 (attention_bounds.h); tolerances are derived, not tuned.
#include <set>
#include <sstream>

#include "kernel/attention_bounds.h"
#include "kernel/kernel_cases.h"
#include "kernel/tree_fixture.h"
#include "layout/tag.h"

namespace soliton {
namespace {

constexpr double kWhole = std::numeric_limits<double>::quiet_NaN();

/// The kernels of tests/kernel/attention_kernels.cmake.
std::vector<std::string> kernel_names() {
  std::istringstream all(SOLITON_ATTENTION_KERNELS);
  return {std::istream_iterator<std::string>(all), std::istream_iterator<std::string>()};
}

double f16_at(const unsigned char* at) {
  F16 value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

class AttentionUnderTest {
 public:
  explicit AttentionUnderTest(const std::string& name, OwnScore own = nullptr)
      : kernel_(name, kTestContext, kPages), own_(own) {
    weights_ = random_weights(kernel_.facts(), kWeightSeed);
    fill_pool();
  }

  void expect_one_row(int position) {
    Engine& engine = kernel_.engine();
    engine.reset_tree();
    engine.set_position(position);
    const std::vector<int32_t> tokens = {kernel_.any_token()};
    TreeSnapshot tree;
    engine.tree().reserve(engine.main_branch(), 1);
    engine.tree().snapshot(tree);
    engine.decode({.tokens = tokens, .max_tokens = 1});
    expect_rows(0, tree, tokens);
    restore_pool();
  }

  /// `kernel`: of the library. All its rows, or all but a few, are in use.
  void expect_tree(int kernel) {
    Engine& engine = kernel_.engine();
    const int rows = engine.library().descriptor(kernel).rows;
    engine.clear_tree();
    KvTree& tree = kernel_.tree();
    const Branch root = tree.open();
    tree.append(root, kernel_.pick(200));
    std::vector<Branch> branches = tree.fork(root, 2);
    tree.append(branches[0], kernel_.pick(90));
    for (const Branch branch : tree.fork(branches[0], 2)) {
      tree.append(branch, kernel_.pick(30));
      branches.push_back(branch);
    }
    branches[0] = branches[1];
    branches.erase(branches.begin() + 1);
    // A branch of a draft, whose rows see one another as its paths go; the others have one row.
    Drafts drafts = kernel_.plain(branches);
    const int drafted = rows - static_cast<int>(branches.size()) + 1 - kernel_.pick(2);
    drafts[branches[static_cast<size_t>(kernel_.pick(3))]] = kernel_.any_draft(drafted);
    const std::vector<int32_t> tokens = kernel_.prepare(drafts);
    TreeSnapshot snapshot;
    tree.reserve(1);
    tree.snapshot(snapshot);
    const TreeResult result = engine.decode_tree({.tokens = tokens, .num_steps = 1});
    ASSERT_EQ(result.kernel, kernel);
    expect_rows(kernel, snapshot, tokens);
    restore_pool();
  }

 private:
  static constexpr int kLayer = 0;
  static constexpr int kPages = 24;

  const ModelFacts& facts() const { return kernel_.facts(); }
  size_t head_dim() const { return static_cast<size_t>(facts().head_dim); }
  size_t num_heads() const { return static_cast<size_t>(facts().num_heads); }
  size_t num_kv_heads() const { return static_cast<size_t>(facts().num_kv_heads); }

  // ---- The cache

  /// With a window its only layer has its pages in a pool of their own.
  bool has_window() const { return kernel_.engine().tree().windows().window > 0; }
  /// Of the layer's pool, with the one that stands for pages which are gone.
  int num_pages() const {
    const KvTree& tree = kernel_.engine().tree();
    return has_window() ? tree.gone_page() + 1 : tree.num_pages();
  }
  unsigned char* page_of(int page, size_t kv_head) const {
    return static_cast<unsigned char*>(has_window() ? params().window_pool : params().kv_pool) +
           kv().page_offset(page, kLayer, static_cast<int>(kv_head));
  }
  KvShape kv() const { return kernel_.engine().library().card_kv(); }

  /// All its pages with random tokens: keys within 1.5 of 0 and values within 1, or bytes that mean about as much.
  void fill_pool() {
    kernel_.engine().reset_tree();
    kernel_.engine().decode({.tokens = std::vector<int32_t>{0}, .max_tokens = 1});  // says where it lies
    std::uniform_real_distribution<float> unit(-1, 1);
    const KvShape shape = kv();
    pool_.resize(static_cast<size_t>(num_pages()) * num_kv_heads() * 2 * kKvPageTokens * head_dim());
    zeros_.resize(head_dim());
    for (int page = 0; page < num_pages(); ++page) {
      for (size_t head = 0; head < num_kv_heads(); ++head) {
        for (const bool is_value : {false, true}) {
          unsigned char* half = page_of(page, head) + (is_value ? shape.half_bytes() : 0);
          for (int token = 0; token < kKvPageTokens; ++token) {
            const int exponent = 127 - 7 - kernel_.pick(3);
            if (shape.e4m3) half[shape.exponent_offset(token)] = static_cast<unsigned char>(exponent);
            double* kept = cached(page, head, token, is_value);
            for (int dim = 0; dim < facts().head_dim; ++dim) {
              unsigned char* at =
                  half + (is_value ? shape.value_offset(token, dim) : shape.key_offset(token, dim));
              const float value = unit(kernel_.random());
              double& kept_value = kept[is_value ? static_cast<size_t>(dim) : place(dim)];
              if (shape.e4m3) {
                *at = static_cast<unsigned char>(float_to_e4m3(value * kE4m3Largest));
                kept_value = double{e4m3_to_float(*at)} * double{e4m3_scale(exponent)};
              } else {
                const auto rounded = static_cast<F16>(is_value ? value : 1.5f * value);
                std::memcpy(at, &rounded, sizeof rounded);
                kept_value = static_cast<double>(rounded);
              }
            }
          }
        }
      }
    }
    bytes_.assign(page_of(0, 0), page_of(num_pages(), 0));
  }
  /// Takes back what a step has appended.
  void restore_pool() const { std::copy(bytes_.begin(), bytes_.end(), page_of(0, 0)); }

  /// A head's key of a token of a page, or its value, in the order of the model's dims.
  double* cached(int page, size_t kv_head, int token, bool is_value) {
    const size_t half = (static_cast<size_t>(page) * num_kv_heads() + kv_head) * 2 + (is_value ? 1 : 0);
    return pool_.data() + (half * kKvPageTokens + static_cast<size_t>(token)) * head_dim();
  }

  // ---- What a kernel has of a step's own tokens, in the order of the model's dims

  const KernelPlan& plan(int kernel) const { return *kernel_.engine().library().descriptor(kernel).plan; }
  const LaunchParams& params() const { return kernel_.launched(); }
  const unsigned char* workspace(const Vector& vector) const {
    return static_cast<const unsigned char*>(params().workspace) + vector.offset;
  }
  /// The model's dim of a kernel's, of q or k.
  size_t place(int dim) const {
    return static_cast<size_t>(model_dim(dim, facts().head_dim, facts().rope_dims));
  }

  /// A word of a vector of one row's kernel.
  static double untagged(const unsigned char* at) {
    uint32_t bits = 0;
    std::memcpy(&bits, at, sizeof bits);
    return std::bit_cast<float>(bits & ~kTagMask);
  }

  /// Heads of q, k, or v of a row as they lie in the workspace.
  enum class Part { kQuery, kKey, kValue };
  BoundedVector stored(int kernel, int row, Part part, size_t head) const {
    const Vector vector = plan(kernel).heads_in();
    const unsigned char* words = workspace(vector);
    const size_t before = part == Part::kQuery ? 0
                          : part == Part::kKey ? num_heads()
                                               : num_heads() + num_kv_heads();
    BoundedVector values(head_dim());
    for (int dim = 0; dim < facts().head_dim; ++dim) {
      const size_t to = part == Part::kValue ? static_cast<size_t>(dim) : place(dim);
      if (plan(kernel).rows == 1) {
        values[to].value = untagged(words + ((before + head) * head_dim() + static_cast<size_t>(dim)) * 4);
        continue;
      }
      const QkvLayout layout = plan(kernel).qkv_layout();
      const auto kv_head = static_cast<int>(head);
      if (part == Part::kQuery) {
        const int query = row * layout.group + static_cast<int>(head) % layout.group;
        for (int of = 0; of < plan(kernel).shape().parts; ++of)
          values[to].value += f16_at(words + layout.query_offset(kv_head / layout.group, query, dim, of));
      } else if (part == Part::kKey) {
        values[to].value = f16_at(words + layout.keys_offset(kv_head) + layout.kv.key_offset(row, dim));
      } else {
        values[to].value = f16_at(words + layout.values_offset(kv_head) + layout.kv.value_offset(row, dim));
      }
    }
    return values;
  }

  /// As attention uses them: one row's kernel norms and rotates heads on the way, and makes f16 of all.
  BoundedVector used(int kernel, int row, int position, Part part, size_t head) const {
    BoundedVector values = stored(kernel, row, part, head);
    const bool is_one = plan(kernel).rows == 1;
    const bool turns = is_one && facts().head_norm != 0 && part != Part::kValue;
    if (turns) values = normed_and_rotated(values, position, part);
    double largest = 0;
    for (Bounded& each : values) {
      if (is_one && part == Part::kQuery) each.error += kTwoParts * std::abs(each.value) + kUnit;
      if (part == Part::kQuery) continue;
      each.value = static_cast<double>(static_cast<F16>(static_cast<float>(each.value)));
      if (turns) each.error += 2 * kOnePart * std::abs(each.value);  // on the other side of a rounding
      largest = std::max(largest, std::abs(each.value));
    }
    if (kv().e4m3 && part != Part::kQuery) {
      const int exponent = e4m3_exponent(static_cast<float>(largest));
      for (Bounded& each : values) {
        each.value = round_to_e4m3(static_cast<float>(each.value), exponent);
        if (turns) each.error += std::abs(each.value) / 8 + largest * 0x1p-16;
      }
    }
    return values;
  }

  // ---- The same from the weights

  BoundedVector normed_and_rotated(const BoundedVector& head, int position, Part part) const {
    BoundedVector result = head;
    if (facts().head_norm != 0) {
      const Bf16Bits& weight = part == Part::kKey ? weights_.layers[0].k_norm : weights_.layers[0].q_norm;
      double squares = 0;
      double error = 0;
      for (const Bounded& each : head) {
        squares += each.value * each.value;
        error += each.error * each.error;
      }
      const double factor = 1 / std::sqrt(squares / facts().head_dim + facts().norm_epsilon);
      const double off = std::sqrt(error / squares) + 0x1p-20;  // of the factor, relative
      for (size_t d = 0; d < head.size(); ++d) {
        const double w = factor * from_bf16_bits(weight[d]);
        result[d] = {head[d].value * w, std::abs(w) * (head[d].error + std::abs(head[d].value) * off)};
      }
    }
    const int32_t rope = rope_of_layer(facts(), kLayer);
    ModelFacts rotation = facts();
    if (rope == kLocalRope) rotation.rope_theta = facts().rope_local_theta;
    const std::vector<float> frequencies = rotary_frequencies(rotation);
    if (rope != kNoRope) {
      std::vector<double> values;
      for (const Bounded& each : result) values.push_back(each.value);
      rotate(values, position, frequencies);
      for (size_t i = 0; i < frequencies.size(); ++i) {
        Bounded& first = result[i];
        Bounded& second = result[i + frequencies.size()];
        const double error =
            first.error + second.error + 4 * kUnit * (std::abs(first.value) + std::abs(second.value));
        first = {values[i], error};
        second = {values[i + frequencies.size()], error};
      }
    }
    if (part != Part::kQuery || facts().query_scale_beta == 0) return result;
    const double scale = 1 + facts().query_scale_beta *
                                 std::log(1 + std::floor(double{1} * position / facts().query_scale_context));
    for (Bounded& each : result)
      each = {each.value * scale, each.error * scale + 0x1p-21 * std::abs(each.value) * scale};
    return result;
  }

  /// Of a row that feeds `token`: a float64 product with the embedding, which kernels have in bf16, of one part or two.
  BoundedVector expected(int kernel, int32_t token, int position, Part part, size_t head) const {
    const ReferenceLayer& layer = weights_.layers[0];
    const auto hidden = static_cast<size_t>(facts().hidden);
    const std::span<const uint16_t> row(weights_.embedding.data() + static_cast<size_t>(token) * hidden,
                                        hidden);
    std::vector<double> embedded;
    for (const uint16_t bits : row) embedded.push_back(from_bf16_bits(bits));
    const std::vector<double> x = rms_norm(embedded, layer.attention_norm, facts().norm_epsilon);
    const bool is_one = plan(kernel).rows == 1;
    const double of_x = (is_one || plan(kernel).shape().parts > 1 ? 0x1p-16 : 0x1p-8) + 128 * kUnit;
    const Bf16Bits& matrix = part == Part::kQuery ? layer.q : part == Part::kKey ? layer.k : layer.v;
    BoundedVector values(head_dim());
    for (size_t d = 0; d < head_dim(); ++d) {
      double magnitude = 0;
      for (size_t i = 0; i < hidden; ++i) {
        const double product = x[i] * from_bf16_bits(matrix[(head * head_dim() + d) * hidden + i]);
        values[d].value += product;
        magnitude += std::abs(product);
      }
      values[d].error = magnitude * of_x + kTwoParts * std::abs(values[d].value);
    }
    const bool turns = part != Part::kValue && !(is_one && facts().head_norm != 0);
    if (turns) values = normed_and_rotated(values, position, part);
    if (is_one) return values;
    const double rounded = part == Part::kQuery && plan(kernel).shape().parts > 1 ? kTwoParts : kOnePart;
    for (Bounded& each : values) each.error += rounded * (std::abs(each.value) + each.error) + kUnit;
    return values;
  }

  // ---- Comparison

  AttentionPrecision precision(int kernel) const {
    if (plan(kernel).rows == 1) return {.weights = kTwoParts, .partials = kTwoParts, .outputs = kTwoParts};
    const RowsShape shape = plan(kernel).shape();
    return {.weights = shape.parts > 1 ? kTwoParts : kOnePart,
            .partials = shape.packs_partials ? kOnePart : kTwoParts,
            .outputs = shape.parts > 1 ? 0x1p-16 : 0x1p-8};
  }

  double output_at(int kernel, int row, size_t column) const {
    const unsigned char* heads = workspace(plan(kernel).heads_out());
    if (plan(kernel).rows == 1) return untagged(heads + column * 4);
    const RowsShape shape = plan(kernel).shape();
    double value = 0;
    for (int part = 0; part < shape.parts; ++part) {
      uint16_t bits = 0;
      std::memcpy(&bits, heads + activation_offset(shape, part, row, static_cast<int>(column)), sizeof bits);
      value += from_bf16_bits(bits);
    }
    return value;
  }

  static void expect_within(const BoundedVector& expected, const BoundedVector& got,
                            const std::string& what) {
    for (size_t d = 0; d < expected.size(); ++d) {
      ASSERT_LE(std::abs(got[d].value - expected[d].value), expected[d].error)
          << what << ", dim " << d << ": " << got[d].value << " for " << expected[d].value;
    }
  }

  void expect_rows(int kernel, const TreeSnapshot& tree, const std::vector<int32_t>& tokens) {
    const size_t group = num_heads() / num_kv_heads();
    keys_ = own_tokens(kernel, tree, Part::kKey);
    values_ = own_tokens(kernel, tree, Part::kValue);
    for (int row = 0; row < std::ssize(tree.rows); ++row) {
      const int position = tree.rows[static_cast<size_t>(row)].position;
      for (const Part part : {Part::kQuery, Part::kKey, Part::kValue}) {
        for (size_t head = 0; head < (part == Part::kQuery ? num_heads() : num_kv_heads()); ++head) {
          expect_within(expected(kernel, tokens[static_cast<size_t>(row)], position, part, head),
                        stored(kernel, row, part, head),
                        fmt::format("{} of head {}, row {} of {} at {}", static_cast<int>(part), head, row,
                                    plan(kernel).rows, position));
        }
      }
      for (size_t kv_head = 0; kv_head < num_kv_heads(); ++kv_head) {
        const SeenTokens seen = seen_by(tree, row, kv_head);
        ASSERT_EQ(std::ssize(seen.keys), position + 1);
        for (size_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
          const double sink = facts().sinks != 0 ? from_bf16_bits(weights_.layers[0].sinks[head]) : kWhole;
          const BoundedVector outputs =
              attend(facts(), kLayer, precision(kernel), used(kernel, row, position, Part::kQuery, head),
                     static_cast<int>(head), position, sink, seen, own_);
          BoundedVector got(head_dim());
          for (size_t d = 0; d < head_dim(); ++d)
            got[d].value = output_at(kernel, row, head * head_dim() + d);
          expect_within(outputs, got,
                        fmt::format("head {}, row {} of {} at {}", head, row, plan(kernel).rows, position));
        }
      }
      if (testing::Test::HasFatalFailure()) return;
    }
  }

  /// Keys and values of the step's own tokens, as attention uses them.
  struct OwnTokens {
    std::vector<double> values;
    std::vector<double> errors;
  };
  OwnTokens own_tokens(int kernel, const TreeSnapshot& tree, Part part) const {
    OwnTokens own;
    for (int row = 0; row < std::ssize(tree.rows); ++row) {
      for (size_t head = 0; head < num_kv_heads(); ++head) {
        for (const Bounded& each :
             used(kernel, row, tree.rows[static_cast<size_t>(row)].position, part, head)) {
          own.values.push_back(each.value);
          own.errors.push_back(each.error);
        }
      }
    }
    return own;
  }
  HeadView view(const OwnTokens& own, int row, size_t kv_head) const {
    const size_t first = (static_cast<size_t>(row) * num_kv_heads() + kv_head) * head_dim();
    return {own.values.data() + first, own.errors.data() + first};
  }

  /// The tokens of a row's path, and those of the step that it sees.
  SeenTokens seen_by(const TreeSnapshot& tree, int row, size_t kv_head) {
    std::vector<int> path;
    for (int node = tree.rows[static_cast<size_t>(row)].node; node >= 0;
         node = tree.nodes[static_cast<size_t>(node)].parent)
      path.insert(path.begin(), node);
    const std::vector<int32_t>& pages = has_window() ? tree.window_pages : tree.pages;
    SeenTokens seen;
    for (const int at : path) {
      const SnapshotNode& node = tree.nodes[static_cast<size_t>(at)];
      for (int token = 0; token < node.num_tokens; ++token) {
        const int page = pages[static_cast<size_t>(node.first_page + token / kKvPageTokens)];
        seen.keys.push_back({cached(page, kv_head, token % kKvPageTokens, false), zeros_.data()});
        seen.values.push_back({cached(page, kv_head, token % kKvPageTokens, true), zeros_.data()});
      }
    }
    const int first = tree.nodes[static_cast<size_t>(path.back())].first_row;
    for (int other = first; other <= row; ++other) {
      if (row >= tree.rows[static_cast<size_t>(other)].seen_end) continue;
      seen.keys.push_back(view(keys_, other, kv_head));
      seen.values.push_back(view(values_, other, kv_head));
    }
    return seen;
  }

  TreeUnderTest kernel_;
  OwnScore own_;
  ReferenceWeights weights_;
  std::vector<unsigned char> bytes_;  // of the pool
  std::vector<double> pool_;          // [page][kv_head]{K, V}[token][head_dim]
  std::vector<double> zeros_;         // [head_dim]: what is off in it
  OwnTokens keys_;                    // of the step
  OwnTokens values_;
};

class AttentionMatrix : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { skip_unless_built(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Kernels, AttentionMatrix, testing::ValuesIn(kernel_names()), [](const auto& each) {
  std::string name = each.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

/// What a kernel has of each variant; of head dims and rotations one of four.
using Choices = std::vector<std::pair<std::string, int>>;
Choices choices_of(const ModelFacts& facts) {
  return {{"window", has_windows(facts) ? 1 : 0},
          {"cap", facts.attention_soft_cap != 0 ? 1 : 0},
          {"sinks", facts.sinks},
          {"scale", facts.attention_scale != 0 ? 1 : 0},
          {"chunk", has_chunks(facts) ? 1 : 0},
          {"alibi", facts.alibi != 0 ? 1 : 0},
          {"bytes", facts.kv_bits == 8 ? 1 : 0},
          {"partial", facts.rope_dims != 0 ? 1 : 0},
          {"normed", facts.head_norm},
          {"rope", facts.query_scale_beta != 0 ? kLayerRopes : facts.layer_rope[0]},
          {"head_dim", facts.head_dim}};
}

/// Can a kernel have both? Kernels norm no heads of 96 dims, nor any that are scaled by position, and what is not rotated has
/// no part that is.
bool goes_with(const std::pair<std::string, int>& a, const std::pair<std::string, int>& b) {
  const auto are = [&](const char* first, int value, const char* second, int other) {
    const std::pair<std::string, int> x = {first, value};
    const std::pair<std::string, int> y = {second, other};
    return (a == x && b == y) || (a == y && b == x);
  };
  return !are("normed", 1, "head_dim", 96) && !are("normed", 1, "rope", kLayerRopes) &&
         !are("partial", 1, "rope", kNoRope);
}

/// Of every two choices all that go together are together in some of these kernels.
void expect_every_pair(const std::vector<Choices>& kernels, const std::string& which) {
  using Pair = std::pair<std::pair<std::string, int>, std::pair<std::string, int>>;
  std::set<Pair> there;
  std::map<std::string, std::set<int>> values;
  for (const Choices& choices : kernels) {
    for (size_t i = 0; i < choices.size(); ++i) {
      values[choices[i].first].insert(choices[i].second);
      for (size_t k = i + 1; k < choices.size(); ++k) there.insert({choices[i], choices[k]});
    }
  }
  for (size_t i = 0; i < kernels.at(0).size(); ++i) {
    for (size_t k = i + 1; k < kernels[0].size(); ++k) {
      for (const int first : values[kernels[0][i].first]) {
        for (const int second : values[kernels[0][k].first]) {
          const Pair pair = {{kernels[0][i].first, first}, {kernels[0][k].first, second}};
          if (!goes_with(pair.first, pair.second)) continue;
          EXPECT_TRUE(there.contains(pair))
              << which << pair.first.first << " " << first << " with " << pair.second.first << " " << second;
        }
      }
    }
  }
}

/// Choices of the kernels that are built.
std::vector<Choices> choices_of_kernels() {
  std::vector<Choices> all;
  for (const std::string& name : kernel_names()) {
    if (!is_built(name)) continue;
    const std::string path = std::string(SOLITON_TEST_KERNELS) + "/" + name + ".so";
    all.push_back(choices_of(KernelLibrary::open(path).model().facts));
  }
  return all;
}

TEST(AttentionMatrixOf, EveryVariant) {
  std::map<std::string, std::set<int>> values;
  for (const Choices& choices : choices_of_kernels()) {
    for (const auto& [name, value] : choices) values[name].insert(value);
  }
  for (const auto& [name, all] : values) {
    EXPECT_EQ(all.size(), name == "rope" || name == "head_dim" ? 4u : 2u) << name;
  }
}

TEST(AttentionMatrixOf, EveryPairOfVariants) {
  SOLITON_LONG_RUNS_ONLY("EveryVariant is there, in kernels of several each");
  const std::vector<Choices> all = choices_of_kernels();
  expect_every_pair(all, "");
  std::map<int, std::vector<Choices>> by_head_dim;
  for (const Choices& choices : all) by_head_dim[choices.back().second].push_back(choices);
  EXPECT_EQ(by_head_dim.size(), 4u);
  for (const auto& [head_dim, kernels] : by_head_dim) {
    expect_every_pair(kernels, fmt::format("head_dim {}: ", head_dim));
  }
}

TEST_P(AttentionMatrix, IsThatOfFloat64) {
  AttentionUnderTest kernel(GetParam());
  for (const int position : {0, 17, 64, 150, 300}) kernel.expect_one_row(position);
  for (const int of_rows : {1, 2}) kernel.expect_tree(of_rows);
}

// The kernel is compiled with the variant that templates/ops/README.md shows.
TEST(AttentionOfOnesOwn, IsThatOfThePage) {
  AttentionUnderTest kernel("attention-own", [](int query, int key) {
    const int distance = query - key;
    return distance > 100 ? -INFINITY : -0.02 * distance;
  });
  for (const int position : {17, 101, 300}) kernel.expect_one_row(position);
  for (const int of_rows : {1, 2}) kernel.expect_tree(of_rows);
}

}  // namespace
}  // namespace soliton
