// A graph under construction, whose values are known: what may follow depends on them, so that
// graphs are well-conditioned and inside every op's domain by construction.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "tests/random/case.h"
#include "tests/random/draw.h"
#include "tests/random/eager.h"

namespace lathe::random_graphs {

// What the nodes of one graph have in common, so that they fit each other.
struct Style {
  DType dtype = DType::f32;      // of most values
  std::vector<int64_t> extents;  // that most dims take
  bool has_specials = false;     // infinities and NaNs among the inputs
  bool has_writes = false;       // in-place nodes
  bool takes_reals = false;      // inputs with full mantissas rather than quarters
};
Style draw_style(Draw& draw);

// Values that an operand of a row may have: the union of its examples' ranges.
struct Domain {
  double low = -2;
  double high = 2;
  bool is_bounded = false;  // values outside are not in the domain
};
Domain domain_of(const OpDef& op, size_t operand, bool is_float);

// A node to be: what Builder::create takes.
struct Proposal {
  std::vector<Value> operands;
  NamedAttrs attrs;
  std::vector<int> list_sizes;
};

class Grower {
 public:
  Grower(Case& test, Draw& draw);

  Draw& draw() { return draw_; }
  const Style& style() const { return style_; }
  int64_t extent();  // of the style's, mostly

  // Existing values; the last ones are likelier. Null when there is none.
  Value pick(const std::function<bool(Value)>& fits = {});
  // A float value with at least `rank` dims: an existing one or a new input.
  Value floating(size_t rank);
  // New ones: an input, a weight or a literal.
  Value fresh(DType dtype, const Shape& shape, const Domain& domain = {});
  Value fresh_integers(DType dtype, const Shape& shape, int64_t low, int64_t high);
  // An existing value of this type within the domain, or a new one.
  Value operand(DType dtype, const Shape& shape, const Domain& domain = {});
  // A view of a value as a node of its own; null when it does not fit.
  Value view(const std::string& op, Value of, NamedAttrs attrs);
  // As models hold what they multiply by: mostly a weight of its own, else as operand().
  Value weight(DType dtype, const Shape& shape, const Domain& domain = {});
  // Whether the value's elements lie in the domain.
  bool is_within(Value value, const Domain& domain) const;

  // Appends the node when its types infer and its results are fit to go on with.
  bool add(const OpDef& op, Proposal proposal, bool in_place);
  size_t num_values() const { return values_.size(); }
  bool can_write(Value value) const { return eager_.can_write(value); }
  // Chooses outputs and forgets inputs that nothing reads.
  void finish();

 private:
  enum class Held : uint8_t { literal, weight, input };
  Value hold(DType dtype, const Shape& shape, const Domain& domain, Held held);
  Fill draw_fill(DType dtype, const Domain& domain);
  Value made(Value value, const Fill& how);
  bool is_fit(const Node& node) const;

  Case& test_;
  Draw& draw_;
  Style style_;
  Loc loc_;
  EagerRun eager_;
  std::vector<Value> values_;
};

int64_t elements(const Shape& shape);

}  // namespace lathe::random_graphs
