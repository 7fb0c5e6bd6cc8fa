// Loads of which a vector's places choose one: parts of a concatenation. A thread chooses an
// address, and loads once: as many branches as parts, each for every lane, take NVRTC seconds and
// the machine as many accesses as elements.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "backends/cuda/kernel_emitter.h"
#include "ir/loop/linear.h"
#include "ir/loop/rewrite.h"

namespace lathe::cuda {
namespace {

constexpr size_t kMostArms = 64;  // wider concatenations come in pieces
constexpr int kPlaceBinds = 13, kMaskBinds = 4;

// The difference, where it is a number.
std::optional<int64_t> distance(Expr a, Expr b) {
  const loop::Linear form = loop::linear(a - b);
  if (!form.terms.empty()) return std::nullopt;
  return form.constant;
}

const loop::IntConst* limit_of(Expr vector) {
  const auto* splat = std::get_if<loop::Splat>(&vector->kind);
  return loop::as_int(splat ? splat->x : vector);
}

}  // namespace

// The index without clamps that change nothing where `place.x` lies in its bounds.
Expr KernelEmitter::within(Expr index, const Place& place) {
  return loop::rewrite(index, [&](Expr e) {
    const auto* n = std::get_if<loop::Binary>(&e->kind);
    if (!n || e->dtype != DType::i64 || (n->op != BinaryOp::min && n->op != BinaryOp::max))
      return Expr();
    const loop::IntConst* bound = limit_of(n->b);
    const Expr inside = within(n->a, place);
    if (!bound) return Expr();
    const auto apart = distance(at_first_lane(inside), at_first_lane(place.x));
    if (!apart) return Expr();
    const bool is_idle = n->op == BinaryOp::min ? place.hi && *place.hi - 1 + *apart <= bound->value
                                                : place.lo && *place.lo + *apart >= bound->value;
    return is_idle ? inside : Expr();
  });
}

// What chooses among the loads; false when it is anything but a comparison of one number, which
// is the same in all lanes or grows from each to the next, with limits.
bool KernelEmitter::add_arms(Expr e, const Place& place, Choice& choice) {
  if (const auto* load = std::get_if<loop::Load>(&e->kind)) {
    if (choice.arms.size() == kMostArms) return false;
    if (!choice.arms.empty() && load->mask != choice.mask) return false;
    choice.mask = load->mask;
    const Expr index = place.x ? within(load->index, place) : load->index;
    choice.arms.push_back({load->buffer, index, place.hi});
    return true;
  }
  const auto* select = std::get_if<loop::Select>(&e->kind);
  if (!select) return false;
  const auto* splat = std::get_if<loop::Splat>(&select->condition->kind);
  const Expr condition = splat ? splat->x : select->condition;
  const auto* less = std::get_if<loop::Binary>(&condition->kind);
  if (!less || less->op != BinaryOp::lt || less->a->dtype != DType::i64) return false;
  const loop::IntConst* limit = limit_of(less->b);
  if (!limit || (less->a->lanes > 1 && step_of(less->a) != 1)) return false;
  if (place.x && distance(at_first_lane(less->a), at_first_lane(place.x)) != 0) return false;
  Place below{less->a, place.lo, limit->value}, above{less->a, limit->value, place.hi};
  if (place.hi && *place.hi < limit->value) below.hi = place.hi;
  if (place.lo && *place.lo > limit->value) above.lo = place.lo;
  choice.x = less->a;
  return add_arms(select->if_true, below, choice) && add_arms(select->if_false, above, choice);
}

// Whether every lane of a thread chooses alike, and finds its neighbours beside it.
bool KernelEmitter::pack_arms(Choice& choice) {
  const bool is_shared = choice.x->lanes == 1;
  if (!is_blocked_ || (!is_shared && !starts_pack(choice.x))) return false;
  std::vector<Arm> packed = choice.arms;
  for (Arm& arm : packed) {
    if (!is_shared && arm.end && *arm.end % shape_.lanes_a_thread != 0) return false;
    if (arm.index->lanes > 1)
      arm.index = packed_index(arm.index);
    else if (alignment(arm.index) < shape_.lanes_a_thread)
      return false;
    if (!arm.index) return false;
    arm.index = loop::simplify_index(arm.index, kernel_);
  }
  choice.arms = std::move(packed);
  return true;
}

std::string KernelEmitter::chosen_address(const Choice& choice, const std::string& x,
                                          const std::string& lane) {
  std::string text;
  for (size_t i = 0; i < choice.arms.size(); ++i) {
    const Arm& arm = choice.arms[i];
    const bool is_last = i + 1 == choice.arms.size();
    if (!is_last) text += fmt::format("{} < {} ? ", x, *arm.end);
    text += element_address(arm.buffer, arm.index) + (arm.index->lanes == 1 ? lane : "");
    if (!is_last) text += "\n" + std::string(static_cast<size_t>(2 * depth_ + 4), ' ') + ": ";
  }
  return text;
}

// All lanes of a thread at once; false where they choose apart.
bool KernelEmitter::emit_pack_choice(Expr e, Choice choice) {
  if (!pack_arms(choice)) return false;
  std::optional<std::string> condition;
  if (choice.mask && !(condition = pack_condition(choice.mask))) return false;
  const std::string from = names_.make("from"), name = names_.make("x");
  const std::string lane = shape_.threads > 1 ? " + first" : "";
  const Expr x = loop::simplify_index(at_first_lane(choice.x), kernel_);
  line(fmt::format("const {}* const {} = {};", type_name(e->dtype), from,
                   chosen_address(choice, code(x, kPlaceBinds), lane)));
  line(condition ? fmt::format("const auto {} = load_if<{}>({}, {});", name, shape_.lanes_a_thread,
                               *condition, from)
                 : fmt::format("const auto {} = load<{}>({});", name, shape_.lanes_a_thread, from));
  texts_[e.node()] = {name + "[e]", Text::kPrimary, is_wide(e)};
  return true;
}

// The lane at hand. Its places must be numbers that are simple to find: they are written in full.
bool KernelEmitter::emit_lane_choice(Expr e, const Choice& choice) {
  for (const Arm& arm : choice.arms)
    if (!step_of(arm.index)) return false;
  std::string lane = shape_.threads > 1 ? " + first" : "";
  if (shape_.lanes_a_thread > 1)
    lane += is_blocked_ ? " + e" : fmt::format(" + {} * e", shape_.threads);
  const std::string from = names_.make("from"), name = names_.make("x");
  line(fmt::format("const {}* const {} = {};", type_name(e->dtype), from,
                   chosen_address(choice, code(choice.x, kPlaceBinds), lane)));
  if (choice.mask)
    line(fmt::format("const {0} {1} = {2} ? *{3} : {0}(0);", type_name(e->dtype), name,
                     code(choice.mask, kMaskBinds), from));
  else
    line(fmt::format("const {} {} = *{};", type_name(e->dtype), name, from));
  texts_[e.node()] = {name, Text::kPrimary, e->dtype == DType::i64};
  return true;
}

// Whether each arm but the last ends behind the one before: then one comparison chooses it.
bool KernelEmitter::ends_rise(const Choice& choice) {
  for (size_t i = 0; i + 1 < choice.arms.size(); ++i) {
    if (!choice.arms[i].end) return false;
    if (i > 0 && *choice.arms[i].end <= *choice.arms[i - 1].end) return false;
  }
  return choice.arms.size() > 1;
}

// Outer choices before those that they consist of.
void KernelEmitter::emit_choices(const std::vector<Expr>& roots, bool at_once,
                                 std::vector<const loop::ExprNode*>& made) {
  std::unordered_set<const loop::ExprNode*> inside;
  const std::vector<Expr> order = undefined_under(roots);
  for (size_t i = order.size(); i-- > 0;) {
    const Expr e = order[i];
    const auto* select = std::get_if<loop::Select>(&e->kind);
    if (!select || e->lanes == 1) continue;
    bool is_made = inside.count(e.node()) != 0;
    Choice choice;
    if (!is_made && add_arms(e, {}, choice) && ends_rise(choice)) {
      is_made = at_once ? emit_pack_choice(e, choice) : emit_lane_choice(e, choice);
      if (is_made) made.push_back(e.node());
    }
    if (!is_made) continue;
    inside.insert(select->if_true.node());
    inside.insert(select->if_false.node());
  }
}

}  // namespace lathe::cuda
