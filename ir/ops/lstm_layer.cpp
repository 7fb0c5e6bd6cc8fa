// lstm_layer: one direction of one layer of an lstm; has a kernel of its own, or decomposes into
// its steps.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/lstm_steps.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr int64_t kMaxSteps = 1024;  // unrolled: graphs grow by each

size_t time_dim(const Node& node) { return node.bool_attr("batch_first") ? 1 : 0; }

Result<std::vector<TensorType>> infer_lstm_layer(const Node& node) {
  const auto refuse = [&](std::string_view what, const TensorType& got) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'lstm_layer' needs {}, got shape {}", what, to_string(got.shape))};
  };
  const TensorType &gates = node.operands[0].type(), &h = node.operands[1].type(),
                   &c = node.operands[2].type(), &weight = node.operands[3].type();
  if (gates.rank() != 3) return refuse("gates with a time, a batch and a gate dim", gates);
  const size_t time = time_dim(node);
  if (h.rank() != 2 || !h.shape[1].is_const())
    return refuse("an h of a batch and a hidden dim of constant size", h);
  const Dim hidden = h.shape[1];
  if (differ(h.shape, {gates.shape[1 - time], hidden})) return refuse("an h for each row", h);
  if (differ(c.shape, h.shape)) return refuse("a c like h", c);
  if (differ(gates.shape, {gates.shape[0], gates.shape[1], Dim(4) * hidden}))
    return refuse("four gates for each element of h", gates);
  if (differ(weight.shape, {hidden, Dim(4) * hidden}))
    return refuse("a weight from h to the gates", weight);
  Shape result = gates.shape;
  result[time] = gates.shape[time] + Dim(1);
  result[2] = hidden;
  return std::vector<TensorType>{{gates.dtype, std::move(result)}};
}

Result<std::vector<Tensor>> lstm_layer_reference(const Node& node,
                                                 std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const size_t time = time_dim(node);
  const std::vector<int64_t>& shape = result.shape;
  LstmSteps layer{shape[time] - 1, shape[1 - time], shape[2], node.bool_attr("reverse")};
  const auto row = [&](int64_t steps, int64_t t, int64_t b) {
    return time == 0 ? t * layer.batch + b : b * steps + t;
  };
  layer.gate_of_x = [&](int64_t t, int64_t b, int64_t gate) {
    return operands[0]->get(row(layer.steps, t, b) * 4 * layer.hidden + gate);
  };
  layer.weight = [&](int64_t k, int64_t gate) {
    return operands[3]->get(k * 4 * layer.hidden + gate);
  };
  layer.output = [&](int64_t t, int64_t b, int64_t j, double value) {
    put(result, row(layer.steps + 1, t, b) * layer.hidden + j, value);
  };
  std::vector<double> h, c;
  for (int64_t i = 0; i < layer.batch * layer.hidden; ++i) {
    h.push_back(operands[1]->get(i));
    c.push_back(operands[2]->get(i));
  }
  layer.run(h, c);
  for (int64_t i = 0; i < layer.batch * layer.hidden; ++i)
    layer.output(layer.steps, i / layer.hidden, i % layer.hidden, c[static_cast<size_t>(i)]);
  return std::vector<Tensor>{std::move(result)};
}

std::vector<Value> decompose_lstm_layer(Builder& b, const Node& node) {
  const auto time = static_cast<int64_t>(time_dim(node));
  const Term gates = operand_term(b, node, 0), weight = operand_term(b, node, 3);
  const Dim length = gates.shape()[static_cast<size_t>(time)];
  if (!length.is_const() || length.value() > kMaxSteps) {
    b.fail({code::kUnsupported, node.loc,
            fmt::format("an lstm without a kernel of its own unrolls over up to {} steps, got {}",
                        kMaxSteps, length.str())});
    return {};
  }
  Term h = operand_term(b, node, 1), c = operand_term(b, node, 2);
  const int64_t steps = length.value(), hidden = h.shape()[1].value();
  std::vector<Value> rows(static_cast<size_t>(steps));
  const auto as_row = [&](Term x) { return apply("unsqueeze", {x}, {{"dim", time}}); };
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = node.bool_attr("reverse") ? steps - 1 - i : i;
    const Term of_x = apply("select", {gates}, {{"dim", time}, {"index", t}});
    const Term of_h = matmul(h, weight);
    const auto parts =
        b.call_all("split_with_sizes", {of_x + of_h},
                   {{"split_sizes", std::vector<int64_t>(4, hidden)}, {"dim", int64_t{-1}}});
    if (parts.size() != 4) return {};
    // One node after the other: compilers differ in which operand they evaluate first.
    const Term input = sigmoid({b, parts[0]}), kept = sigmoid({b, parts[1]}) * c;
    const Term candidate = tanh({b, parts[2]}), output = sigmoid({b, parts[3]});
    c = kept + input * candidate;
    h = output * tanh(c);
    rows[static_cast<size_t>(t)] = as_row(h);
  }
  rows.push_back(as_row(c));
  return {cast({b, b.call("cat", rows, {{"dim", time}})}, node.types[0].dtype)};
}

std::vector<Example> lstm_layer_examples() {
  const auto small = [](std::vector<int64_t> shape) {
    return ExampleTensor{.shape = std::move(shape), .low = -0.5, .high = 0.5};
  };
  const auto sized = [&](std::vector<int64_t> gates, int64_t batch, int64_t hidden) {
    return std::vector<ExampleTensor>{small(std::move(gates)), small({batch, hidden}),
                                      small({batch, hidden}), small({hidden, 4 * hidden})};
  };
  std::vector<ExampleTensor> halves = sized({3, 2, 20}, 2, 5);
  for (ExampleTensor& half : halves) half.dtype = DType::bf16;
  return {
      {.operands = sized({3, 2, 8}, 2, 2)},
      {.operands = sized({3, 1, 20}, 1, 5), .attrs = {{"reverse", true}}},
      {.operands = sized({7, 2, 76}, 7, 19), .attrs = {{"batch_first", true}}},
      {.operands = sized({2, 13, 132}, 13, 33)},
      {.operands = sized({2, 1, 260}, 1, 65)},
      {.operands = std::move(halves)},
  };
}

}  // namespace

std::vector<OpDef> define_lstm_layer() {
  return {{
      .name = "lstm_layer",
      .summary = "one direction of one layer of an lstm: h after each step, then the last c",
      .doc = "Of the input's part of the gates (in PyTorch's order: input, forget, cell, output), "
             "the states before, and the weight of h. `reverse` goes from the last time to the "
             "first; the last c comes behind all times in either direction.",
      .operands = {{"gates"}, {"h"}, {"c"}, {"weight"}},
      .attrs = {{.name = "reverse", .kind = AttrKind::boolean, .default_value = false},
                {.name = "batch_first", .kind = AttrKind::boolean, .default_value = false}},
      .traits = {.op_class = OpClass::contraction, .is_layout_agnostic = false},
      .infer = infer_lstm_layer,
      .reference = lstm_layer_reference,
      .decompose = decompose_lstm_layer,
      .lower = Absent{"lowered through its template"},
      .derivative = Absent{"decompose first; its parts have derivatives"},
      .imports = {},
      .examples = lstm_layer_examples(),
  }};
}

}  // namespace lathe
