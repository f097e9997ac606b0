// Asynchronous products of warpgroups: made as late as may be, when their thread waits for them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "primitives/emulation/launch.h"
#include "primitives/emulation/report.h"

namespace soliton::emulation {

namespace {

constexpr uint32_t kNoNumber = 0x7fc00000;  // not a float, and no sum of integers that small models have

}  // namespace

Products& Launch::products() {
  if (products_.empty()) products_.resize(scheduler_.fibers().size());
  return products_[scheduler_.current().id];
}

void Launch::issue_product(const Product& product) {
  maybe_preempt();
  Products& own = products();
  if (!own.fenced) {
    fail("warpgroup_multiply without a warpgroup_fence before its set, by " +
         describe_thread(scheduler_.current()));
  }
  for (const Products::Sums& sums : own.sums) {
    if (sums.c == product.c) {
      own.issued.push_back(product);
      return;
    }
  }
  const int count = product.rows / 2;
  own.sums.push_back({product.c, std::vector<uint32_t>(count)});
  auto* const words = static_cast<unsigned char*>(product.c);
  std::memcpy(own.sums.back().values.data(), words, count * sizeof kNoNumber);
  for (int i = 0; i < count; ++i) std::memcpy(words + i * sizeof kNoNumber, &kNoNumber, sizeof kNoNumber);
  own.issued.push_back(product);
}

void Launch::fence_products() {
  maybe_preempt();
  if (!holds(FaultKind::kDropProductFence)) products().fenced = true;
}

void Launch::commit_products() {
  maybe_preempt();
  Products& own = products();
  own.fenced = false;
  ++own.num_sets;
  if (holds(FaultKind::kDropProductCommit)) return;
  own.committed.push_back(std::move(own.issued));
  own.issued.clear();
}

void Launch::check_warpgroups() {
  constexpr int kGroupThreads = 4 * kLanes;
  if (shape_.threads_per_cta % kGroupThreads != 0) return;
  for (size_t i = 0; i < products_.size(); ++i) {
    const Products& first = products_[i / kGroupThreads * kGroupThreads];
    if (products_[i].num_sets == first.num_sets) continue;
    fail("expected all warps of a warpgroup to make its products, got " + std::to_string(first.num_sets) +
         " sets of its first and " + std::to_string(products_[i].num_sets) + " of " +
         describe_thread(scheduler_.fibers()[i]));
  }
}

void Launch::make_product(const Product& product) {
  if (product.kept != nullptr && std::memcmp(product.kept, product.a, sizeof product.a) != 0) {
    fail("an operand of warpgroup_multiply has changed before its product was made, by " +
         describe_thread(scheduler_.current()));
  }
  constexpr int kPieceBytes = 16;  // 8 k of a row
  if (checking) {
    const auto* b = static_cast<const unsigned char*>(product.b);
    for (int piece = scheduler_.current().lane; piece < 2 * product.rows; piece += kLanes) {
      const int row = piece / 2;
      const int at = piece % 2 * product.next_k + row / 8 * product.next_rows + row % 8 * kPieceBytes;
      check_access(Access::kProductRead, Space::kShared, b + at, kPieceBytes);
    }
  }
  Product operand = product;
  for (Products::Sums& sums : products().sums) {
    if (sums.c != product.c) continue;
    operand.c = sums.values.data();
    if (!product.adds) std::fill(sums.values.begin(), sums.values.end(), 0);
  }
  collective(multiply_product, "warpgroup_wait", &operand);
}

void Launch::wait_products(int sets_left) {
  maybe_preempt();
  Products& own = products();
  if (holds(FaultKind::kNoProductWait)) return;
  for (; static_cast<int>(own.committed.size()) > sets_left; own.committed.pop_front()) {
    for (const Product& product : own.committed.front()) make_product(product);
  }
  // Of sums to which more is to come nobody knows anything.
  const auto is_open = [&](const Products::Sums& sums) {
    const auto is_of = [&](const Product& product) { return product.c == sums.c; };
    const auto has = [&](const std::vector<Product>& set) {
      return std::any_of(set.begin(), set.end(), is_of);
    };
    return has(own.issued) || std::any_of(own.committed.begin(), own.committed.end(), has);
  };
  std::erase_if(own.sums, [&](const Products::Sums& sums) {
    if (is_open(sums)) return false;
    std::memcpy(sums.c, sums.values.data(), sums.values.size() * sizeof(uint32_t));
    return true;
  });
}

}  // namespace soliton::emulation
