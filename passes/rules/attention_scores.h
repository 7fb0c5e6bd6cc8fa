// The scores of attention as models spell them: a scaled product, masks added to it or put in its
// place, in any order.
#pragma once
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/node.h"

namespace lathe {

// A value in every arrangement of its batch dims, with the scalar factors passed on the way;
// through casts that lose nothing, outermost first.
struct Scaled {
  Value value;
  double scale = 1;
};
std::vector<Scaled> arrangements(Value value);

// x of x - max(x) along a dim, which no softmax tells from x; null for another value.
Value less_than_largest(Value value, int64_t dim);

// The batch dims of matrices, if `type` has any.
Shape batch_of(const TensorType& type);

// What changes scores that lie as `type` says: `scale * value` is added; or, without one, `hiding`,
// a number so low that no score shows beside it, or -inf, stands where `condition` is `is_hidden`.
struct MaskTerm {
  TensorType type;
  Value value = {};
  double scale = 1;
  Value condition = {};
  bool is_hidden = true;
  double hiding = 0;
};

struct Scores {
  const Node* product = nullptr;  // null: the pattern does not match
  Value query = {}, key = {};     // its operands, the latter transposed
  double scale = 1;
  std::vector<MaskTerm> terms = {};  // from the product on
};
Scores match_scores(Value value);

// What scores are masked with, in all.
struct Mask {
  Value value = {};  // null: none
  bool fits = true;  // false: it does not lie as the query does
};
// Of queries of that dtype with these batch dims, with nodes of the builder; nothing is built
// unless it fits. Rows that may be masked wholly with -inf become NaN, which is what softmax makes
// of them and attention does not, unless `is_safe`.
Mask build_mask(Builder& b, const std::vector<MaskTerm>& terms, const Shape& batch, DType dtype,
                bool is_safe);

}  // namespace lathe
