// Loads and stores.
#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/kernel_emitter.h"
#include "ir/loop/linear.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kMostAlignment = 64;
constexpr int kSumBinds = 13, kCompareBinds = 10;

int64_t lowest_bit(int64_t x) { return x == 0 ? kMostAlignment : std::min(kMostAlignment, x & -x); }

}  // namespace

// The largest power of two, up to a limit, that surely divides the index.
int64_t KernelEmitter::alignment(Expr index) const {
  const loop::Linear form = loop::linear(index);
  int64_t result = lowest_bit(form.constant);
  for (const auto& [atom, coefficient] : form.terms) {
    int64_t own = 1;
    if (auto* read = std::get_if<loop::VarRead>(&atom->kind)) {
      own = var_alignment_[read->var.id];
    } else if (auto* node = std::get_if<loop::Binary>(&atom->kind)) {
      bool keeps = node->op == BinaryOp::mod || node->op == BinaryOp::min ||
                   node->op == BinaryOp::max || node->op == BinaryOp::mul;
      if (node->op == BinaryOp::mul)
        own = alignment(node->a) * alignment(node->b);
      else if (keeps)
        own = std::min(alignment(node->a), alignment(node->b));
    }
    result = std::min(result, std::min(kMostAlignment, own * lowest_bit(coefficient)));
  }
  return result;
}

// Whether a thread's lanes lie side by side, at a place that an access of all of them may have.
bool KernelEmitter::is_packed(Expr index, int lanes) const {
  return is_blocked_ && shape_.lanes_a_thread > 1 && lanes > 1 && index->lanes == 1;
}

// &buffer[index] for scalars and packs; for other vectors the address of the lane at hand.
std::string KernelEmitter::element_address(loop::BufferRef buffer, Expr index) {
  return fmt::format("{} + {}", buffers_[buffer.id], code(index, kSumBinds));
}

// What says for all lanes of a thread at once that they are on: one condition for all, or a
// comparison of neighbouring numbers with a limit, both multiples of how many lanes a thread has.
std::optional<std::string> KernelEmitter::pack_condition(Expr mask) {
  if (auto* all = std::get_if<loop::Splat>(&mask->kind)) return code(all->x);
  auto* less = std::get_if<loop::Binary>(&mask->kind);
  if (!less || less->op != BinaryOp::lt) return std::nullopt;
  auto* ramp = std::get_if<loop::Ramp>(&less->a->kind);
  auto* limit = std::get_if<loop::Splat>(&less->b->kind);
  Expr bound = limit ? limit->x : less->b;
  if (!ramp || ramp->stride != 1 || (!limit && !loop::as_int(less->b))) return std::nullopt;
  if (alignment(ramp->base) < shape_.lanes_a_thread || alignment(bound) < shape_.lanes_a_thread)
    return std::nullopt;
  if (shape_.threads == 1)
    return fmt::format("{} < {}", code(ramp->base, kCompareBinds + 1),
                       code(bound, kCompareBinds + 1));
  if (loop::as_int(ramp->base) && loop::as_int(ramp->base)->value == 0)
    return fmt::format("first < {}", code(bound, kCompareBinds + 1));
  return fmt::format("{} + first < {}", code(ramp->base, kSumBinds),
                     code(bound, kCompareBinds + 1));
}

bool KernelEmitter::emit_pack(Expr e) {
  auto* load = std::get_if<loop::Load>(&e->kind);
  if (!load || !is_packed(load->index, e->lanes)) return false;
  std::string name = names_.make("x");
  std::string lane = shape_.threads > 1 ? " + first" : "";
  std::string address = element_address(load->buffer, load->index) + lane;
  if (load->mask) {
    std::optional<std::string> condition = pack_condition(load->mask);
    if (!condition) return false;
    line(fmt::format("const auto {} = load_if<{}>({}, {});", name, shape_.lanes_a_thread,
                     *condition, address));
  } else {
    line(fmt::format("const auto {} = load<{}>({});", name, shape_.lanes_a_thread, address));
  }
  texts_[e.node()] = {name + "[e]", Text::kPrimary, is_wide(e)};
  return true;
}

Text KernelEmitter::load_text(Expr e, const loop::Load& load) {
  std::string place = code(load.index, load.index->lanes > 1 || e->lanes == 1 ? 0 : kSumBinds);
  if (e->lanes > 1 && load.index->lanes == 1) {
    if (shape_.threads > 1) place += " + first";
    if (shape_.lanes_a_thread > 1)
      place += is_blocked_ ? " + e" : fmt::format(" + {} * e", shape_.threads);
  }
  Text result{fmt::format("{}[{}]", buffers_[load.buffer.id], place), Text::kPrimary,
              e->dtype == DType::i64};
  if (!load.mask) return result;
  // Both sides of the choice have the buffer's type.
  return {fmt::format("{} ? {} : {}(0)", code(load.mask, 4), result.code, type_name(e->dtype)), 3,
          result.is_wide};
}

bool KernelEmitter::is_synchronised(loop::BufferRef buffer) const {
  const loop::Buffer& info = kernel_.buffers[buffer.id];
  return shape_.threads > 1 && (info.space != loop::Space::global || is_read_[buffer.id]);
}

void KernelEmitter::sync() { line(fmt::format("group_sync<{}>();", shape_.threads)); }

// Of a scalar, whose uses are counted.
void KernelEmitter::emit_atomic(const loop::Store& store) {
  constexpr const char* kOps[] = {"Sum", "Prod", "Max", "Min"};
  std::string condition = shape_.threads > 1 ? "thread == 0" : "";
  if (store.mask)
    condition += (condition.empty() ? "" : " && ") + code(store.mask, condition.empty() ? 0 : 6);
  line(fmt::format(
      "{}combine_at<{}>({}, {}({}));", condition.empty() ? "" : "if (" + condition + ") ",
      kOps[static_cast<size_t>(*store.atomic)], element_address(store.buffer, store.index),
      type_name(kernel_.buffers[store.buffer.id].dtype), code(store.value)));
}

void KernelEmitter::emit_store(const loop::Store& store) {
  int lanes = std::max(store.value->lanes, store.index->lanes);
  if (store.mask) lanes = std::max(lanes, store.mask->lanes);
  std::vector<Expr> roots = {store.value, store.index};
  if (store.mask) roots.push_back(store.mask);
  count_uses(roots);
  define_scalars(roots);
  const std::string& buffer = buffers_[store.buffer.id];
  if (store.atomic) return emit_atomic(store);
  bool is_shared = is_synchronised(store.buffer);
  if (is_shared) sync();
  if (lanes == 1) {
    std::string condition = shape_.threads > 1 ? "thread == 0" : "";
    if (store.mask)
      condition += (condition.empty() ? "" : " && ") + code(store.mask, condition.empty() ? 0 : 6);
    line(fmt::format("{}{}[{}] = {};", condition.empty() ? "" : "if (" + condition + ") ", buffer,
                     code(store.index), code(store.value)));
  } else {
    std::optional<std::string> condition;
    if (store.mask) condition = pack_condition(store.mask);
    if (is_packed(store.index, lanes) && (!store.mask || condition)) {
      std::string pack = names_.make("y");
      line(fmt::format("Pack<{}, {}> {};", type_name(store.value->dtype), shape_.lanes_a_thread,
                       pack));
      for_each_lane({store.value},
                    [&] { line(fmt::format("{}[e] = {};", pack, code(store.value))); });
      line(fmt::format("{}store({}{}, {});", condition ? "if (" + *condition + ") " : "",
                       element_address(store.buffer, store.index),
                       shape_.threads > 1 ? " + first" : "", pack));
    } else {
      for_each_lane(roots, [&] {
        std::string place = code(store.index, store.index->lanes > 1 ? 0 : kSumBinds);
        if (store.index->lanes == 1) {
          if (shape_.threads > 1) place += " + first";
          if (shape_.lanes_a_thread > 1)
            place += is_blocked_ ? " + e" : fmt::format(" + {} * e", shape_.threads);
        }
        line(fmt::format("{}{}[{}] = {};", store.mask ? "if (" + code(store.mask) + ") " : "",
                         buffer, place, code(store.value)));
      });
    }
  }
  if (is_shared) sync();
}

}  // namespace lathe::cuda
