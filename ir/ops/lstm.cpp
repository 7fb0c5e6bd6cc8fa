// lstm: stacked, optionally bidirectional layers; decomposes into those.
#include <fmt/format.h>

#include <utility>

#include "ir/op/dense.h"
#include "ir/op/import_call.h"
#include "ir/op/lstm_steps.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Operands: input [T, B, in] ([B, T, in] when batch_first), hx = {h, c} of [layers * directions, B,
// hidden], and for each layer and direction its weights on the input and on h, and their biases.
struct Sizes {
  Dim steps, batch;
  int64_t hidden, layers, directions, per_cell;
};

Sizes sizes(const Node& node) {
  const Shape& input = node.operands[0].type().shape;
  const size_t time = node.bool_attr("batch_first") ? 1 : 0;
  return {input[time],
          input[1 - time],
          node.operands[1].type().shape[2].value(),
          node.int_attr("num_layers"),
          node.bool_attr("bidirectional") ? 2 : 1,
          node.bool_attr("has_biases") ? 4 : 2};
}

Result<std::vector<TensorType>> infer_lstm(const Node& node) {
  const TensorType& input = node.operands[0].type();
  const auto refuse = [&](std::string_view what) {
    return Diag{code::kShapeMismatch, node.loc, fmt::format("'lstm' {}", what)};
  };
  const auto check = [&](std::string_view what, size_t i, Value given,
                         const Shape& wanted) -> Status {
    const Shape& shape = given.type().shape;
    if (!differ(shape, wanted)) return Ok{};
    return refuse(fmt::format("needs {} {} of shape {}, got {}", what, i, to_string(wanted),
                              to_string(shape)));
  };
  if (input.rank() != 3) return refuse("needs an input with time and batch dims");
  if (input.shape[node.bool_attr("batch_first") ? 1 : 0] == Dim(0))
    return refuse("needs at least one step");
  if (node.list_sizes[0] != 2) return refuse("needs two initial states");
  for (Value state : node.operand_list(1)) {
    const bool is_state = state.type().rank() == 3 && state.type().shape[2].is_const();
    if (!is_state) return refuse("needs states of rank 3 and constant size");
  }
  const Sizes s = sizes(node);
  const int64_t per_layer = s.directions * s.per_cell, num_weights = node.list_sizes[1];
  if (s.layers < 1 || num_weights % per_layer != 0 || num_weights / per_layer != s.layers)
    return refuse("got another number of weights than its layers need (no projections)");
  Shape output = input.shape;
  output[2] = s.hidden * s.directions;
  const TensorType state{input.dtype, {s.layers * s.directions, s.batch, s.hidden}};
  for (size_t i = 0; i < 2; ++i)
    LATHE_DO(check("a state", i, node.operand_list(1)[i], state.shape));
  const std::span<const Value> weights = node.operand_list(2);
  for (size_t i = 0; i < weights.size(); ++i) {
    const size_t kind = i % static_cast<size_t>(s.per_cell);
    const Dim width = i < static_cast<size_t>(per_layer) ? input.shape[2] : output[2];
    const Shape expected = kind == 0   ? Shape{4 * s.hidden, width}
                           : kind == 1 ? Shape{4 * s.hidden, s.hidden}
                                       : Shape{4 * s.hidden};
    LATHE_DO(check("a weight", i, weights[i], expected));
  }
  return std::vector<TensorType>{{input.dtype, std::move(output)}, state, state};
}

Result<std::vector<Tensor>> lstm_reference(const Node& node,
                                           std::span<const Tensor* const> operands) {
  const Sizes s = sizes(node);
  const int64_t steps = s.steps.value(), batch = s.batch.value(), hidden = s.hidden;
  std::vector<Tensor> results;
  for (int i = 0; i < 3; ++i) results.push_back(result_tensor(node, i));
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
      const auto weight = [&](int64_t i) {
        return i < s.per_cell ? operands[static_cast<size_t>(3 + index * s.per_cell + i)] : nullptr;
      };
      const Tensor *of_x = weight(0), *of_h = weight(1), *b_x = weight(2), *b_h = weight(3);
      LstmSteps layer_steps{steps, batch, hidden, direction == 1};
      layer_steps.gate_of_x = [&](int64_t t, int64_t b, int64_t gate) {
        double sum = b_x != nullptr ? b_x->get(gate) + b_h->get(gate) : 0;
        for (int64_t k = 0; k < in; ++k)
          sum += of_x->get(gate * in + k) * x[static_cast<size_t>((t * batch + b) * in + k)];
        return sum;
      };
      layer_steps.weight = [&](int64_t k, int64_t gate) { return of_h->get(gate * hidden + k); };
      layer_steps.output = [&](int64_t t, int64_t b, int64_t j, double h) {
        out[static_cast<size_t>((t * batch + b) * width + direction * hidden + j)] = h;
      };
      const int64_t base = index * batch * hidden;
      std::vector<double> h, c;
      for (int64_t i = 0; i < batch * hidden; ++i) {
        h.push_back(operands[1]->get(base + i));
        c.push_back(operands[2]->get(base + i));
      }
      layer_steps.run(h, c);
      for (int64_t i = 0; i < batch * hidden; ++i) {
        put(results[1], base + i, h[static_cast<size_t>(i)]);
        put(results[2], base + i, c[static_cast<size_t>(i)]);
      }
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

// The input's part of all gates at once, and a lstm_layer for each direction of each layer.
std::vector<Value> decompose_lstm(Builder& b, const Node& node) {
  const Sizes s = sizes(node);
  const int64_t time = node.bool_attr("batch_first") ? 1 : 0;
  Term x = operand_term(b, node, 0);
  std::vector<Value> last_h, last_c;
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    std::vector<Value> outputs;
    for (int64_t direction = 0; direction < s.directions; ++direction) {
      const int64_t index = layer * s.directions + direction;
      const auto weight = [&](int64_t i) {
        return Term{b, node.operands[static_cast<size_t>(3 + index * s.per_cell + i)]};
      };
      // One node after the other: compilers differ in which operand they evaluate first.
      const Value bias = s.per_cell == 4 ? static_cast<Value>(weight(2) + weight(3)) : Value();
      const Term gates{b, b.call("linear", {x, weight(0), bias})};
      const Term h = at_index({b, node.operands[1]}, 0, index);
      const Term c = at_index({b, node.operands[2]}, 0, index);
      const Term by_h = transpose_last(weight(1));
      const Term all{b, b.call("lstm_layer", {gates, h, c, by_h},
                               {{"reverse", direction == 1}, {"batch_first", time == 1}})};
      outputs.push_back(
          apply("slice", {all}, {{"dim", time}, {"start", Dim(0)}, {"end", s.steps}}));
      const auto as_state = [&](const Dim& t) {
        return apply("unsqueeze", {at_index(all, time, t)}, {{"dim", int64_t{0}}});
      };
      last_h.push_back(as_state(direction == 1 ? Dim(0) : s.steps - Dim(1)));
      last_c.push_back(as_state(s.steps));
    }
    x = join(b, outputs, 2);
  }
  const Term h = join(b, last_h, 0);
  return {x, h, join(b, last_c, 0)};
}

Result<std::vector<Value>> import_lstm(Builder& b, const ImportCall& call) {
  if (call.bool_attr("train") && call.float_attr("dropout") != 0) {
    return Diag{code::kUnsupported, call.loc,
                "lstm with dropout is random; export the model after model.eval()"};
  }
  std::vector<Value> operands = {call.value("input")};
  const std::vector<Value> states = call.values("hx"), weights = call.values("params");
  operands.insert(operands.end(), states.begin(), states.end());
  operands.insert(operands.end(), weights.begin(), weights.end());
  LATHE_TRY(std::vector<Value> results,
            import_node(b, call, "lstm", std::move(operands),
                        {{"has_biases", call.bool_attr("has_biases")},
                         {"num_layers", call.int_attr("num_layers")},
                         {"bidirectional", call.bool_attr("bidirectional")},
                         {"batch_first", call.bool_attr("batch_first")}},
                        {static_cast<int>(states.size()), static_cast<int>(weights.size())}));
  // PyTorch 2.11 records the last states with a dim too many; nothing can have used them then.
  const bool is_misrecorded = call.expected.size() == 3 && call.expected[1].rank() == 4;
  if (is_misrecorded) results[1] = results[2] = Value{};
  return results;
}

AttrSpec flag(std::string name) {
  return {.name = std::move(name), .kind = AttrKind::boolean, .default_value = false};
}

std::vector<Example> lstm_examples() {
  const ExampleTensor one{.shape = {1, 2, 2}}, four{.shape = {4, 2, 2}};
  const auto small = [](std::vector<int64_t> shape) {
    return ExampleTensor{.shape = std::move(shape), .low = -0.5, .high = 0.5};
  };
  Example stacked{
      .operands = {{.shape = {2, 3, 3}}, four, four},
      .attrs = {{"num_layers", int64_t{2}}, {"bidirectional", true}, {"batch_first", true}},
      .list_sizes = {2, 8}};
  for (int64_t in : {3, 3, 4, 4}) {
    stacked.operands.push_back(small({8, in}));
    stacked.operands.push_back(small({8, 2}));
  }
  return {
      {.operands =
           {{.shape = {3, 2, 3}}, one, one, small({8, 3}), small({8, 2}), small({8}), small({8})},
       .attrs = {{"has_biases", true}},
       .list_sizes = {2, 4}},
      std::move(stacked)};
}

}  // namespace

std::vector<OpDef> define_lstm() {
  return {{
      .name = "lstm",
      .summary = "long short-term memory over time: the outputs, the last h and the last c",
      .doc = "Gates in PyTorch's order: input, forget, cell, output. Without projections.",
      .operands = {{"input"},
                   {"hx", OperandKind::tensor_list},
                   {"params", OperandKind::tensor_list}},
      .attrs = {flag("has_biases"),
                {.name = "num_layers", .kind = AttrKind::integer, .default_value = int64_t{1}},
                flag("bidirectional"),
                flag("batch_first")},
      .num_results = 3,
      .traits = {.op_class = OpClass::contraction, .is_layout_agnostic = false},
      .infer = infer_lstm,
      .reference = lstm_reference,
      .decompose = decompose_lstm,
      .lower = Absent{"decomposes into its layers"},
      .derivative = Absent{"decompose first; its parts have derivatives"},
      .imports = {{.schema = "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool "
                             "has_biases, int num_layers, float dropout, bool train, bool "
                             "bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
                   .build = import_lstm}},
      .examples = lstm_examples(),
  }};
}

}  // namespace lathe
