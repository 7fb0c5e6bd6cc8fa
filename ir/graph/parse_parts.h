// The parts of the text form below statements: attribute values and locations.
// Only ir/graph/parse*.cpp includes this.
#pragma once
#include <map>
#include <string>

#include "ir/graph/node.h"
#include "ir/graph/op_def.h"
#include "ir/support/lexer.h"
#include "ir/support/result.h"

namespace lathe {

// The value of an attribute in the kind its row wants.
Result<Attr> parse_attr(Lexer& lexer, const OpDef& op, const AttrSpec& spec);

// A kind of kernel and its tile; "using" has been read.
Result<KernelPlan> parse_plan(Lexer& lexer);

// The rows of a locs table by number; "locs" has been read. A derived row may name earlier rows
// only.
Result<std::map<int64_t, Loc>> parse_locs(Lexer& lexer, LocTable& locs);

// The number of "@3".
Result<int64_t> parse_loc_number(Lexer& lexer);

}  // namespace lathe
