// Walks the calls of an FX graph and builds the nodes.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/import/import.h"
#include "frontend/import/scope.h"
#include "frontend/stacks/stacks.h"

namespace lathe {

// What a call's node is called: older files name only its results.
std::string call_name(const pt2::Node& node);
// Results that are no tensors: their values stand in the graph's tables, or in the argument.
bool is_scalar_tag(pt2::Argument::Tag tag);

// Higher-order calls: a region runs its one graph once; torch.cond picks one of two; map and scan
// run theirs for each row.
std::vector<const pt2::Graph*> graphs_of(const pt2::Node& node);
bool is_region(const pt2::Node& node);
bool is_cond(const pt2::Node& node);
// Whether it is an extent, whose value the graph's tables say.
bool is_size_of_tensor(const pt2::Node& node);
bool is_unrolled(const pt2::Node& node);
bool carries_graphs(const pt2::Node& node);
// Whether it reads the one element of a tensor as a number, or is arithmetic on numbers.
bool is_scalar_call(const pt2::Node& node);

class GraphImporter {
 public:
  // Fills model.module.graphs[0] and the leaves of model.signature; weights must be loaded.
  GraphImporter(const json::Document& document, const pt2::ExportedProgram& program,
                Symbols& symbols, const ImportTable& table, const Registry& ops,
                std::vector<RefusedCall>* refused, ImportedModel& model);
  Status run();

 private:
  using OutputSpec = pt2::OutputSpec;

  Status import_inputs();
  Status import_user_input(const pt2::InputSpec& spec);
  Status import_outputs();
  Status import_user_output(const pt2::OutputSpec& spec);
  Status import_mutation(const pt2::OutputSpec& spec);

  Status import_nodes(const pt2::Graph& graph, Scope& scope);
  Status import_node(const pt2::Node& node, Scope& scope);
  Status import_call_node(const pt2::Node& node, Scope& scope);
  bool is_refused(const pt2::Node& node) const;
  Status import_refused(const pt2::Node& node, Scope& scope);
  // Whether it was the work of numbers that are elements of tensors, which is done then.
  Result<bool> import_data_scalar(const pt2::Node& node, Scope& scope);
  Result<bool> import_data_assertion(const pt2::Node& node, Scope& scope);
  // Casts the call's arguments as the region that it is in does.
  Status apply_autocast(ImportCall& call);
  DType widest_float(const ImportCall& call) const;
  Status import_region(const pt2::Node& node, Scope& scope);
  Status import_cond(const pt2::Node& node, Scope& scope);
  Status import_unrolled(const pt2::Node& node, Scope& scope);
  Result<CallArg> row_of(const pt2::Node& node, const CallArg& tensor, int64_t i, Scope& scope);
  // A node of one operand, complex where that is.
  Value changed(Value value, std::string_view op, NamedAttrs attrs);
  // The results of the graph on the call's operands, or on others.
  Result<std::vector<CallArg>> inline_graph(const pt2::Node& node, const pt2::Graph& graph,
                                            Scope& scope);
  Result<std::vector<CallArg>> inline_graph(const pt2::Node& node, const pt2::Graph& graph,
                                            std::vector<CallArg> operands, Scope& scope);
  Status bind_outputs(const pt2::Node& node, const std::vector<CallArg>& results, Scope& scope);
  Result<Value> in_sizes_of_file(const pt2::Node& node, const std::string& name, Value value,
                                 Scope& scope);

  // Whether a node binds the symbol.
  bool is_bound(const std::string& symbol);
  // Whether sizes of tensors have the symbol.
  Result<bool> is_size(const pt2::Graph& graph, const std::string& symbol);
  // Whether the call only computes sizes, which the graph's tables already hold.
  Result<bool> is_symbolic(const pt2::Node& node, const pt2::Graph& graph);
  Loc locate(const pt2::Node& node);

  // All calls that no row imports, as one Diag.
  struct Unsupported {
    std::string target;
    size_t uses = 0;
    size_t order = 0;  // of the first uses in the graph
    Loc first;
  };
  bool is_imported(std::string_view target) const;
  Status check_supported();
  Status refuse_unsupported();
  Status find_unsupported(const pt2::Graph& graph, std::map<std::string_view, Unsupported>& found);
  std::string unsupported_row(const Unsupported& op, size_t width) const;

  const json::Document& document_;
  const pt2::ExportedProgram& program_;
  Symbols& symbols_;
  const ImportTable& table_;
  std::vector<RefusedCall>* refused_;  // null: the first that is found is an error
  ImportedModel& model_;
  StackReader stacks_;
  Builder builder_;
  std::set<std::string> read_names_;
  std::optional<DType> autocast_;  // what floats are cast to here
  size_t num_unrolled_ = 0;        // calls of graphs that run for each row, so far
  Scope scope_;
};

}  // namespace lathe
