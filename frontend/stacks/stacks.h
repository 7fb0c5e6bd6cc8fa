// Locations of FX nodes: the Python stack, module path and origin that the exporter recorded.
//
// All of it is advice: text that does not have the expected form is skipped, never an error.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>

#include "ir/support/loc.h"

namespace lathe {

// What an exporter wrote about one node, in PyTorch's own syntax; empty when absent.
struct NodeOrigin {
  std::string_view name;             // "linear_3"
  std::string_view target;           // "aten.linear.default"
  std::string_view stack_trace;      // 'File "m.py", line 3, in forward\n    y = f(x)\n ...'
  std::string_view nn_module_stack;  // "key,path,class;key,path,class", outermost first
  std::string_view from_node;        // JSON: the nodes it was made from, nested
};

// Adds one row a node to the table. Stacks repeat from node to node, so each text is read once.
class StackReader {
 public:
  explicit StackReader(LocTable& locs) : locs_(locs) {}

  // A python row; when from_node says that another node stood here before decompositions, the row
  // is that node's, below a derived row by "run_decompositions".
  Loc locate(const NodeOrigin& origin);

 private:
  struct Module {
    std::string path;
    std::string type;
  };
  int32_t frame_of(std::string_view stack_trace);
  const Module& module_of(std::string_view nn_module_stack);

  LocTable& locs_;
  std::unordered_map<std::string, int32_t> frames_;
  std::unordered_map<std::string, Module> modules_;
  std::string root_text_;  // the from_node last read, and its root
  std::string root_name_;
  std::string root_target_;
};

}  // namespace lathe
