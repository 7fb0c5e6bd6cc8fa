// One step of a recurrent layer: gates from the input and the state, and the next state.
#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

Term of_input(const Aten& aten) {
  return aten("linear", {aten.tensor("input"), aten.tensor("w_ih"), aten.tensor("b_ih")});
}

Term of_state(const Aten& aten, Term state) {
  return aten("linear", {state, aten.tensor("w_hh"), aten.tensor("b_hh")});
}

Built rnn_cell(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term sum = of_input(aten) + of_state(aten, aten.tensor("hx"));
  const bool is_tanh = call.schema->name == "rnn_tanh_cell";
  return std::vector<Value>{aten(is_tanh ? "tanh" : "relu", {sum})};
}

// Reset, update and new gates, in this order.
Built gru_cell(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term state = aten.tensor("hx");
  const auto input = aten.all("chunk", {of_input(aten), 3, -1});
  const auto own = aten.all("chunk", {of_state(aten, state), 3, -1});
  if (builder.failed() || input.size() != 3 || own.size() != 3) return std::vector<Value>{Value{}};
  const Term reset = sigmoid(input[0] + own[0]);
  const Term update = sigmoid(input[1] + own[1]);
  const Term fresh = tanh(input[2] + own[2] * reset);
  return std::vector<Value>{(state - fresh) * update + fresh};
}

// Input, forget, cell and output gates, in this order.
Built lstm_cell(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const std::vector<Term> states = aten.tensors("hx");
  if (states.size() != 2)
    return aten.refuse(code::kBadModel, "'aten.lstm_cell' takes a state and a cell");
  const auto gates = aten.all("chunk", {of_input(aten) + of_state(aten, states[0]), 4, -1});
  if (builder.failed() || gates.size() != 4) return std::vector<Value>{Value{}, Value{}};
  const Term cell = sigmoid(gates[1]) * states[1] + sigmoid(gates[0]) * tanh(gates[2]);
  return std::vector<Value>{sigmoid(gates[3]) * tanh(cell), cell};
}

constexpr char kWeights[] = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> ";

}  // namespace

std::vector<Import> import_recurrent_cell() {
  const std::string weights = kWeights;
  return {
      {.schema = "rnn_tanh_cell(Tensor input, Tensor hx, " + weights + "Tensor", .build = rnn_cell},
      {.schema = "rnn_relu_cell(Tensor input, Tensor hx, " + weights + "Tensor", .build = rnn_cell},
      {.schema = "gru_cell(Tensor input, Tensor hx, " + weights + "Tensor", .build = gru_cell},
      {.schema = "lstm_cell(Tensor input, Tensor[] hx, " + weights + "(Tensor, Tensor)",
       .build = lstm_cell},
  };
}

}  // namespace lathe
