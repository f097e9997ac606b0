// A tile of queries on its way through the tokens of an item of attention.
//
// Queries of a KV head are packed into tiles of 16 rows, whatever row and head they belong to; a warp takes one
// tile at a time. Of queries in two parts a tile has 8, and the low parts behind them: a product has the scores of both parts, which
// are added up, and weights come back as their parts, so that outputs are too. scores = q k^T, rows are queries, columns are tokens; probabilities turn from accumulators
// into the operand of output = p v without leaving their lane. Keys and values lie in pages in core matrices
// (layout/page.h): four of them are the two B operands of 16 tokens, or dims. Softmax is online, in base 2.
//
// Where there are warpgroups the four warps of one may take whole pages together, each for a tile of its own: a page lies as
// wgmma wants its B operand, and each warp of a warpgroup has 16 of the 64 rows of the other.
#pragma once

#include "ops/cached_bytes.cuh"
#include "ops/missing.cuh"
#include "rows/items.cuh"

namespace soliton::rows {

/// A tile of queries on its way through tokens, and a share of its output dims: registers hold no more than
/// warp_dims of the plan. Lane 4 g + j holds scores of tokens 2 j and 2 j + 1 and outputs of dims 8 n + 2 j and the next, of
/// queries g and g + 8, or of both parts of query g.
template <const KernelPlan& kPlan>
class QueryState {
 public:
  static constexpr int kHeadDim = kPlan.model.head_dim;
  static constexpr bool kStacked = kQkv<kPlan>.stacks_parts();
  static constexpr int kParts = kStacked ? 1 : kShape<kPlan>.parts;  // tiles of a tile's queries
  static constexpr int kQueries = kStacked ? 1 : 2;                  // of a lane
  static constexpr int kSteps = kHeadDim / kMmaColumns;
  static constexpr int kShares = kPlan.dim_shares();
  static constexpr int kOutputSteps = kSteps / kShares;
  static constexpr KvShape kKv = kPlan.model.kv();
  static constexpr int kKvParts = kKv.parts;
  /// Do registers hold the queries too?
  static constexpr int kHeld =
      kShape<kPlan>.parts == 1 && kSteps <= 8 && kShape<kPlan>.holds_queries && kPlan.shares_registers
          ? kSteps
          : 0;
  static constexpr int kQuerySets = kSteps % 2 == 0 ? kShape<kPlan>.query_sets : 1;
  static constexpr int kStepsAtOnce = kOutputSteps % 2 == 0 ? 2 : 1;

  /// `queries`: the tile, in shared memory, where it stays: registers hold the outputs, of share `share` of the dims.
  SOLITON_DEVICE QueryState(const unsigned char* queries, int share) : queries_(queries), share_(share) {
    SOLITON_UNROLL
    for (float& maximum : maximum_) maximum = -INFINITY;
  }
  /// Once they are there, before anything is added.
  SOLITON_DEVICE void hold_queries(int lane) {
    SOLITON_UNROLL
    for (int i = 0; i < kHeld; ++i) held_[i] = load_query(0, i, lane);
  }

  /// The i-th of this lane's tokens.
  static SOLITON_DEVICE int token(int lane, int i) { return i / 2 * 8 + lane % 4 * 2 + i % 2; }

  /// Tiles of tokens that are added at once, as many as registers hold: chains of mma that do not wait for one another.
  static constexpr int kTogether = kPlan.shares_registers ? 2 : 1;
  static constexpr uint32_t kAllSeen = (1u << kTogether * 8) - 1;

  /// Of this lane's queries, where scores depend on their places: heads of the model, and positions.
  static constexpr bool kPlaced = Variant<kPlan>::kPlacesScores;
  struct Places {
    int head[kQueries];
    int query[kQueries];  // from the item's first token on: what asks for differences alone needs no more
    int first_key;        // of that token
  };
  /// Tiles of tokens. Bit 8 t + 4 half + i of `seen`: does query lane / 4 + 8 half see this lane's i-th token of tile t?
  struct Tokens {
    int keys[kTogether];  // offsets in shared memory
    int values[kTogether];
    uint32_t seen;
    bool all_seen;       // by all lanes
    uint32_t fresh = 0;  // of a cache of bytes: which tiles are the step's own, a bit each
    int first_key[kPlaced ? kTogether
                          : 1];  // position of a tile's first token, or -1 - row of the step's own
  };

  /// Of some tokens that follow one another, the first that this lane's queries see: those before are outside of their
  /// windows.
  struct FirstSeen {
    int of_query[kQueries];

    SOLITON_DEVICE int larger() const {
      return of_query[0] > of_query[kQueries - 1] ? of_query[0] : of_query[kQueries - 1];
    }
    SOLITON_DEVICE FirstSeen behind(int tokens) const {
      FirstSeen rest;
      SOLITON_UNROLL
      for (int h = 0; h < kQueries; ++h) rest.of_query[h] = of_query[h] - tokens;
      return rest;
    }
    /// Bits of the `tile`-th tile of them, as Tokens has them.
    SOLITON_DEVICE uint32_t seen_of(int tile, int lane) const {
      uint32_t seen = 0;
      SOLITON_UNROLL
      for (int i = 0; i < 4 * kQueries; ++i)
        seen |= tile * kTailTokens + token(lane, i % 4) >= of_query[i / 4] ? 1u << i : 0;
      return seen;
    }
  };

  /// `position(t, i)`: of the i-th of this lane's tokens of tile t, where scores depend on their places.
  template <class Position>
  SOLITON_DEVICE void add(const unsigned char* shared, const Tokens& tokens, const Variant<kPlan>& variant,
                          const Places& places, const Position& position, int lane) {
    if constexpr (kKv.e4m3) {
      add_bytes(shared, tokens, variant, places, position, lane);
    } else {
      add_parts(shared, tokens, variant, places, position, lane);
    }
  }

  template <class Position>
  SOLITON_DEVICE void add_parts(const unsigned char* shared, const Tokens& tokens,
                                const Variant<kPlan>& variant, const Places& places, const Position& position,
                                int lane) {
    float scores[kTogether][2][4] = {};  // of tokens 0 .. 7 and 8 .. 15 of each tile
    MmaBatch batch;
    SOLITON_NO_UNROLL
    for (int of_kv = 0; of_kv < kKvParts; ++of_kv) {
      const unsigned char* first = shared + of_kv * kKv.part_bytes();
      SOLITON_UNROLL
      for (int i = 0; i < kSteps; ++i) {
        uint4 k[kTogether];
        SOLITON_UNROLL
        for (int t = 0; t < kTogether; ++t)
          k[t] = load_pairs<kKv.key_stride()>(first + tokens.keys[t] + i * 2 * kCoreBytes, lane);
        SOLITON_UNROLL
        for (int part = 0; part < kParts; ++part) {
          const uint4 query = kHeld > 0 ? held_[i] : load_query(part, i, lane);
          SOLITON_UNROLL
          for (int t = 0; t < kTogether; ++t) {
            mma_f16(scores[t][0], query, make_uint2(k[t].x, k[t].y));
            mma_f16(scores[t][1], query, make_uint2(k[t].z, k[t].w));
          }
        }
      }
    }
    batch.end();
    change(scores, variant, places, position);
    if (!tokens.all_seen) hide(tokens.seen, scores);
    uint4 weights[kTogether][kParts];
    weigh(scores, weights);
    const MmaBatch values;
    SOLITON_NO_UNROLL
    for (int of_kv = 0; of_kv < kKvParts; ++of_kv) {
      const unsigned char* first = shared + (of_kv * kSteps + share() * kOutputSteps) * kFragmentBytes;
      SOLITON_UNROLL
      for (int i = 0; i < kOutputSteps; i += kStepsAtOnce) {
        uint4 v[kTogether][kStepsAtOnce];
        SOLITON_UNROLL
        for (int k = 0; k < kTogether * kStepsAtOnce; ++k) {
          const int t = k / kStepsAtOnce;
          v[t][k % kStepsAtOnce] = load_pairs<kKv.kValueStride>(
              first + tokens.values[t] + (i + k % kStepsAtOnce) * kFragmentBytes, lane);
        }
        SOLITON_UNROLL
        for (int k = 0; k < kTogether * kParts; ++k) {
          SOLITON_UNROLL
          for (int n = 0; n < kStepsAtOnce; ++n) {
            const uint4 value = v[k / kParts][n];
            mma_f16(output_[2 * (i + n)], weights[k / kParts][k % kParts], make_uint2(value.x, value.y));
            mma_f16(output_[2 * (i + n) + 1], weights[k / kParts][k % kParts], make_uint2(value.z, value.w));
          }
        }
      }
    }
  }

  /// Whole pages are a warpgroup's: its warps call these together, each for a tile of its own. Keys and values begin at
  /// offsets in shared memory. Scores are there, and values added, after warpgroup_wait(). See query_pages.cuh.
  static constexpr int kPageTiles = kKvPageTokens / kTailTokens;
  using PageScores = float[8 * kPageTiles];
  using TileScores = float[kPageTiles][2][4];
  using PageWeights = uint4[kPageTiles][kParts];
  SOLITON_DEVICE void begin_scores(const unsigned char* shared, int keys, PageScores& scores, int lane) const;
  template <class Position>
  SOLITON_DEVICE void take_scores(const PageScores& page, TileScores& scores, const Variant<kPlan>& variant,
                                  const Places& places, const Position& position);
  template <class Position>
  SOLITON_DEVICE void take_some_scores(const PageScores& page, TileScores& scores, uint32_t seen,
                                       const Variant<kPlan>& variant, const Places& places,
                                       const Position& position);
  /// Turns scores, not yet scaled, into weights, as operands, once they have been taken into the maxima.
  template <int kTiles>
  SOLITON_DEVICE void weigh_raised(float (&scores)[kTiles][2][4], uint4 (&weights)[kTiles][kParts]) {
    exponentiate(scores);
    pack_weights(scores, weights);
  }
  SOLITON_DEVICE void add_values(const unsigned char* shared, int values, const PageWeights& weights);

  /// Behind the last tokens: outputs become those of queries.
  SOLITON_DEVICE void end_tokens() {
    if constexpr (kStacked) {
      SOLITON_UNROLL
      for (float(&output)[4] : output_) {
        output[0] += output[2];
        output[1] += output[3];
      }
    }
  }
  // query_partials.cuh.
  SOLITON_DEVICE void give_part(float4* part, int lane) const;
  SOLITON_DEVICE void take_part(const float4* part, int lane);
  SOLITON_DEVICE void write(const TreeItem& item, int query_tile, float* partials, int lane);
  SOLITON_DEVICE void write_last(const Context<kPlan>& context, const TreeItem& item, int query_tile) const;

 private:
  // byte_tokens.cuh.
  template <class Position>
  SOLITON_DEVICE void add_bytes(const unsigned char* shared, const Tokens& tokens,
                                const Variant<kPlan>& variant, const Places& places, const Position& position,
                                int lane);
  template <int kTiles>
  SOLITON_DEVICE void score_bytes(const unsigned char* shared, const int (&keys)[kTiles],
                                  float (&scores)[kTiles][2][4], int lane) const;
  template <int kTiles>
  SOLITON_DEVICE void add_byte_values(const unsigned char* shared, const int (&values)[kTiles],
                                      const uint4 (&weights)[kTiles][kParts], int lane);
  SOLITON_DEVICE void score_fresh(const unsigned char* keys, float (&scores)[2][4], int lane) const;
  SOLITON_DEVICE void add_fresh_values(const unsigned char* values, const uint4 (&weights)[kParts], int lane);

  // query_softmax.cuh.
  template <int kTiles>
  SOLITON_DEVICE void exponentiate(float (&scores)[kTiles][2][4]);
  template <int kTiles>
  static SOLITON_DEVICE void pack_weights(float (&scores)[kTiles][2][4], uint4 (&weights)[kTiles][kParts]);
  template <int kTiles>
  SOLITON_DEVICE void raise_maxima(const float (&scores)[kTiles][2][4]);

  // query_pages.cuh.
  template <class Position>
  static SOLITON_DEVICE void take_changed(const PageScores& page, TileScores& scores,
                                          const Variant<kPlan>& variant, const Places& places,
                                          const Position& position);
  SOLITON_DEVICE int share() const { return kShares == 1 ? 0 : share_; }

  /// Words of 4 outputs that a lane hands over: of a pair of dims of its two queries, or of two pairs of its one.
  static constexpr int kPartWords = kQueries * kOutputSteps;
  SOLITON_DEVICE float& output_of_word(int word, int k) {
    return kStacked ? output_[2 * word + k / 2][k % 2] : output_[word][k];
  }
  SOLITON_DEVICE float output_of_word(int word, int k) const {
    return kStacked ? output_[2 * word + k / 2][k % 2] : output_[word][k];
  }

  /// The `step`-th 16 dims of the queries: operand a.
  SOLITON_DEVICE uint4 load_query(int part, int step, int lane) const {
    constexpr KvShape kF16 = kKv.in_f16();
    return load_matrices<kF16.key_stride(), kCoreBytes>(
        queries_ + part * kF16.part_bytes() + step * 2 * kCoreBytes, lane);
  }
  /// Two operands b: those of 8 tokens, or dims, in x and y, and of the next, kNext bytes further, in z and w: they want
  /// registers that are neighbours.
  template <int kNext>
  static SOLITON_DEVICE uint4 load_pairs(const unsigned char* first, int lane) {
    return load_matrices<kCoreBytes, kNext>(first, lane);
  }

  /// Scores of queries, as the variant has them, of those of their parts.
  template <int kTiles, class Position>
  static SOLITON_DEVICE void change(float (&scores)[kTiles][2][4], const Variant<kPlan>& variant,
                                    const Places& places, const Position& position) {
    if constexpr (kStacked) {
      SOLITON_UNROLL
      for (int i = 0; i < 4 * kTiles; ++i)
        scores[i / 4][i / 2 % 2][i % 2] += scores[i / 4][i / 2 % 2][2 + i % 2];
    }
    if constexpr (Variant<kPlan>::kChangesScores) {
      SOLITON_UNROLL
      for (int i = 0; i < 8 * kTiles; ++i) {
        if (i % 4 >= 2 * kQueries) continue;
        float& score = scores[i / 8][i / 4 % 2][i % 4];
        ScorePlace place = {};
        if constexpr (kPlaced) {
          const int half = i % 4 / 2;
          place = {places.head[half], places.first_key + places.query[half],
                   position(i / 8, i / 4 % 2 * 2 + i % 2)};
        }
        score = variant.score(score, place);
      }
    }
  }
  static SOLITON_DEVICE void hide(uint32_t seen, float (&scores)[kTogether][2][4]) {
    SOLITON_UNROLL
    for (int t = 0; t < kTogether; ++t) hide_tile(seen >> 8 * t, scores[t]);
  }
  static SOLITON_DEVICE void hide_tile(uint32_t seen, float (&scores)[2][4]) {
    SOLITON_UNROLL
    for (int i = 0; i < 4 * kQueries; ++i) {
      if ((seen >> i & 1) == 0) scores[i / 2 % 2][i / 4 * 2 + i % 2] = -INFINITY;
    }
  }

  /// Turns scores, not yet scaled, into weights, as operands.
  template <int kTiles>
  SOLITON_DEVICE void weigh(float (&scores)[kTiles][2][4], uint4 (&weights)[kTiles][kParts]) {
    raise_maxima(scores);
    weigh_raised(scores, weights);
  }

  const unsigned char* queries_;
  uint4 held_[kHeld > 0 ? kHeld : 1];  // of them
  int share_;
  float maximum_[kQueries];
  float sum_[kQueries] = {};  // of this lane's tokens
  float output_[2 * kOutputSteps][4] = {};
};

}  // namespace soliton::rows
