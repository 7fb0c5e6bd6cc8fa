// lstm, gru, rnn_tanh and rnn_relu: stacked, perhaps bidirectional layers; decompose into those.
#include <fmt/format.h>

#include <utility>

#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/import_call.h"
#include "ir/op/recurrent.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Operands: input [T, B, in] ([B, T, in] when batch_first), hx = {h}, or {h, c} of an lstm, each
// [layers * directions, B, hidden], and for each layer and direction its weights on the input and
// on h, and their biases.
struct Sizes {
  const CellDef& cell;
  Dim steps, batch;
  int64_t hidden, layers, directions, per_cell;
  Shape state() const { return {layers * directions, batch, hidden}; }
};

Sizes sizes(const Node& node) {
  const Shape& input = node.operands[0].type().shape;
  const size_t time = node.bool_attr("batch_first") ? 1 : 0;
  return {*find_cell(node.op->name),
          input[time],
          input[1 - time],
          node.operands[1].type().shape[2].value(),
          node.int_attr("num_layers"),
          node.bool_attr("bidirectional") ? 2 : 1,
          node.bool_attr("has_biases") ? 4 : 2};
}

// Of states and weights.
std::vector<WantedShape> wanted_shapes(const Node& node, const Sizes& s) {
  std::vector<WantedShape> wanted;
  for (Value h : node.operand_list(1))
    wanted.push_back({fmt::format("a state {}", wanted.size()), h, s.state()});
  for (int64_t i = 0; i < node.list_sizes[1]; ++i) {
    const int64_t kind = i % s.per_cell;
    const Dim width = i < s.directions * s.per_cell ? node.operands[0].type().shape[2]
                                                    : Dim(s.hidden * s.directions);
    Shape shape = {s.cell.gates * s.hidden};
    if (kind < 2) shape.push_back(kind == 0 ? width : Dim(s.hidden));
    const Value given = node.operand_list(2)[static_cast<size_t>(i)];
    wanted.push_back({fmt::format("a weight {}", i), given, std::move(shape)});
  }
  return wanted;
}

Result<std::vector<TensorType>> infer_recurrent(const Node& node) {
  const TensorType& input = node.operands[0].type();
  const auto refuse = [&](std::string_view what) {
    return Diag{code::kShapeMismatch, node.loc, fmt::format("'{}' {}", node.op->name, what)};
  };
  if (input.rank() != 3) return refuse("needs an input with time and batch dims");
  if (input.shape[node.bool_attr("batch_first") ? 1 : 0] == Dim(0))
    return refuse("needs at least one step");
  const CellDef& cell = *find_cell(node.op->name);
  if (node.list_sizes[0] != cell.states)
    return refuse(fmt::format("needs {} initial states, got {}", cell.states, node.list_sizes[0]));
  for (Value state : node.operand_list(1)) {
    if (state.type().rank() != 3 || !state.type().shape[2].is_const())
      return refuse("needs states of rank 3 and constant size");
  }
  const Sizes s = sizes(node);
  const int64_t per_layer = s.directions * s.per_cell, num_weights = node.list_sizes[1];
  if (s.layers < 1 || num_weights % per_layer != 0 || num_weights / per_layer != s.layers)
    return refuse("got another number of weights than its layers need (no projections)");
  LATHE_DO(check_shapes(node, wanted_shapes(node, s)));
  std::vector<TensorType> results(static_cast<size_t>(1 + cell.states), {input.dtype, s.state()});
  results[0].shape = {input.shape[0], input.shape[1], s.hidden * s.directions};
  return results;
}

std::vector<Guard> recurrent_demands(const Node& node) {
  const Sizes s = sizes(node);
  Demands demands(node);
  demands.at_most(1, s.steps, "needs at least one step");
  demands.equal(wanted_shapes(node, s));
  return demands.take();
}

Result<std::vector<Tensor>> recurrent_reference(const Node& node,
                                                std::span<const Tensor* const> operands) {
  const Sizes s = sizes(node);
  const int64_t steps = s.steps.value(), batch = s.batch.value(), hidden = s.hidden;
  std::vector<Tensor> results;
  for (int i = 0; i <= s.cell.states; ++i) results.push_back(result_tensor(node, i));
  const bool batch_first = node.bool_attr("batch_first");
  // Where (t, b) stands among the rows of input and output.
  const auto row = [&](int64_t t, int64_t b) {
    return batch_first ? b * steps + t : t * batch + b;
  };
  int64_t in = operands[0]->shape[2];
  std::vector<double> x(static_cast<size_t>(steps * batch * in));
  for (int64_t i = 0; i < steps * batch * in; ++i) {
    const int64_t t = i / in / batch, b = i / in % batch;
    x[static_cast<size_t>(i)] = operands[0]->get(row(t, b) * in + i % in);
  }
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    const int64_t width = hidden * s.directions;
    std::vector<double> out(static_cast<size_t>(steps * batch * width));
    for (int64_t direction = 0; direction < s.directions; ++direction) {
      const int64_t index = layer * s.directions + direction;
      const int64_t first = 1 + s.cell.states + index * s.per_cell;
      const auto weight = [&](int64_t i) { return operands[static_cast<size_t>(first + i)]; };
      LayerSteps steps_of{s.cell.cell, s.cell.gates, steps, batch, hidden, direction == 1};
      steps_of.gate_of_x = [&](int64_t t, int64_t b, int64_t gate) {
        double sum = s.per_cell == 4 ? weight(2)->get(gate) : 0;
        for (int64_t k = 0; k < in; ++k)
          sum += weight(0)->get(gate * in + k) * x[static_cast<size_t>((t * batch + b) * in + k)];
        return sum;
      };
      steps_of.weight = [&](int64_t k, int64_t gate) { return weight(1)->get(gate * hidden + k); };
      if (s.per_cell == 4) steps_of.bias = [&](int64_t gate) { return weight(3)->get(gate); };
      steps_of.output = [&](int64_t t, int64_t b, int64_t j, double h) {
        out[static_cast<size_t>((t * batch + b) * width + direction * hidden + j)] = h;
      };
      const int64_t base = index * batch * hidden;
      std::vector<std::vector<double>> states(static_cast<size_t>(s.cell.states));
      for (size_t n = 0; n < states.size(); ++n)
        for (int64_t i = 0; i < batch * hidden; ++i)
          states[n].push_back(operands[1 + n]->get(base + i));
      steps_of.run(states);
      for (size_t n = 0; n < states.size(); ++n)
        for (int64_t i = 0; i < batch * hidden; ++i)
          put(results[1 + n], base + i, states[n][static_cast<size_t>(i)]);
    }
    x = std::move(out);
    in = width;
  }
  for (int64_t i = 0; i < steps * batch * in; ++i) {
    put(results[0], row(i / in / batch, i / in % batch) * in + i % in, x[static_cast<size_t>(i)]);
  }
  return results;
}

// --- decomposition

Term at_index(Term x, int64_t dim, const Dim& index) {
  return apply("select", {x}, {{"dim", dim}, {"index", index}});
}

Term join(Builder& b, const std::vector<Value>& parts, int64_t dim) {
  return {b, parts.size() == 1 ? parts[0] : b.call("cat", parts, {{"dim", dim}})};
}

// The input's part of all gates at once, and a recurrent_layer for each direction of each layer.
std::vector<Value> decompose_recurrent(Builder& b, const Node& node) {
  const Sizes s = sizes(node);
  const int64_t time = node.bool_attr("batch_first") ? 1 : 0;
  Term x = operand_term(b, node, 0);
  std::vector<std::vector<Value>> last(static_cast<size_t>(s.cell.states));
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    std::vector<Value> outputs;
    for (int64_t direction = 0; direction < s.directions; ++direction) {
      const int64_t index = layer * s.directions + direction;
      const auto weight = [&](int64_t i) {
        const int64_t first = 1 + s.cell.states + index * s.per_cell;
        return Term{b, node.operands[static_cast<size_t>(first + i)]};
      };
      // Both biases are added to x's part, but a gru multiplies some of h's.
      const bool is_gru = s.cell.cell == Cell::gru;
      Value bias, bias_of_h;
      if (s.per_cell == 4) {
        bias = is_gru ? weight(2) : weight(2) + weight(3);
        if (is_gru) bias_of_h = weight(3);
      }
      const Value gates = b.call("linear", {x, weight(0), bias});
      const Term by_h = transpose_last(weight(1));
      std::vector<Value> states;
      for (const Value state : node.operand_list(1))
        states.push_back(at_index({b, state}, 0, index));
      const Value c = states.size() == 2 ? states[1] : Value();
      const Term all{b, b.call("recurrent_layer", {gates, states[0], by_h, c, bias_of_h},
                               {{"cell", std::string(s.cell.name)},
                                {"reverse", direction == 1},
                                {"batch_first", time == 1}})};
      outputs.push_back(
          apply("slice", {all}, {{"dim", time}, {"start", Dim(0)}, {"end", s.steps}}));
      for (size_t n = 0; n < last.size(); ++n) {
        const Dim t = n == 1 ? s.steps : direction == 1 ? Dim(0) : s.steps - Dim(1);
        last[n].push_back(apply("unsqueeze", {at_index(all, time, t)}, {{"dim", int64_t{0}}}));
      }
    }
    x = join(b, outputs, 2);
  }
  std::vector<Value> results = {x};
  for (const std::vector<Value>& states : last) results.push_back(join(b, states, 0));
  return results;
}

template <Cell kCell>
Result<std::vector<Value>> import_recurrent(Builder& b, const ImportCall& call) {
  const CellDef& cell = all_cells()[static_cast<size_t>(kCell)];
  if (call.bool_attr("train") && call.float_attr("dropout") != 0) {
    return Diag{
        code::kUnsupported, call.loc,
        fmt::format("{} with dropout is random; export the model after model.eval()", cell.name)};
  }
  std::vector<Value> operands = {call.value("input")};
  const std::vector<Value> weights = call.values("params");
  std::vector<Value> states = cell.states == 2 ? call.values("hx") : std::vector{call.value("hx")};
  operands.insert(operands.end(), states.begin(), states.end());
  operands.insert(operands.end(), weights.begin(), weights.end());
  LATHE_TRY(std::vector<Value> results,
            import_node(b, call, std::string(cell.name), std::move(operands),
                        {{"has_biases", call.bool_attr("has_biases")},
                         {"num_layers", call.int_attr("num_layers")},
                         {"bidirectional", call.bool_attr("bidirectional")},
                         {"batch_first", call.bool_attr("batch_first")}},
                        {static_cast<int>(states.size()), static_cast<int>(weights.size())}));
  // PyTorch 2.11 records the last states with a dim too many; nothing can have used them then.
  const bool is_misrecorded =
      call.expected.size() == results.size() && call.expected[1].rank() == 4;
  for (size_t i = 1; is_misrecorded && i < results.size(); ++i) results[i] = Value{};
  return results;
}

AttrSpec flag(std::string name) {
  return {.name = std::move(name), .kind = AttrKind::boolean, .default_value = false};
}

std::vector<Example> recurrent_examples(const CellDef& cell) {
  const auto small = [](std::vector<int64_t> shape) {
    return ExampleTensor{.shape = std::move(shape), .low = -0.5, .high = 0.5};
  };
  const int64_t gates = 2 * cell.gates;
  const auto example = [&](std::vector<int64_t> input, int64_t layers) {
    Example made{.operands = {{.shape = std::move(input)}}};
    for (int64_t i = 0; i < cell.states; ++i) made.operands.push_back({.shape = {layers, 2, 2}});
    return made;
  };
  Example one = example({3, 2, 3}, 1), stacked = example({2, 3, 3}, 4);
  one.attrs = {{"has_biases", true}};
  for (std::vector<int64_t> shape : {std::vector<int64_t>{gates, 3}, {gates, 2}, {gates}, {gates}})
    one.operands.push_back(small(std::move(shape)));
  one.list_sizes = {static_cast<int>(cell.states), 4};
  stacked.attrs = {{"num_layers", int64_t{2}}, {"bidirectional", true}, {"batch_first", true}};
  for (int64_t in : {3, 3, 4, 4}) {
    stacked.operands.push_back(small({gates, in}));
    stacked.operands.push_back(small({gates, 2}));
  }
  stacked.list_sizes = {static_cast<int>(cell.states), 8};
  return {std::move(one), std::move(stacked)};
}

template <Cell kCell>
OpDef recurrent_row(std::string summary, std::string doc) {
  const CellDef& cell = all_cells()[static_cast<size_t>(kCell)];
  const bool is_lstm = cell.states == 2;
  return {
      .name = std::string(cell.name),
      .summary = std::move(summary),
      .doc = std::move(doc),
      .operands = {{"input"},
                   {"hx", OperandKind::tensor_list},
                   {"params", OperandKind::tensor_list}},
      .attrs = {flag("has_biases"),
                {.name = "num_layers", .kind = AttrKind::integer, .default_value = int64_t{1}},
                flag("bidirectional"),
                flag("batch_first")},
      .num_results = static_cast<int>(1 + cell.states),
      .traits = {.op_class = OpClass::contraction, .is_layout_agnostic = false},
      .infer = infer_recurrent,
      .demands = recurrent_demands,
      .reference = recurrent_reference,
      .decompose = decompose_recurrent,
      .lower = Absent{"decomposes into its layers"},
      .derivative = Absent{"decompose first; its parts have derivatives"},
      .imports = {{.schema = fmt::format(
                       "{}.input(Tensor input, Tensor{} hx, Tensor[] params, bool has_biases, int "
                       "num_layers, float dropout, bool train, bool bidirectional, bool "
                       "batch_first) -> (Tensor, Tensor{})",
                       cell.name, is_lstm ? "[]" : "", is_lstm ? ", Tensor" : ""),
                   .build = import_recurrent<kCell>}},
      .examples = recurrent_examples(cell),
  };
}

}  // namespace

std::vector<OpDef> define_recurrent() {
  return {
      recurrent_row<Cell::lstm>(
          "long short-term memory over time: the outputs, the last h and the last c",
          "Gates in PyTorch's order: input, forget, cell, output. Without projections."),
      recurrent_row<Cell::gru>("gated recurrent units over time: the outputs and the last h",
                               "Gates in PyTorch's order: reset, update, new."),
      recurrent_row<Cell::rnn_tanh>("tanh of sums over time: the outputs and the last h", ""),
      recurrent_row<Cell::rnn_relu>("relu of sums over time: the outputs and the last h", ""),
  };
}

}  // namespace lathe
