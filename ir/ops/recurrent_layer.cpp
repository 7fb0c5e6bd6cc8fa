// recurrent_layer: one direction of one layer; has a kernel of its own, or decomposes into its
// steps.
#include <fmt/format.h>

#include <utility>

#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/recurrent.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr int64_t kMaxSteps = 1024;  // unrolled: graphs grow by each

size_t time_dim(const Node& node) { return node.bool_attr("batch_first") ? 1 : 0; }

const CellDef* cell_of(const Node& node) {
  return find_cell(std::get<std::string>(node.attr("cell")));
}

std::vector<WantedShape> wanted_shapes(const Node& node, const CellDef& cell) {
  const Shape &gates = node.operands[0].type().shape, &h = node.operands[1].type().shape;
  const Dim of_gates = Dim(cell.gates) * h[1];
  std::vector<WantedShape> wanted = {
      {"gates", node.operands[0], {gates[0], gates[1], of_gates}},
      {"an h", node.operands[1], {gates[1 - time_dim(node)], h[1]}},
      {"a weight", node.operands[2], {h[1], of_gates}},
  };
  if (node.operands[3]) wanted.push_back({"a c", node.operands[3], h});
  if (node.operands[4]) wanted.push_back({"a bias", node.operands[4], {of_gates}});
  return wanted;
}

Result<std::vector<TensorType>> infer_recurrent_layer(const Node& node) {
  const auto refuse = [&](const std::string& what) {
    return Diag{code::kShapeMismatch, node.loc, fmt::format("'recurrent_layer' needs {}", what)};
  };
  const CellDef* cell = cell_of(node);
  if (cell == nullptr) {
    std::vector<std::string_view> names;
    for (const CellDef& def : all_cells()) names.push_back(def.name);
    return refuse(fmt::format("a cell of {}, got '{}'", fmt::join(names, ", "),
                              std::get<std::string>(node.attr("cell")).substr(0, 60)));
  }
  const TensorType &gates = node.operands[0].type(), &h = node.operands[1].type();
  if (gates.rank() != 3) return refuse("gates with a time, a batch and a gate dim");
  if (h.rank() != 2 || !h.shape[1].is_const())
    return refuse("an h of a batch and a hidden dim of constant size");
  if (static_cast<bool>(node.operands[3]) != (cell->states == 2))
    return refuse(cell->states == 2 ? "a c" : fmt::format("no c for a {}", cell->name));
  LATHE_DO(check_shapes(node, wanted_shapes(node, *cell)));
  const size_t time = time_dim(node);
  Shape result = gates.shape;
  result[time] = gates.shape[time] + Dim(cell->states - 1);
  result[2] = h.shape[1];
  return std::vector<TensorType>{{gates.dtype, std::move(result)}};
}

std::vector<Guard> recurrent_layer_demands(const Node& node) {
  Demands demands(node);
  demands.equal(wanted_shapes(node, *cell_of(node)));
  return demands.take();
}

Result<std::vector<Tensor>> recurrent_layer_reference(const Node& node,
                                                      std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const CellDef& cell = *cell_of(node);
  const size_t time = time_dim(node);
  const std::vector<int64_t>& shape = result.shape;
  const int64_t hidden = shape[2], columns = cell.gates * hidden;
  LayerSteps layer{cell.cell,       cell.gates, shape[time] - (cell.states - 1),
                   shape[1 - time], hidden,     node.bool_attr("reverse")};
  const auto row = [&](int64_t steps, int64_t t, int64_t b) {
    return time == 0 ? t * layer.batch + b : b * steps + t;
  };
  layer.gate_of_x = [&](int64_t t, int64_t b, int64_t gate) {
    return operands[0]->get(row(layer.steps, t, b) * columns + gate);
  };
  layer.weight = [&](int64_t k, int64_t gate) { return operands[2]->get(k * columns + gate); };
  if (node.operands[4]) layer.bias = [&](int64_t gate) { return operands[4]->get(gate); };
  layer.output = [&](int64_t t, int64_t b, int64_t j, double value) {
    put(result, row(shape[time], t, b) * hidden + j, value);
  };
  std::vector<std::vector<double>> states;
  for (const size_t operand : {size_t{1}, size_t{3}}) {
    if (!node.operands[operand]) continue;
    states.emplace_back();
    for (int64_t i = 0; i < layer.batch * hidden; ++i)
      states.back().push_back(operands[operand]->get(i));
  }
  layer.run(states);
  if (cell.states == 2)
    for (int64_t i = 0; i < layer.batch * hidden; ++i)
      layer.output(layer.steps, i / hidden, i % hidden, states[1][static_cast<size_t>(i)]);
  return std::vector<Tensor>{std::move(result)};
}

std::vector<Value> decompose_recurrent_layer(Builder& b, const Node& node) {
  const CellDef& cell = *cell_of(node);
  const auto time = static_cast<int64_t>(time_dim(node));
  const Term gates = operand_term(b, node, 0), weight = operand_term(b, node, 2),
             bias = operand_term(b, node, 4);
  const Dim length = gates.shape()[static_cast<size_t>(time)];
  if (!length.is_const() || length.value() > kMaxSteps) {
    b.fail({code::kUnsupported, node.loc,
            fmt::format("'{}' without a kernel of its own unrolls over up to {} steps, got {}",
                        cell.name, kMaxSteps, length.str())});
    return {};
  }
  std::vector<Term> states = {operand_term(b, node, 1)};
  if (cell.states == 2) states.push_back(operand_term(b, node, 3));
  const int64_t steps = length.value(), hidden = states[0].shape()[1].value();
  std::vector<Value> rows(static_cast<size_t>(steps));
  const auto as_row = [&](Term x) { return apply("unsqueeze", {x}, {{"dim", time}}); };
  const auto split = [&](Term all) {
    const auto parts =
        b.call_all("split_with_sizes", {all},
                   {{"split_sizes", std::vector<int64_t>(static_cast<size_t>(cell.gates), hidden)},
                    {"dim", int64_t{-1}}});
    std::vector<Term> terms;
    for (const Value part : parts) terms.emplace_back(b, part);
    terms.resize(static_cast<size_t>(cell.gates), Term{b, {}});
    return terms;
  };
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = node.bool_attr("reverse") ? steps - 1 - i : i;
    const auto x = split(apply("select", {gates}, {{"dim", time}, {"index", t}}));
    const Term of_h = matmul(states[0], weight);
    const auto h = split(bias ? of_h + bias : of_h);
    states = step_cell<Term>(cell.cell, x, h, states);
    rows[static_cast<size_t>(t)] = as_row(states[0]);
  }
  if (cell.states == 2) rows.push_back(as_row(states[1]));
  if (b.failed()) return {};
  return {cast({b, b.call("cat", rows, {{"dim", time}})}, node.types[0].dtype)};
}

std::vector<Example> recurrent_layer_examples() {
  const auto small = [](std::vector<int64_t> shape) {
    return ExampleTensor{.shape = std::move(shape), .low = -0.5, .high = 0.5};
  };
  const auto example = [&](const std::string& cell, std::vector<int64_t> times, int64_t batch,
                           int64_t hidden, bool has_bias) {
    const CellDef& def = *find_cell(cell);
    times.push_back(def.gates * hidden);
    Example made{.attrs = {{"cell", cell}}};
    made.operands = {small(std::move(times)),
                     small({batch, hidden}),
                     small({hidden, def.gates * hidden}),
                     {.is_none = true},
                     {.is_none = true}};
    if (def.states == 2) made.operands[3] = small({batch, hidden});
    if (has_bias) made.operands[4] = small({def.gates * hidden});
    return made;
  };
  std::vector<Example> examples = {
      example("lstm", {3, 2}, 2, 2, false),      example("gru", {3, 1}, 1, 5, true),
      example("lstm", {7, 2}, 7, 19, true),      example("rnn_tanh", {2, 13}, 13, 33, false),
      example("gru", {2, 1}, 1, 65, false),      example("rnn_relu", {4, 8}, 4, 16, true),
      example("lstm", {2, 13}, 13, 33, false),   example("lstm", {2, 1}, 1, 65, false),
      example("rnn_tanh", {5, 1}, 1, 130, true), example("gru", {3, 9}, 9, 20, true)};
  examples[1].attrs.push_back({"reverse", true});
  for (const size_t i : {2, 5}) examples[i].attrs.push_back({"batch_first", true});
  Example halves = example("lstm", {3, 2}, 2, 5, false);
  for (ExampleTensor& half : halves.operands)
    if (!half.is_none) half.dtype = DType::bf16;
  examples.push_back(std::move(halves));
  return examples;
}

}  // namespace

std::vector<OpDef> define_recurrent_layer() {
  return {{
      .name = "recurrent_layer",
      .summary = "one direction of one recurrent layer: h after each step, then an lstm's last c",
      .doc = "Of the input's part of the gates, the states before, and the weight and bias of h's "
             "part. `cell` is lstm, gru, rnn_tanh or rnn_relu. `reverse` goes from the last time "
             "to the first; the last c comes behind all times in either direction.",
      .operands = {{"gates"},
                   {"h"},
                   {"weight"},
                   {"c", OperandKind::optional_tensor},
                   {"bias", OperandKind::optional_tensor}},
      .attrs = {{.name = "cell", .kind = AttrKind::string},
                {.name = "reverse", .kind = AttrKind::boolean, .default_value = false},
                {.name = "batch_first", .kind = AttrKind::boolean, .default_value = false}},
      .traits = {.op_class = OpClass::contraction, .is_layout_agnostic = false},
      .infer = infer_recurrent_layer,
      .demands = recurrent_layer_demands,
      .reference = recurrent_layer_reference,
      .decompose = decompose_recurrent_layer,
      .lower = Absent{"lowered through its template"},
      .derivative = Absent{"decompose first; its parts have derivatives"},
      .imports = {},
      .examples = recurrent_layer_examples(),
  }};
}

}  // namespace lathe
