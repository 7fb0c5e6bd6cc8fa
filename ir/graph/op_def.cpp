// The table of rows.
#include "ir/graph/op_def.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/diag_codes.h"

namespace lathe {

Import::~Import() = default;

int OpDef::attr_index(std::string_view attr_name) const {
  for (size_t i = 0; i < attrs.size(); ++i)
    if (attrs[i].name == attr_name) return static_cast<int>(i);
  return -1;
}

Registry::Registry(std::vector<OpDef> rows, std::vector<Import> composites)
    : rows_(std::move(rows)), composites_(std::move(composites)) {
  std::stable_sort(rows_.begin(), rows_.end(),
                   [](const OpDef& a, const OpDef& b) { return a.name < b.name; });
}

const OpDef* Registry::find(std::string_view name) const {
  const auto row = std::lower_bound(rows_.begin(), rows_.end(), name,
                                    [](const OpDef& a, std::string_view b) { return a.name < b; });
  return row != rows_.end() && row->name == name ? &*row : nullptr;
}

Diag unknown_op(const Registry& ops, std::string_view name) {
  std::vector<std::string> names;
  for (const OpDef& row : ops.rows()) names.push_back(row.name);
  std::string message = fmt::format("no op named '{}'", name.substr(0, 60));
  if (const std::string near = nearest(name, names); !near.empty())
    message += fmt::format("; did you mean '{}'?", near);
  return Diag{code::kUnknownOp, Loc::unknown(), std::move(message)};
}

}  // namespace lathe
