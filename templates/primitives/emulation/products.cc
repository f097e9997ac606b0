// Asynchronous products of warpgroups: made as late as may be, when their thread waits for them.
#include <cstring>
#include <limits>
#include <utility>

#include "primitives/emulation/launch.h"
#include "primitives/emulation/report.h"

namespace soliton::emulation {

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
  own.sums.push_back({product.c, {product.c, product.c + count}});
  for (int i = 0; i < count; ++i) product.c[i] = std::numeric_limits<float>::quiet_NaN();
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
  if (holds(FaultKind::kDropProductCommit)) return;
  own.committed.push_back(std::move(own.issued));
  own.issued.clear();
}

void Launch::make_product(const Product& product) {
  constexpr int kPieceBytes = 16;  // 8 k of a row
  if (checking) {
    const auto* b = static_cast<const unsigned char*>(product.b);
    for (int piece = scheduler_.current().lane; piece < 2 * product.rows; piece += kLanes) {
      const int row = piece / 2;
      const int at = piece % 2 * product.next_k + row / 8 * product.next_rows + row % 8 * kPieceBytes;
      check_access(Access::kLoad, Space::kShared, b + at, kPieceBytes);
    }
  }
  Product operand = product;
  for (Products::Sums& sums : products().sums) {
    if (sums.c == product.c) operand.c = sums.values.data();
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
  if (!own.issued.empty() || !own.committed.empty()) return;
  for (const Products::Sums& sums : own.sums)
    std::memcpy(sums.c, sums.values.data(), sums.values.size() * sizeof(float));
  own.sums.clear();
}

}  // namespace soliton::emulation
