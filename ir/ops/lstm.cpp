// lstm: stacked, optionally bidirectional layers; decomposes into its steps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/import_call.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr int64_t kMaxSteps = 4096;  // unrolled, of all layers and directions: graphs grow by each

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

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One direction of one layer over `x` ([T][B][in]); writes out[t][b][offset + j].
struct Cell {
  const Tensor *w_ih, *w_hh, *b_ih, *b_hh;  // biases may be null
  int64_t steps, batch, hidden;

  void step(const std::vector<double>& x, int64_t in, int64_t t, std::vector<double>& h,
            std::vector<double>& c) const {
    const std::vector<double> before = h;
    const auto gate = [&](int64_t row, int64_t b) {
      double sum = b_ih ? b_ih->get(row) + b_hh->get(row) : 0;
      for (int64_t k = 0; k < in; ++k) {
        sum += w_ih->get(row * in + k) * x[static_cast<size_t>((t * batch + b) * in + k)];
      }
      for (int64_t k = 0; k < hidden; ++k) {
        sum += w_hh->get(row * hidden + k) * before[static_cast<size_t>(b * hidden + k)];
      }
      return sum;
    };
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t j = 0; j < hidden; ++j) {
        const auto at = static_cast<size_t>(b * hidden + j);
        const double keep = sigmoid(gate(hidden + j, b)) * c[at];
        c[at] = keep + sigmoid(gate(j, b)) * std::tanh(gate(2 * hidden + j, b));
        h[at] = sigmoid(gate(3 * hidden + j, b)) * std::tanh(c[at]);
      }
    }
  }
};

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
      const Cell cell{weight(0), weight(1), weight(2), weight(3), steps, batch, hidden};
      const int64_t base = index * batch * hidden;
      std::vector<double> h, c;
      for (int64_t i = 0; i < batch * hidden; ++i) {
        h.push_back(operands[1]->get(base + i));
        c.push_back(operands[2]->get(base + i));
      }
      for (int64_t i = 0; i < steps; ++i) {
        const int64_t t = direction == 0 ? i : steps - 1 - i;
        cell.step(x, in, t, h, c);
        for (int64_t at = 0; at < batch * hidden; ++at) {
          const int64_t place = (t * batch + at / hidden) * width + direction * hidden;
          out[static_cast<size_t>(place + at % hidden)] = h[static_cast<size_t>(at)];
        }
      }
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

Term at_index(Term x, int64_t dim, int64_t index) {
  return apply("select", {x}, {{"dim", dim}, {"index", index}});
}

Term stack(Builder& b, const std::vector<Term>& parts, int64_t dim) {
  std::vector<Value> expanded;
  for (Term part : parts) expanded.push_back(apply("unsqueeze", {part}, {{"dim", dim}}));
  return {b, b.call("cat", std::move(expanded), {{"dim", dim}})};
}

std::vector<Value> decompose_lstm(Builder& b, const Node& node) {
  const Sizes s = sizes(node);
  const int64_t most_steps = kMaxSteps / std::max<int64_t>(s.layers * s.directions, 1);
  if (!s.steps.is_const() || s.steps.value() < 1 || s.steps.value() > most_steps) {
    b.fail({code::kUnsupported, node.loc,
            fmt::format("'lstm' of {} layers and directions unrolls over 1 to {} steps, got {}",
                        s.layers * s.directions, most_steps, s.steps.str())});
    return {};
  }
  const int64_t steps = s.steps.value(), time = node.bool_attr("batch_first") ? 1 : 0;
  Term x = operand_term(b, node, 0);
  std::vector<Term> last_h, last_c;
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    std::vector<Value> outputs;
    for (int64_t direction = 0; direction < s.directions; ++direction) {
      const int64_t index = layer * s.directions + direction;
      const auto weight = [&](int64_t i) {
        const bool exists = i < s.per_cell;
        return exists ? node.operands[static_cast<size_t>(3 + index * s.per_cell + i)] : Value{};
      };
      // The input's part of all gates at once; the state's part step by step.
      const Value gates_of_x = b.call("linear", {x, weight(0), weight(2)});
      Term h = at_index({b, node.operands[1]}, 0, index);
      Term c = at_index({b, node.operands[2]}, 0, index);
      std::vector<Term> hs(static_cast<size_t>(steps), h);
      for (int64_t i = 0; i < steps; ++i) {
        const int64_t t = direction == 0 ? i : steps - 1 - i;
        // One node after the other: compilers differ in which operand they evaluate first.
        const Term of_x = at_index({b, gates_of_x}, time, t);
        const Term of_state{b, b.call("linear", {h, weight(1), weight(3)})};
        const Term gates = of_x + of_state;
        const auto parts =
            b.call_all("split_with_sizes", {gates},
                       {{"split_sizes", std::vector<int64_t>(4, s.hidden)}, {"dim", int64_t{-1}}});
        if (parts.size() != 4) return {};
        const auto gate = [&](size_t part) { return Term{b, parts[part]}; };
        const Term kept = sigmoid(gate(1)) * c;
        const Term input = sigmoid(gate(0)), candidate = tanh(gate(2));
        c = kept + input * candidate;
        const Term output = sigmoid(gate(3));
        h = output * tanh(c);
        hs[static_cast<size_t>(t)] = h;
      }
      outputs.push_back(stack(b, hs, time));
      last_h.push_back(h);
      last_c.push_back(c);
    }
    x = {b, outputs.size() == 1 ? outputs[0] : b.call("cat", outputs, {{"dim", int64_t{2}}})};
  }
  return {x, stack(b, last_h, 0), stack(b, last_c, 0)};
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
      .lower = Absent{"decomposes into its steps"},
      .derivative = Absent{"decompose first; its parts have derivatives"},
      .imports = {{.schema = "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool "
                             "has_biases, int num_layers, float dropout, bool train, bool "
                             "bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
                   .build = import_lstm}},
      .examples = lstm_examples(),
  }};
}

}  // namespace lathe
