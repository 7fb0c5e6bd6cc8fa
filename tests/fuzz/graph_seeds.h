// Graphs to start from.
#pragma once
#include <string>
#include <vector>

namespace lathe::fuzz {

// Texts of the examples of rows that kernels can be made for.
std::vector<std::string> graphs_of_examples();

}  // namespace lathe::fuzz
