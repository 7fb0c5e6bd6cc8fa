// What composites (ir/composites) are written with: calls of ATen operators by their names, with
// their arguments in the order of the schema, so that a composite reads as PyTorch's own
// decomposition does:
//
//   aten("sum.dim_IntList", {aten("mul.Tensor", {x, y}), Dims{1}})
//
// Type promotion, defaults and weak scalars are those of the operators that are called.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/op/import_call.h"
#include "ir/op/term.h"

namespace lathe {

using Dims = std::vector<int64_t>;
using Built = Result<std::vector<Value>>;  // what a composite's `build` returns

class Aten {
 public:
  // An argument of a call; a null Term is None.
  struct Arg {
    // Out of line: composites are mostly calls, and calls mostly arguments.
    Arg(Term x);
    Arg(Value x);
    Arg(const std::vector<Term>& xs);
    Arg(int x);
    Arg(int64_t x);
    Arg(double x);
    Arg(bool x);
    Arg(const char* x);
    Arg(DType x);
    Arg(const Dim& x);
    Arg(const Dims& xs);
    Arg(const Shape& xs);
    Arg(Attr x);
    Arg(CallArg x);
    Arg(const Arg&);
    ~Arg();
    CallArg arg;
  };

  Aten(Builder& builder, const ImportCall& call) : builder_(&builder), call_(&call) {}

  // The first result of a call of `target` ("sum.dim_IntList"); null, and the builder has failed,
  // when it is refused. Arguments that are left out have the schema's defaults.
  Term operator()(std::string_view target, std::initializer_list<Arg> args) const;
  // Calls of tensors alone, which take little code.
  Term operator()(std::string_view target, Term x) const;
  Term operator()(std::string_view target, Term a, Term b) const;
  // All of them, as many as the schema returns; null ones when it is refused.
  std::vector<Term> all(std::string_view target, std::initializer_list<Arg> args) const;
  // The results of `target`, which takes what the call under import has.
  std::vector<Term> forward(std::string_view target) const;

  // Arguments of the call under import, by their names in its schema.
  Term tensor(std::string_view arg) const { return {*builder_, call_->value(arg)}; }
  // A list: one null Term, and the builder has failed, for an empty one.
  std::vector<Term> tensors(std::string_view arg) const;
  Attr attr(std::string_view arg) const { return call_->attr(arg); }
  const ImportCall& call() const { return *call_; }
  Term null() const { return {*builder_, Value{}}; }
  // A rank-0 constant of its own dtype.
  Term scalar(double value, DType dtype) const;
  // A constant of these elements in row-major order.
  Term table(std::vector<double> values, const Dims& shape, DType dtype) const;
  Term full(const Shape& shape, double value, DType dtype) const;
  // 0, 1, ... in i64.
  Term arange(const Dim& size) const;

  // A size in the call; 1, and the builder has failed, where it is none.
  Dim size(std::string_view arg) const;
  // A dim argument of a tensor of this rank, from 0; 0, and the builder has failed, out of range.
  int64_t dim(std::string_view arg, int rank) const;
  int64_t dim(int64_t given, int rank) const;
  // An extent; negative dims count from the end. 1 where there is no such dim.
  static Dim size(Term x, int64_t dim);

  // In the dtype that sums of its own are computed in: f32 for halves.
  Term wide(Term x) const;

  // Ends a run in which an element of `wrong` is true, or the number is not in [low, high);
  // `message` may say "{index}" where the number stands. For what PyTorch finds in the data.
  void assert_none(Term wrong, std::string message) const;
  void assert_number(Term number, const Dim& low, const Dim& high, std::string message) const;

  // Refuses the call: `code` is of ir/support/diag_codes.h.
  Diag refuse(std::string_view code, std::string message) const;
  // The same through the builder, for formulas: null.
  Term fail(std::string_view code, std::string message) const;

 private:
  std::vector<Term> run(ImportCall inner) const;

  Builder* builder_;
  const ImportCall* call_;
};

// A composite as a formula: what an Aten gives, a Term or several.
template <auto Formula>
Built composed(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  if constexpr (std::is_same_v<decltype(Formula(aten)), Term>) {
    return std::vector<Value>{Formula(aten)};
  } else {
    const std::vector<Term> results = Formula(aten);
    return std::vector<Value>(results.begin(), results.end());
  }
}

// Imports of schemas alone, which take little code.
struct Composite {
  const char* schema;
  Built (*build)(Builder&, const ImportCall&);
};
std::vector<Import> imports_of(std::initializer_list<Composite> composites);

}  // namespace lathe
