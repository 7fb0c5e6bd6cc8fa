// What is said of results and errors.
#pragma once
#include "tests/random/compiled.h"

namespace lathe::random_graphs {

// By the oracle; more of its runs where few of them disagree with the result.
Verdict judge_result(const Case& test, const Ran& ran, const Machine& machine);

// `error`, or `left_out` where something is not there.
Verdict failed(const Diag& diag);

// Of sizes, by a range, a guard or a check of the binding.
bool is_refusal(const Diag& diag);
// Of a case whose sizes are symbols: parts of an op may need to know what the op only demands, as
// the biases of a recurrent layer do.
bool is_refusal_to_lower(const Diag& diag);

}  // namespace lathe::random_graphs
