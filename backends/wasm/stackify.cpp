// From recorded values to stack code: FunctionBuilder::finish.
//
// A value that is used once stays on the stack: its instructions are written where its user needs
// them. That moves it down, so it must not leave its loop or branch, a load must not pass a store,
// and the reading of a variable must not pass its next change. All other values get a local, for as
// long as they live; a value that a loop reads lives until the loop's end. Values that nothing uses
// are dropped.
#include <algorithm>
#include <queue>

#include "backends/wasm/function_builder.h"

namespace lathe::wasm {

// Longest chain of values on the stack: bounds the recursion that writes them.
constexpr uint32_t kMaxNesting = 100;

class Stackifier {
 public:
  Stackifier(FunctionBuilder& builder, Function& out)
      : b_(builder), out_(out), order_(builder.scopes_.front()) {}

  void run() {
    find_regions();
    find_changes();
    place_values();
    assign_locals();
    for (position_ = 0; position_ < order_.size(); ++position_) {
      uint32_t id = order_[position_];
      if (is_root_[id]) write_root(id);
    }
  }

 private:
  using Item = FunctionBuilder::Item;
  using Kind = FunctionBuilder::Kind;
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Region {  // a loop or a branch; region 0 is the function
    uint32_t parent = 0;
    bool is_loop = false;
    uint32_t end = 0;  // position of its last instruction
  };
  struct Interval {
    uint32_t start, end;
    Type type;
    uint32_t* local;
  };

  const Item& item(uint32_t id) const { return b_.items_[id]; }
  bool reads_memory(const Item& i) const {
    Immediate immediate = info(i.instr.op).immediate;
    return i.kind == Kind::value &&
           (immediate == Immediate::memory || immediate == Immediate::memory_lane);
  }

  void find_regions() {
    regions_.push_back({0, false, static_cast<uint32_t>(order_.size())});
    region_of_.resize(order_.size());
    uint32_t current = 0;
    for (uint32_t at = 0; at < order_.size(); ++at) {
      const Item& i = item(order_[at]);
      bool is_marker = i.kind == Kind::marker;
      Op op = i.instr.op;
      if (is_marker && (op == Op::end || op == Op::else_)) {
        regions_[current].end = at;
        current = regions_[current].parent;
      }
      region_of_[at] = current;  // a branch's condition is evaluated outside of it
      if (is_marker && (op == Op::loop || op == Op::if_ || op == Op::else_)) {
        regions_.push_back({current, op == Op::loop, 0});
        current = static_cast<uint32_t>(regions_.size()) - 1;
        if (op == Op::loop) region_of_[at] = current;
      }
    }
  }

  void find_changes() {
    sets_.resize(b_.locals_.size());
    stores_before_.resize(order_.size() + 1);
    for (uint32_t at = 0; at < order_.size(); ++at) {
      const Item& i = item(order_[at]);
      if (i.kind == Kind::set) sets_[i.local].push_back(at);
      stores_before_[at + 1] = stores_before_[at] + (i.kind == Kind::effect ? 1 : 0);
    }
  }

  bool can_move(const Item& i, uint32_t from, uint32_t to) const {
    if (region_of_[from] != region_of_[to]) return false;
    if (reads_memory(i)) return stores_before_[from] == stores_before_[to];
    if (i.kind != Kind::get) return true;
    const std::vector<uint32_t>& sets = sets_[i.local];
    auto next = std::upper_bound(sets.begin(), sets.end(), from);
    return next == sets.end() || *next >= to;
  }

  // Users come after what they use, so walking back meets every value with its uses known.
  void place_values() {
    uses_.assign(b_.items_.size(), 0);
    user_.assign(b_.items_.size(), kNone);
    last_use_.assign(b_.items_.size(), 0);
    root_.assign(b_.items_.size(), kNone);
    nesting_.assign(b_.items_.size(), 0);
    is_root_.assign(b_.items_.size(), false);
    position_of_.assign(b_.items_.size(), 0);
    for (uint32_t at = 0; at < order_.size(); ++at) position_of_[order_[at]] = at;
    for (uint32_t at = static_cast<uint32_t>(order_.size()); at-- > 0;) {
      uint32_t id = order_[at];
      const Item& i = item(id);
      bool is_value = i.kind == Kind::value || i.kind == Kind::get;
      if (is_value && uses_[id] == 0) continue;
      root_[id] = at;
      uint32_t user = user_[id];
      if (is_value && uses_[id] == 1 && nesting_[user] < kMaxNesting &&
          can_move(i, at, root_[user])) {
        root_[id] = root_[user];
        nesting_[id] = nesting_[user] + 1;
      } else {
        is_root_[id] = true;
      }
      for (int a = 0; a < i.num_args; ++a) use(i.args[a].id, id);
    }
  }

  void use(uint32_t id, uint32_t user) {
    ++uses_[id];
    user_[id] = user;
    if (item(id).is_free) return;
    last_use_[id] =
        std::max(last_use_[id], last_position(root_[user], region_of_[position_of_[id]]));
  }

  // Until when something of the region `home` must be kept that is read at `position`.
  uint32_t last_position(uint32_t position, uint32_t home) const {
    uint32_t last = position;
    for (uint32_t r = region_of_[position]; r != home && r != 0; r = regions_[r].parent)
      if (regions_[r].is_loop) last = regions_[r].end;
    return last;
  }

  void assign_locals() {
    value_local_.assign(b_.items_.size(), kNone);
    variable_local_.assign(b_.locals_.size(), kNone);
    std::vector<uint32_t> last(b_.locals_.size(), 0), declared(b_.locals_.size(), 0);
    std::vector<Interval> intervals;
    for (uint32_t at = 0; at < order_.size(); ++at) {
      uint32_t id = order_[at];
      const Item& i = item(id);
      if (i.kind == Kind::declare) declared[i.local] = at;
      if ((i.kind == Kind::get && uses_[id] > 0) || i.kind == Kind::set)
        last[i.local] =
            std::max(last[i.local], last_position(root_[id], region_of_[declared[i.local]]));
      bool is_value = i.kind == Kind::value || i.kind == Kind::get;
      if (is_value && is_root_[id])
        intervals.push_back({at, last_use_[id], i.type, &value_local_[id]});
    }
    for (uint32_t l = 0; l < b_.locals_.size(); ++l)
      if (last[l] > 0)
        intervals.push_back({declared[l], last[l], b_.locals_[l], &variable_local_[l]});
    share_locals(intervals);
  }

  // In order of their start; a local is free again where the last use of its value stands.
  void share_locals(std::vector<Interval>& intervals) {
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.start < b.start; });
    struct Active {
      uint32_t end, local;
      bool operator>(const Active& o) const { return end > o.end; }
    };
    std::priority_queue<Active, std::vector<Active>, std::greater<>> active;
    std::vector<uint32_t> unused[6];
    std::vector<Type> types;  // of the locals behind the params
    auto first = static_cast<uint32_t>(b_.params_.size());
    for (const Interval& interval : intervals) {
      for (; !active.empty() && active.top().end <= interval.start; active.pop())
        unused[static_cast<size_t>(types[active.top().local])].push_back(active.top().local);
      std::vector<uint32_t>& pool = unused[static_cast<size_t>(interval.type)];
      uint32_t local;
      if (pool.empty()) {
        local = static_cast<uint32_t>(types.size());
        types.push_back(interval.type);
      } else {
        local = pool.back();
        pool.pop_back();
      }
      *interval.local = local;
      active.push({interval.end, local});
    }
    number_by_type(types, intervals, first);
  }

  // Locals of one type stand together: their declaration is then one entry.
  void number_by_type(const std::vector<Type>& types, const std::vector<Interval>& intervals,
                      uint32_t first) {
    std::vector<uint32_t> number(types.size());
    for (Type type : {Type::i32, Type::i64, Type::f32, Type::f64, Type::v128})
      for (size_t i = 0; i < types.size(); ++i)
        if (types[i] == type) {
          number[i] = first + static_cast<uint32_t>(out_.locals.size());
          out_.locals.push_back(type);
        }
    for (const Interval& interval : intervals) *interval.local = number[*interval.local];
  }

  // ---- writing ----------------------------------------------------------------------------------

  void push(Instr instr) {
    if (instr.op == Op::local_get && !out_.body.empty() && out_.body.back().op == Op::local_set &&
        out_.body.back().index == instr.index) {
      out_.body.back().op = Op::local_tee;
      return;
    }
    out_.body.push_back(instr);
  }

  void write_args(const Item& i) {
    for (int a = 0; a < i.num_args; ++a) write_value(i.args[a].id);
  }

  void write_value(uint32_t id) {
    const Item& i = item(id);
    if (!i.is_free && is_root_[id]) return push({Op::local_get, value_local_[id]});
    write_args(i);
    Instr instr = i.instr;
    if (i.kind == Kind::get) instr.index = variable_local_[i.local];
    push(instr);
  }

  void write_root(uint32_t id) {
    const Item& i = item(id);
    if (i.kind == Kind::declare) return;
    if (i.note != kNone)
      out_.notes.emplace_back(static_cast<uint32_t>(out_.body.size()),
                              std::move(b_.notes_[i.note]));
    write_args(i);
    Instr instr = i.instr;
    if (i.kind == Kind::set || i.kind == Kind::get) instr.index = variable_local_[i.local];
    push(instr);
    if (i.kind == Kind::value || i.kind == Kind::get) push({Op::local_set, value_local_[id]});
  }

  FunctionBuilder& b_;
  Function& out_;
  const std::vector<uint32_t>& order_;
  std::vector<Region> regions_;
  std::vector<uint32_t> region_of_;  // by position
  std::vector<std::vector<uint32_t>> sets_;
  std::vector<uint32_t> stores_before_;
  std::vector<uint32_t> uses_, user_, last_use_, root_, nesting_, position_of_;  // by item
  std::vector<bool> is_root_;
  std::vector<uint32_t> value_local_, variable_local_;
  size_t position_ = 0;
};

void FunctionBuilder::finish(Function& function) {
  function.params = params_;
  Stackifier(*this, function).run();
}

}  // namespace lathe::wasm
