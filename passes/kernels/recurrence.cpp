// One direction of one recurrent layer, all its steps in one launch: gates, states and results as
// expressions for the recurrence template.
#include "ir/templates/recurrence.h"

#include <array>

#include "fmt/format.h"
#include "ir/op/recurrent.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"
#include "passes/lowering/operand.h"

namespace lathe {
namespace {

using loop::Expr;

// recurrent_layer's operands: gates [T, B, G*H] or [B, T, G*H], h [B, H], weight [H, G*H], perhaps
// c [B, H] and bias [G*H]; with a c, its result has one time more than the gates, for the last c.
class RecurrentLowering {
 public:
  RecurrentLowering(Lowering& lowering, Node& node, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(*root_of(node)),
        phase_(phase),
        kernel_(lowering, node, phase),
        cell_(*find_cell(std::get<std::string>(root_.attr("cell")))),
        time_(root_.bool_attr("batch_first") ? 1 : 0) {}

  Result<Verdict> run(BufferId out) {
    const TensorType& type = lowering_.buffer(out).type;
    const Shape strides = type.strides();
    spec_.dtype = compute_dtype(type.dtype);
    if (!is_float(spec_.dtype))
      return Verdict{fmt::format("its dtype is {}", dtype_name(spec_.dtype))};
    const Shape& shape = type.shape;
    spec_.hidden = shape[2].value();  // by its shape rule
    if (strides[2] != Dim(1) && spec_.hidden > 1)
      return Verdict{"its results do not lie side by side"};
    spec_.steps = shape[time_] - Dim(cell_.states - 1);
    spec_.rows = shape[1 - time_];
    spec_.gates = cell_.gates;
    spec_.is_reversed = root_.bool_attr("reverse");
    const RecurrenceLayout layout = recurrence_layout(spec_, lowering_.target());
    LATHE_TRY(const BufferId weights, pack(layout));
    const loop::BufferRef packed = kernel_.use(weights), buffer = kernel_.use(out, true);
    spec_.initial = [&](Expr row, Expr j) {
      std::vector<Expr> states = {state(1, row, j)};
      if (cell_.states == 2) states.push_back(state(3, row, j));
      return states;
    };
    spec_.cell = [&](Expr t, Expr row, Expr j, std::span<const Expr> sums,
                     std::span<const Expr> states) { return cell(t, row, j, sums, states); };
    const auto result = [&](Expr t, Expr row, Expr j, Expr value) {
      return ResultElement{buffer, kernel_.address(type, at(t, row, j)),
                           loop::cast(value, type.dtype)};
    };
    spec_.output = result;
    if (cell_.states == 2)
      spec_.last = [&](Expr row, Expr j, Expr value) {
        return result(kernel_.pool().size(spec_.steps), row, j, value);
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

  std::vector<Expr> cell(Expr t, Expr row, Expr j, std::span<const Expr> sums,
                         std::span<const Expr> states) {
    const Value bias = kernel_.resolve(root_.operands[4]);
    std::vector<Expr> x, h(sums.begin(), sums.end());
    for (size_t i = 0; i < sums.size(); ++i) {
      const auto number = static_cast<int64_t>(i);
      x.push_back(gate(t, row, number, j));
      const Expr column = j + kernel_.pool().integer(number * spec_.hidden);
      if (bias) h[i] = h[i] + in_dtype(kernel_.element_within(bias, std::array{column}));
    }
    return step_cell<Expr>(cell_.cell, x, h, states);
  }

  Result<BufferId> pack(const RecurrenceLayout& layout) {
    const Value weight = kernel_.resolve(root_.operands[2]);
    const Phase phase = lowering_.phase_of(weight, phase_);
    const int64_t size = layout.num_elements(spec_);
    const BufferId out =
        lowering_.add_temporary(node_, "_packed", {spec_.dtype, {Dim(size)}}, size, phase);
    KernelContext kernel(lowering_, phase, "pack");
    const loop::BufferRef packed = kernel.use(out, true);
    LoopNest nest = pack_recurrence_nest(
        kernel.kernel(), spec_, layout, packed, [&](Expr k, Expr gate, Expr j) {
          const Expr column = gate * kernel.pool().integer(spec_.hidden) + j;
          return in_dtype(kernel.element_within(weight, std::array{k, column}));
        });
    if (kernel.error()) return *kernel.error();
    LATHE_DO(lowering_.emit_kernel(schedule(std::move(nest), lowering_.target()), kernel.buffers(),
                                   {"pack", &node_, 0}, phase));
    return out;
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  KernelContext kernel_;
  const CellDef& cell_;
  size_t time_;
  RecurrenceSpec spec_;
};

Result<Verdict> emit_recurrence(Lowering& lowering, Node& node, std::span<const Destination> outs,
                                Phase phase) {
  return RecurrentLowering(lowering, node, phase).run(outs.front().buffer);
}

}  // namespace

KernelDef kernel_recurrence() {
  return {
      .name = "recurrence",
      .summary = "all steps of a recurrent layer, its states in the cache and its weights packed",
      .roots = {"recurrent_layer"},
      .members = Members::epilogue,
      .needs = Needs::registers,
      .takes_sizes = true,
      .emit = emit_recurrence,
      .example = R"(
func @main(%g: f32[7, 3, 60], %h: f32[3, 20], %w: f32[20, 60]) -> f32[7, 3, 20] {
  %0 = recurrent_layer(%g, %h, %w) {cell = "gru"}
  return %0
}
)",
  };
}

}  // namespace lathe
