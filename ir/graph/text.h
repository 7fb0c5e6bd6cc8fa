// The text form of graphs; the grammar stands at the top of print.cpp. print is canonical: equal
// modules print equally, and parse(print(m)) is structurally m, but for the bytes of weights.
#pragma once
#include <string>
#include <string_view>

#include "ir/graph/node.h"
#include "ir/graph/op_def.h"
#include "ir/support/result.h"

namespace lathe {

struct PrintOptions {
  bool locations = false;  // "@3" on statements and a locs table at the end
};
std::string print(const Module& module, const PrintOptions& options = {});
std::string print(const Graph& graph);  // as a function, without the sizes it depends on
std::string print(const Node& node);    // one line, for messages
std::string print(const Attr& attr);
std::string print(const KernelPlan& plan);

// `file` names the text in locations. On failure `locs_on_error` (when given) receives the table
// that the Diag's locations refer to. All results are typed and verified.
Result<Module> parse(std::string_view text, const Registry& ops, std::string_view file = "<text>",
                     LocTable* locs_on_error = nullptr);

}  // namespace lathe
