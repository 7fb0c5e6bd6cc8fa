// From a call of an ATen operator, as an exported FX graph has it, to nodes.
//
// The frontend turns every FX node into an ImportCall without knowing the operator; the rows'
// imports say the rest.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "ir/op/import_table.h"
#include "ir/op/schema.h"

namespace lathe {

// A complex number, and the dtype of complex numbers: complex64 is that of f32. The graph has
// neither.
struct ComplexNumber {
  double real = 0;
  double imag = 0;
};
struct ComplexDType {
  DType part = DType::f32;
};
// A dtype of 8 bits.
struct Float8DType {
  Encoding encoding = Encoding::float8_e4m3fn;
};

// An argument: a tensor, a list of tensors (null: None), or anything else. None is a monostate
// Attr. Numbers and symbolic sizes in a tensor's place stay Attrs: they are weakly typed scalars.
using CallArg =
    std::variant<Value, std::vector<Value>, Attr, ComplexNumber, ComplexDType, Float8DType>;

// Where elements of a tensor lie in its memory.
struct Placement {
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

// One call. The frontend fills the first block; import_call fills the second before it asks a
// row's own `build`.
struct ImportCall {
  std::string target;  // "aten.softmax.int"; "torch.ops." and ".default" may stand or be left out
  std::vector<std::pair<std::string, CallArg>> args;  // by schema name, in any order
  std::vector<TensorType> expected;  // of the returned tensors, as the file has them; may be empty
  std::vector<bool> used;            // of the returned tensors; empty: the first alone
  std::optional<Placement> placement;  // of the first tensor; nullopt: row-major, from 0
  std::string name;                    // of the FX node
  Loc loc;

  const ImportTable* table = nullptr;
  const Schema* schema = nullptr;
  const OpDef* op = nullptr;  // null: a composite
  bool in_place = false;
  bool is_inner = false;  // a composite's own, which knows its positions
  // The complex number that was asked for as an attribute, which has none: the call is refused.
  mutable std::string misread = {};

  // Whether anything reads the returned tensor: of saved statistics mostly nothing does.
  bool is_used(size_t i) const { return i < used.size() ? used[i] : i == 0; }

  // By schema name, for `build` functions; the schema's default when omitted.
  const CallArg* find(std::string_view arg) const;  // null: omitted and without default
  Value value(std::string_view arg) const;          // null when None or not a tensor
  std::vector<Value> values(std::string_view arg) const;
  Attr attr(std::string_view arg) const;  // monostate when it is a tensor or omitted
  bool is_none(std::string_view arg) const;
  int64_t int_attr(std::string_view arg, int64_t fallback = 0) const;
  double float_attr(std::string_view arg, double fallback = 0) const;
  bool bool_attr(std::string_view arg, bool fallback = false) const;
  DType dtype_attr(std::string_view arg, DType fallback) const;
  std::string string_attr(std::string_view arg) const;
  std::vector<int64_t> ints_attr(std::string_view arg) const;
  std::vector<Dim> dims_attr(std::string_view arg) const;
};

// Appends the nodes of the call and returns its results: one value per returned tensor, lists
// flattened, none for an assertion. A null Value stands for a return that Lathe does not compute
// (the saved statistics of a norm); using it is the caller's error to report.
//
// Generic mapping: arguments go to the row's operands and attributes of the same name, after
// Import::renames and ::fixed; devices, layouts, memory formats, generators and the like are
// ignored; a list of length 1 for int[k] stands for k copies; scalars in tensor places become
// rank-0 constants whose dtype follows PyTorch's weak promotion against the call's other tensors.
// Result dtypes are checked against call.expected.
Result<std::vector<Value>> import_call(Builder& builder, const ImportTable& table, ImportCall call);

// For `build` functions: the argument as a dim of a tensor of this rank, normalised.
Result<int> import_dim(const ImportCall& call, std::string_view arg, int rank);
// The argument as a tensor, weak scalars as constants. Null when None.
Result<Value> import_tensor(Builder& builder, const ImportCall& call, std::string_view arg);
// A complex number of rank 0.
Value complex_constant(Builder& builder, ComplexNumber number, DType part);
// A node of `op` that takes the call's name and in-place flag.
Result<std::vector<Value>> import_node(Builder& builder, const ImportCall& call,
                                       std::string_view op, std::vector<Value> operands,
                                       NamedAttrs attrs = {}, std::vector<int> list_sizes = {});

}  // namespace lathe
