// What rules of padding work with: the operands of a node as they are padded, masks, and nodes of
// rounded sizes.
//
// Everything keeps one relation: a value has the elements of the original one at the places that
// its factors tell, and anything elsewhere.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/node.h"
#include "ir/support/result.h"
#include "passes/padding/padded.h"

namespace lathe {

using PaddedResults = Result<std::vector<Padded>>;

class Padding {
 public:
  explicit Padding(Rounding rounding) : rounding_(std::move(rounding)) {}

  const Rounding& rounding() const { return rounding_; }
  Builder& builder() { return *builder_; }
  void set_builder(Builder& builder) { builder_ = &builder; }
  int64_t num_masks() const { return num_masks_; }

  // --- what is known of values

  // Remembers what stands for `original`.
  void know(Value original, Padded padded) { known_[original] = std::move(padded); }
  const Padded* find(Value value) const;
  // Of a value that is not padded: itself.
  Padded of(Value value) const;
  Padded operand(const Node& node, size_t i) const { return of(node.operands[i]); }
  // Whether an operand or a result of the node has padded sizes.
  bool concerns(const Node& node) const;

  bool is_padded(const Factors& factors) const { return lathe::is_padded(factors, rounding_); }
  bool is_padded(const Padded& x) const { return lathe::is_padded(x.dims, rounding_); }
  bool is_prefix(const Factors& factors) const { return lathe::is_prefix(factors, rounding_); }
  bool are_equal(const Factors& a, const Factors& b) const {
    return tidy(a, rounding_) == tidy(b, rounding_);
  }

  // --- making nodes

  // The same op of these operands, with the attributes given instead of its own. The Diag when its
  // results do not have the sizes of the node's, rounded up.
  Result<std::vector<Value>> emit(const Node& node, std::vector<Value> operands,
                                  const NamedAttrs& attrs = {});
  PaddedResults emit_as(const Node& node, std::vector<Value> operands, std::vector<Factors> dims,
                        const NamedAttrs& attrs = {});

  // True where the elements of a tensor are along `dims`, of a shape that broadcasts to its own.
  Value places(const Padded& x, const std::vector<size_t>& dims);
  // x with `fill` instead of what is padding along `dims`.
  Value masked(const Padded& x, const std::vector<size_t>& dims, const Attr& fill);
  Value zeroed(const Padded& x, const std::vector<size_t>& dims);
  // Whether there is room for the elements of a tensor of these sizes; for those that do not come
  // from an operand's.
  Status check_room(const Node& node, const Shape& shape) const;
  // A tensor of its sizes as they were, padded with zeros; and the other way round.
  Padded enter(Value value);
  Value leave(const Padded& x);
  // The `length` elements from `start` on along a dim whose elements come first.
  Value cut(Value x, size_t dim, const Dim& start, const Dim& length);

  // The factors of operands that broadcast, from the last dim; the Diag when they differ.
  Result<std::vector<Factors>> joined(const Node& node, const std::vector<Padded>& operands) const;

  // The node as its row takes it apart, each part padded.
  PaddedResults apart(const Node& node);

  Diag refusal(const Node& node, std::string_view why) const;

 private:
  Value line(const Factors& factors);  // places along one dim

  Rounding rounding_;
  Builder* builder_ = nullptr;
  std::map<Value, Padded> known_;
  std::map<std::string, Value> lines_;         // by the factors
  std::vector<std::unique_ptr<Graph>> apart_;  // keys of known_ lie in them
  int64_t num_masks_ = 0;
};

// A node of the graph, padded: the rule of its op.
PaddedResults pad_node(Padding& padding, const Node& node);

}  // namespace lathe
