// What the infer of a row takes for granted of sizes that are symbols: its slot `demands`.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/node.h"
#include "ir/support/result.h"
#include "ir/type/guard.h"

namespace lathe {

// The shape that an operand must have. `what` is for errors: "a state".
struct WantedShape {
  std::string what;
  Value given;
  Shape shape;
};
// The Diag of the first operand whose shape is known to be another.
Status check_shapes(const Node& node, const std::vector<WantedShape>& wanted);

// Collects comparisons of one node's sizes; those of numbers, which infer has seen, and those that
// expressions alone settle are left out. `why` follows the op's name: "needs equal inner dims".
class Demands {
 public:
  explicit Demands(const Node& node) : node_(node) {}

  void equal(const Dim& left, const Dim& right, std::string_view why);
  void equal(const Shape& left, const Shape& right, std::string_view why);  // of one rank
  // In all dims but one.
  void equal_but(int dim, const Shape& left, const Shape& right, std::string_view why);
  void equal(const std::vector<WantedShape>& wanted);  // as check_shapes
  void other(const Dim& left, const Dim& right, std::string_view why);
  void at_most(const Dim& left, const Dim& right, std::string_view why);

  std::vector<Guard> take() { return std::move(guards_); }

 private:
  void add(const Dim& left, Relation relation, const Dim& right, std::string_view why);

  const Node& node_;
  std::vector<Guard> guards_;
};

}  // namespace lathe
