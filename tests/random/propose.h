// Operands and attributes for a row, as it could be called on the values at hand. Nothing here has
// to be right: inference refuses what does not fit, and the next proposal is drawn.
//
// Rows that need related shapes (products, windows, norms, lookups) have a function in a table;
// elementwise rows and rows of one operand share one; a row that no table knows is proposed as in
// its examples. So a new row is covered as it comes.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/graph/op_def.h"
#include "tests/random/grower.h"

namespace lathe::random_graphs {

// Null operands at the front stand for "no proposal".
Proposal propose(Grower& grower, const OpDef& op);

// Rows that are in no generated graph by themselves, with the reason.
const std::map<std::string, std::string>& rows_left_out();

using ProposeFn = Proposal (*)(Grower&, const OpDef&);
using ProposeTable = std::map<std::string, ProposeFn>;
const ProposeTable& propose_views();
const ProposeTable& propose_products();
const ProposeTable& propose_windows();
const ProposeTable& propose_lookups();
const ProposeTable& propose_norms();
// A product, and a factor of each of its columns.
Proposal propose_scale(Grower& grower, const OpDef& op);

// An operand of the row as one of its examples has it.
Proposal propose_example(Grower& grower, const OpDef& op);
// A value for an attribute from its name, its kind and the examples; monostate: leave it out.
Attr propose_attr(Grower& grower, const OpDef& op, const AttrSpec& spec, int64_t rank);
// Each of them, most of the time.
NamedAttrs propose_attrs(Grower& grower, const OpDef& op, int64_t rank);

// `count` integers in [low, high].
std::vector<int64_t> integers(Draw& draw, size_t count, int64_t low, int64_t high);

}  // namespace lathe::random_graphs
