// One direction of one recurrent layer, all its steps in one launch: gates, states and results as
// expressions for the recurrence template.
#include "ir/templates/recurrence.h"

#include <array>

#include "fmt/format.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"
#include "passes/lowering/operand.h"

namespace lathe {
namespace {

using loop::Expr;

// lstm_layer's operands: gates [T, B, 4H] or [B, T, 4H], h and c [B, H], weight [H, 4H]; its result
// has one time more than the gates, for the last c.
class LstmLowering {
 public:
  LstmLowering(Lowering& lowering, Node& node, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(*root_of(node)),
        phase_(phase),
        kernel_(lowering, node, phase),
        time_(root_.bool_attr("batch_first") ? 1 : 0) {}

  Result<Verdict> run(BufferId out) {
    const TensorType& type = lowering_.buffer(out).type;
    const std::vector<int64_t> strides = type.static_strides();
    spec_.dtype = compute_dtype(type.dtype);
    if (!is_float(spec_.dtype))
      return Verdict{fmt::format("its dtype is {}", dtype_name(spec_.dtype))};
    const std::vector<int64_t> shape = type.static_shape();
    spec_.hidden = shape[2];
    if (strides[2] != 1 && spec_.hidden > 1) return Verdict{"its results do not lie side by side"};
    spec_.steps = shape[time_] - 1;
    spec_.rows = shape[1 - time_];
    spec_.gates = 4;
    spec_.is_reversed = root_.bool_attr("reverse");
    const RecurrenceLayout layout = recurrence_layout(spec_, lowering_.target());
    LATHE_TRY(const BufferId weights, pack(layout));
    const loop::BufferRef packed = kernel_.use(weights), buffer = kernel_.use(out, true);
    spec_.initial = [&](Expr row, Expr j) {
      return std::vector<Expr>{state(1, row, j), state(2, row, j)};
    };
    spec_.cell = [&](Expr t, Expr row, Expr j, std::span<const Expr> sums,
                     std::span<const Expr> states) { return cell(t, row, j, sums, states[1]); };
    const auto result = [&](Expr t, Expr row, Expr j, Expr value) {
      return ResultElement{buffer, kernel_.address(type, at(t, row, j)),
                           loop::cast(value, type.dtype)};
    };
    spec_.output = result;
    spec_.last = [&](Expr row, Expr j, Expr value) {
      return result(kernel_.pool().integer(spec_.steps), row, j, value);
    };
    build_recurrence(kernel_.kernel(), spec_, layout, packed);
    if (kernel_.error()) return *kernel_.error();
    LATHE_DO(lowering_.emit_kernel(kernel_.kernel(), kernel_.buffers(), describe(node_), phase_));
    return Verdict{};
  }

 private:
  std::array<Expr, 3> at(Expr t, Expr row, Expr j) const {
    return time_ == 0 ? std::array{t, row, j} : std::array{row, t, j};
  }

  Expr in_dtype(Expr e) const { return loop::cast(e, spec_.dtype); }

  Expr state(int operand, Expr row, Expr j) {
    return in_dtype(
        kernel_.element_within(kernel_.resolve(root_.operands[operand]), std::array{row, j}));
  }

  Expr gate(Expr t, Expr row, int64_t number, Expr j) {
    const Expr column = j + kernel_.pool().integer(number * spec_.hidden);
    return in_dtype(kernel_.element_within(kernel_.resolve(root_.operands[0]), at(t, row, column)));
  }

  std::vector<Expr> cell(Expr t, Expr row, Expr j, std::span<const Expr> sums, Expr c) {
    std::array<Expr, 4> x;
    for (int64_t i = 0; i < 4; ++i)
      x[static_cast<size_t>(i)] = gate(t, row, i, j) + sums[static_cast<size_t>(i)];
    const auto sigmoid = [](Expr e) { return 1.0 / (loop::exp(-e) + 1.0); };
    const Expr next = sigmoid(x[1]) * c + sigmoid(x[0]) * loop::tanh(x[2]);
    return {sigmoid(x[3]) * loop::tanh(next), next};
  }

  Result<BufferId> pack(const RecurrenceLayout& layout) {
    const Value weight = kernel_.resolve(root_.operands[3]);
    const Phase phase = lowering_.is_constant(weight) ? Phase::init : phase_;
    const int64_t size = layout.num_elements(spec_);
    const BufferId out =
        lowering_.add_temporary(node_.name + "_packed", {spec_.dtype, {Dim(size)}}, size, phase);
    KernelContext kernel(lowering_, phase, "pack");
    const loop::BufferRef packed = kernel.use(out, true);
    LoopNest nest = pack_recurrence_nest(
        kernel.kernel(), spec_, layout, packed, [&](Expr k, Expr gate, Expr j) {
          const Expr column = gate * kernel.pool().integer(spec_.hidden) + j;
          return in_dtype(kernel.element_within(weight, std::array{k, column}));
        });
    if (kernel.error()) return *kernel.error();
    LATHE_DO(lowering_.emit_kernel(schedule(std::move(nest), lowering_.target()), kernel.buffers(),
                                   {"pack", node_.loc, 0}, phase));
    return out;
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  KernelContext kernel_;
  size_t time_;
  RecurrenceSpec spec_;
};

Result<Verdict> emit(Lowering& lowering, Node& node, std::span<const Destination> outs,
                     Phase phase) {
  return LstmLowering(lowering, node, phase).run(outs.front().buffer);
}

}  // namespace

KernelDef kernel_recurrence() {
  return {
      .name = "recurrence",
      .summary = "all steps of a recurrent layer, its states in the cache and its weights packed",
      .roots = {"lstm_layer"},
      .members = Members::epilogue,
      .needs = Needs::registers,
      .emit = emit,
      .example = R"(
func @main(%g: f32[7, 3, 80], %h: f32[3, 20], %c: f32[3, 20], %w: f32[20, 80]) -> f32[8, 3, 20] {
  %0 = lstm_layer(%g, %h, %c, %w)
  return %0
}
)",
  };
}

}  // namespace lathe
