// The names of one FX graph: what its arguments refer to.
#pragma once
#include <string>
#include <unordered_map>
#include <variant>

#include "frontend/import/signature.h"
#include "frontend/import/symbols.h"
#include "ir/op/import_call.h"

namespace lathe {

// Each graph of a file is a namespace of its own. Tensors are bound as they are made; symbolic
// scalars are what the graph's tables say. Errors about broken references point into the JSON,
// those about what Lathe lacks at the builder's location.
class Scope {
 public:
  Scope(const pt2::Graph& graph, const json::Document& document, Symbols& symbols, Builder& builder,
        Module& module)
      : graph_(graph), document_(document), symbols_(symbols), builder_(builder), module_(module) {}

  const pt2::Graph& graph() const { return graph_; }
  Symbols& symbols() { return symbols_; }

  void bind(const std::string& name, CallArg value) { names_[name] = std::move(value); }
  // The constant node is made at the first use.
  void bind_weight(const std::string& name, std::string weight) {
    names_[name] = WeightName{std::move(weight)};
  }

  // Whether a symbolic number is an element of a tensor.
  bool is_data(const std::string& name) const { return !name.empty() && names_.contains(name); }

  // The tensor's type as the file has it; null when the file has none.
  Result<std::optional<TensorType>> expected_type(const std::string& name);

  // Where the file says that the tensor's elements lie; nullopt: row-major, from 0.
  Result<std::optional<Placement>> placement(const std::string& name);

  // What the file says that a tensor's elements stand for.
  Encoding encoding(const std::string& name) const;

  // Numbers and symbolic sizes in a tensor's place stay Attrs.
  Result<CallArg> argument(const pt2::Argument& arg);
  // The elements of a list argument one by one; anything else is one element.
  Result<std::vector<CallArg>> elements(const pt2::Argument& arg);
  // A symbolic integer argument.
  Result<Dim> size(const pt2::SymArgument<int64_t>& arg, uint32_t offset);
  // None, a bool, a number or a string; nullopt for anything else.
  static std::optional<PyConstant> constant(const pt2::Argument& arg);

  // An error at a byte of the file.
  Diag broken(uint32_t offset, std::string message);

 private:
  struct WeightName {
    std::string name;
  };
  Result<CallArg> named(const std::string& name, uint32_t offset);
  Result<Value> tensor(const std::string& name, uint32_t offset);
  Result<Value> weight(const std::string& name, const std::string& weight);
  Result<CallArg> sym_list(const std::vector<pt2::SymArgument<int64_t>>& list, uint32_t offset);
  template <class T>
  Result<CallArg> sym_scalar(const pt2::SymArgument<T>& arg,
                             const pt2::Table<pt2::SymScalar<T>>& values, uint32_t offset);
  Diag unsupported(const pt2::Argument& arg);

  const pt2::Graph& graph_;
  const json::Document& document_;
  Symbols& symbols_;
  Builder& builder_;
  Module& module_;
  std::unordered_map<std::string, std::variant<CallArg, WeightName>> names_;
};

}  // namespace lathe
