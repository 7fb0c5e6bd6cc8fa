// Comparisons with their causes.
#include "ir/op/demands.h"

#include <fmt/format.h>

#include "ir/graph/op_def.h"
#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

std::string needs(const WantedShape& wanted) {
  return fmt::format("needs {} of shape {}", wanted.what, to_string(wanted.shape));
}

}  // namespace

Status check_shapes(const Node& node, const std::vector<WantedShape>& wanted) {
  for (const WantedShape& one : wanted) {
    const Shape& shape = one.given.type().shape;
    if (differ(shape, one.shape))
      return Diag{code::kShapeMismatch, node.loc,
                  fmt::format("'{}' {}, got {}", node.op->name, needs(one), to_string(shape))};
  }
  return Ok{};
}

void Demands::add(const Dim& left, Relation relation, const Dim& right, std::string_view why) {
  if (left.is_const() && right.is_const()) return;
  Guard guard{left, relation, right};
  if (decide(guard, {}) == true) return;
  guard.cause = fmt::format("'{}' {}", node_.op->name, why);
  guards_.push_back(std::move(guard));
}

void Demands::equal(const Dim& left, const Dim& right, std::string_view why) {
  add(left, Relation::eq, right, why);
}

void Demands::equal(const Shape& left, const Shape& right, std::string_view why) {
  equal_but(-1, left, right, why);
}

void Demands::equal_but(int dim, const Shape& left, const Shape& right, std::string_view why) {
  for (size_t d = 0; d < left.size() && d < right.size(); ++d)
    if (static_cast<int>(d) != dim) equal(left[d], right[d], why);
}

void Demands::equal(const std::vector<WantedShape>& wanted) {
  for (const WantedShape& one : wanted) equal(one.given.type().shape, one.shape, needs(one));
}

void Demands::other(const Dim& left, const Dim& right, std::string_view why) {
  add(left, Relation::ne, right, why);
}

void Demands::at_most(const Dim& left, const Dim& right, std::string_view why) {
  add(left, Relation::le, right, why);
}

}  // namespace lathe
