// Symbolic scalars of a file: parsed expressions, ranges and example values.
#pragma once
#include <set>
#include <string>
#include <unordered_map>

#include "frontend/pt2/schema.h"
#include "ir/graph/node.h"
#include "ir/type/encoding.h"

namespace lathe {

// Parses sizes and collects what the file says of their symbols. Expressions repeat by the
// thousand, so each text is parsed once.
class Symbols {
 public:
  Symbols(const json::Document& document, Module& module) : document_(document), module_(module) {}

  // Every size seen so far has its symbols in Module::dims.
  Result<Dim> dim(const pt2::SymInt& value);
  // The same for a tensor; sizes are at least 0 and a static product fits int64. `name` names the
  // tensor in errors.
  Result<TensorType> type(const pt2::TensorMeta& meta, std::string_view name);

  // Ranges of symbols; those of derived expressions (2*s0 + 1) are solved for their symbol.
  Status add_ranges(const pt2::Table<pt2::RangeConstraint>& constraints);
  // Takes example values and notes that a caller's arguments determine the symbols.
  Status add_input(const pt2::SymInt& value);
  bool is_input_symbol(const std::string& symbol) const { return inputs_.count(symbol) != 0; }

  // Whether two sizes can be equal: as expressions, or, where expressions do not decide, under the
  // example values.
  bool may_be_equal(const Dim& a, const Dim& b) const;

 private:
  Result<Dim> parse(const std::string& text, size_t offset);

  const json::Document& document_;
  Module& module_;
  std::unordered_map<std::string, Dim> parsed_;
  std::set<std::string> inputs_;
};

// The serializer's number; nullopt for what Lathe has no type for. Of complex numbers: that of
// their parts, which stand in pairs in a last dim that the file does not have (ir/op/complex.h).
std::optional<DType> dtype_of(pt2::ScalarType type);
Encoding encoding_of(pt2::ScalarType type);
// Its name in PyTorch: "complex64".
std::string_view scalar_type_name(pt2::ScalarType type);

}  // namespace lathe
