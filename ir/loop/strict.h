// One meaning, to the bit, on every target.
#pragma once
#include "ir/loop/node.h"

namespace lathe::loop {

// Takes out what targets may decide: functions are expanded (expand_math), fma becomes a product
// and a sum, each rounded, and a float minimum or maximum that is zero is +0. What is left is IEEE
// arithmetic in a fixed order, so two targets that run the same loops with the same lanes give the
// same bits; NaN payloads are exempt.
void make_strict(Kernel& kernel);

}  // namespace lathe::loop
