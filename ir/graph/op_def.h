// The row that defines an op. Everything Lathe knows of an op stands in its row: the graph's
// printer, parser, verifier, evaluator and hash, the importer, the passes and the lowering are
// generic over it.
//
// It lies with the graph because a node points at its row; loop IR and the lowering context are
// only named here, never included.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/node.h"
#include "ir/graph/tensor.h"
#include "ir/support/result.h"
#include "ir/type/encoding.h"

namespace lathe {

// The rows that the graph itself gives a meaning to.
inline constexpr std::string_view kParamOp = "param";        // stands in Graph::params
inline constexpr std::string_view kConstantOp = "constant";  // {value} or {name}, dtype, shape
inline constexpr std::string_view kFusedOp = "fused";        // runs its body

class Builder;
struct ImportCall;
namespace loop {
class Expr;
}  // namespace loop
class ElementContext;

enum class OperandKind : uint8_t { tensor, optional_tensor, tensor_list, optional_tensor_list };
struct OperandSpec {
  std::string name;  // as in the ATen schema, where there is one
  OperandKind kind = OperandKind::tensor;

  bool is_list() const {
    return kind == OperandKind::tensor_list || kind == OperandKind::optional_tensor_list;
  }
  bool is_optional() const {
    return kind == OperandKind::optional_tensor || kind == OperandKind::optional_tensor_list;
  }
};

enum class AttrKind : uint8_t {
  boolean,
  integer,
  number,
  string,
  dtype,
  dim,
  ints,
  numbers,
  dims,
  bools,
  layout,
};
struct AttrSpec {
  std::string name;  // as in the ATen schema, where there is one
  AttrKind kind;
  bool is_optional = false;  // may be None
  Attr default_value = {};   // used when omitted; monostate on a non-optional attr: required
  std::string doc = {};
  bool is_place = false;  // says where to read; how much is read the result's type says (start)
};

// What passes may ask instead of an op's name.
enum class OpClass : uint8_t {
  elementwise,  // each result element from the operands' elements at the same (broadcast) index
  view,         // each result element is one operand element at another index; no arithmetic
  gather,       // as view, but the index depends on data (embedding, index, gather)
  reduction,    // result elements combine many operand elements (sum, amax, cumsum, pooling)
  normalize,    // reductions over a row, then elementwise (softmax, layer_norm)
  contraction,  // matmul, convolution, attention: lowered through a template
  matrix,       // whole matrices, step by step: lowered through a template (lu, cholesky)
  source,       // no tensor operands (constant, full, arange)
  structure,    // param, fused, control flow
  opaque,       // has effects, or only a library can do it
};
// What a view makes of the elements of its operands.
enum class ViewKind : uint8_t {
  select,   // takes some of them, or some several times (slice, flip, upsample)
  rename,   // takes each once, in row-major order (reshape)
  permute,  // takes each once, the dims in the order of its attribute `dims`
  expand,   // repeats them along dims in which there is one, or none
  join,     // lays those of a list side by side (cat)
  pad,      // puts others around them, which no operand has
};
// What ends a run whose numbers are not in the attributes [low, high), if anything.
enum class Asserts : uint8_t {
  nothing,
  positions,  // elements of the first operand
  key,        // a number that the host reads: the operand is what it is less `low`, without a sign
};
struct Traits {
  OpClass op_class;
  ViewKind view = ViewKind::select;  // of views
  bool is_commutative = false;
  bool is_layout_agnostic = true;  // keeps its meaning and cost under any layout of its operands
  bool has_effects = false;        // never dead, never merged (asserts)
  bool is_random = false;
  bool may_use_tf32 = false;    // in f32, by PyTorch's defaults on a GPU
  bool reads_first = true;      // false: its first operand gives the shape alone, no elements
  bool takes_epilogue = false;  // elementwise ops can follow its sums before they are written
  // The symbol in its attribute `size` is, from here on in a run, the value of its first operand,
  // a number, which is its result too. An effect: the host sees whether it is allowed.
  bool binds_size = false;
  Asserts asserts = Asserts::nothing;
};

// A slot is a function or the reason why there is none. It has no default: forgetting one does not
// compile.
struct Absent {
  std::string_view why;  // a sentence; static storage
};
template <class Function>
struct Slot {
  Slot(Absent absent) : why(absent.why) {}
  Slot(Function* f) : function(f) {}
  template <class F>
    requires std::is_convertible_v<F, Function*>
  Slot(F f) : function(f) {}
  explicit operator bool() const { return function != nullptr; }
  Function* function = nullptr;
  std::string_view why = {};
};

// Result types from operands and attributes; the Diag says which operand or attribute is wrong.
using InferFn = Result<std::vector<TensorType>>(const Node&);
// What infer takes for granted of sizes that are symbols, and refuses of numbers: comparisons, each
// with its cause. Asked of nodes that infer accepts.
using DemandsFn = std::vector<Guard>(const Node&);
// The meaning: obvious, slow, dense. Operands are flattened as in the node; null ones are empty
// tensors.
using ReferenceFn = Result<std::vector<Tensor>>(const Node&,
                                                std::span<const Tensor* const> operands);
// The same results from simpler ops; the builder carries the location and collects the first error.
using DecomposeFn = std::vector<Value>(Builder&, const Node&);
// The element of result `result` at `index` (one i64 expression per dim) as a scalar loop
// expression over operand elements. Target-independent; views, pointwise and reductions compose by
// substitution.
using LowerFn = loop::Expr(ElementContext&, const Node&, int result,
                           std::span<const loop::Expr> index);
// Vector-Jacobian product: gradients of the operands (null: none) from those of the results.
using DerivativeFn = std::vector<Value>(Builder&, const Node&, std::span<const Value> gradients);

// An FX target this op imports from, given as its ATen schema, whose names, types and defaults fill
// what a file omits. Schema arguments map to operands and attributes of the same name; others must
// be listed.
struct Import {
  std::string schema;  // "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"
  std::vector<std::pair<std::string, std::string>> renames =
      {};                                                // schema name -> row name; "" ignores it
  std::vector<std::pair<std::string, Attr>> fixed = {};  // attributes the schema does not have
  // When a mapping does not do: builds the results itself (one Value per schema return).
  Result<std::vector<Value>> (*build)(Builder&, const ImportCall&) = nullptr;
  // Of a composite: the ATen operator that this one is another name of, with all its overloads
  // ("div" of "divide", which is the whole `schema` then).
  std::string alias_of = {};
  // Of which calls: what those of complex numbers become (ir/op/complex.h), or of numbers in 8 bits
  // (ir/op/float8.h). With `alias_of` and without `build`: what this one's real twin does.
  NumberKind numbers = NumberKind::real;
  // Results have the types that are built, whatever the file says: graphs of PyTorch 2.11 have
  // positions and counts of some operators as floats, which eager returns as i64, and those of 2.13
  // have more dims along a negative `dim` than eager.
  bool has_own_types = false;

  ~Import();  // out of line: tables of these are long
};

// An operand of an example: explicit values, or a shape filled from a fixed seed.
struct ExampleTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape = {};
  std::vector<double> values = {};  // empty: filled from `low` to `high` by a seeded generator
  double low = -2;
  double high = 2;
  bool is_none = false;
};
// Documentation, test and fuzz seed at once.
struct Example {
  std::vector<ExampleTensor> operands = {};
  std::vector<std::pair<std::string, Attr>> attrs = {};
  std::vector<int> list_sizes = {};
};

struct OpDef {
  std::string name;      // text IR, file stem (or its family's), manual anchor
  std::string summary;   // one line: the formula
  std::string doc = {};  // edge cases: empty, NaN, negative dims
  std::vector<OperandSpec> operands;
  std::vector<AttrSpec> attrs;
  int num_results = 1;  // -1: as many as infer returns
  Traits traits;
  Slot<InferFn> infer;
  DemandsFn* demands = nullptr;  // omitted: infer takes nothing for granted
  Slot<ReferenceFn> reference;
  Slot<DecomposeFn> decompose;
  Slot<LowerFn> lower;
  Slot<DerivativeFn> derivative;
  std::vector<Import> imports;
  std::vector<Example> examples;

  int attr_index(std::string_view name) const;  // -1 when there is none
};

// The table of all ops, built once by existence (see ir/op/registry.bzl); rows live as long as it
// does.
class Registry {
 public:
  explicit Registry(std::vector<OpDef> rows, std::vector<Import> composites = {});
  Registry(const Registry&) = delete;
  const OpDef* find(std::string_view name) const;
  const std::vector<OpDef>& rows() const { return rows_; }  // sorted by name
  // FX targets that become several nodes, or none of their own, when they are imported.
  const std::vector<Import>& composites() const { return composites_; }

 private:
  std::vector<OpDef> rows_;
  std::vector<Import> composites_;
};

// "no op named 'rleu'; did you mean 'relu'?"
Diag unknown_op(const Registry& ops, std::string_view name);

}  // namespace lathe
