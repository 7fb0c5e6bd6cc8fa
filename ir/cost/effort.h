// What one operation of loop IR asks of a core, without its operands.
#pragma once
#include "ir/loop/node.h"
#include "ir/target/target.h"

namespace lathe {

struct Effort {
  double cycles = 0;       // of a unit that takes two a cycle of them
  double loads = 0;        // cycles of the loading units
  double operations = 0;   // that it is for the core
  double latency = 0;      // cycles until its result can be read
  bool is_scalar = false;  // of the units for addresses, beside those for vectors
};
Effort effort(const loop::ExprNode& node, const Target& target);

// Registers that hold a value.
double registers(loop::Expr e, const Target& target);

}  // namespace lathe
