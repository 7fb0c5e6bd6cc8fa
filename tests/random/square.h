// The square that must commute: a program over symbols, with numbers put in, and the program that
// was lowered for these numbers give what the graph means.
#pragma once
#include "tests/random/compiled.h"

namespace lathe::random_graphs {

// At each of the case's sizes, with strict numerics: both results agree with the oracle. Sizes that
// an op forbids must be refused; others may be, by a guard that is stricter than the op is with
// numbers. A case without symbols agrees. Where both lower each region to the same kind of kernel,
// `coverage` counts results of the "same bits" and of "other bits": a reduction over an extent that
// is known to be short, or beside one that is known to be 1, adds in another order.
Verdict run_square(const Case& test, const Machine& machine, Coverage* coverage = nullptr);

// Leaves out one guard of the program after the other and runs it at sizes near the hints that this
// guard alone forbids: the square must break at one of them. `coverage` counts the guards that are
// "needed" and "spare", those that no size was found for as "untried", and has the causes of spare
// ones. The verdict is `wrong` where one is spare.
Verdict run_without_guards(const Case& test, const Machine& machine, Coverage* coverage = nullptr);

}  // namespace lathe::random_graphs
