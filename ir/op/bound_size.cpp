// Sizes that elements decide: see bound_size.h.
#include "ir/op/bound_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace lathe {

Dim bound_size(const ImportCall& call, Term count, size_t dim, size_t result) {
  Builder& builder = count.builder();
  std::vector<std::string> known = builder.graph().bound_symbols();
  for (const auto& param : builder.graph().params) collect_symbols(*param, known);
  const auto is_known = [&](const std::string& name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  const std::vector<TensorType>& expected = call.expected;
  std::optional<Dim> extent;
  if (result < expected.size() && dim < expected[result].shape.size())
    extent = expected[result].shape[dim];
  std::vector<std::string> names;
  if (extent) extent->collect_symbols(names);
  const bool is_old = extent && std::all_of(names.begin(), names.end(), is_known);
  std::string symbol = extent ? extent->symbol_name() : "";
  for (size_t i = 0; symbol.empty() || is_known(symbol); ++i) symbol = fmt::format("n{}", i);
  const Dim size = Dim::symbol(symbol);
  apply("bind_size", {count}, {{"size", size}});
  if (!is_old) return size;
  const Value places = builder.call("arange", {}, {{"end", size}, {"dtype", DType::i64}});
  apply("assert_metadata", {{builder, places}}, {{"size", Shape{*extent}}});
  return *extent;
}

}  // namespace lathe
