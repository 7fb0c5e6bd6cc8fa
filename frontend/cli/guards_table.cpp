// A row for each range and guard.
#include "frontend/cli/guards_table.h"

#include <fmt/format.h>

#include "frontend/cli/format.h"
#include "frontend/cli/places.h"

namespace lathe {
namespace {

std::string spell(const std::string& symbol, const DimRange& range) {
  const std::string low = range.min ? fmt::format("{} <= ", *range.min) : "";
  const std::string high = range.max ? fmt::format(" <= {}", *range.max) : "";
  return low + symbol + high;
}

}  // namespace

std::string guards_table(const Model& model, const Module& module) {
  Table table({Align::left, Align::left, Align::left, Align::left});
  table.add({"the sizes satisfy", "found by", "line", "because"});
  for (const auto& [symbol, range] : module.dims) {
    const auto size = model.dims.find(symbol);
    if (range.min || range.max)
      table.add({spell(symbol, range), "the file", "",
                 size == model.dims.end() ? "its range"
                                          : fmt::format("its range; here {}", size->second)});
  }
  for (const Guard& guard : module.guards)
    table.add({to_string(guard), guard.pass.empty() ? "the file" : guard.pass,
               describe_place(module.locs, guard.loc), guard.cause});
  if (model.signature)
    for (const std::string& text : model.signature->unread_guards)
      table.add({text, "nobody", "", "is no comparison of sizes: not checked"});
  const bool is_free = module.dims.empty() && module.guards.empty();
  return is_free ? "  no size is a symbol: there is nothing to satisfy\n" : table.str(2);
}

}  // namespace lathe
