#include "judge/exchange.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "judge/memory_plan.hpp"
#include "util/random.hpp"

namespace cuda_agent::judge {
namespace {

// Numbers of the arenas in a worker.
constexpr int inputs_arena = 1;
constexpr int outputs_arena = 2;
constexpr int drawing_arena = 3;
constexpr int handed_arena = 4;

constexpr std::uint64_t page = 4096;
/// Above this, room for results is what they need now, not what they would need unexpanded.
constexpr std::uint64_t generous_room = std::uint64_t{1} << 30;

std::uint64_t whole_pages(std::uint64_t bytes) { return (std::max<std::uint64_t>(bytes, 1) + page - 1) / page * page; }

/// Times the RMS; 0: none.
double outlier_of(InputKind kind) {
  switch (kind) {
    case InputKind::large:
      return 0x1p7;
    case InputKind::huge:
      return 0x1p18;
    case InputKind::drawn:
    case InputKind::signs:
      break;
  }
  return 0;
}

Error broken(std::string_view what) {
  return {Outcome::internal_error, fmt::format("the reference worker's answer is malformed: {}", what)};
}

}  // namespace

std::string_view to_string(Arm arm) {
  switch (arm) {
    case Arm::eager:
      return "eager";
    case Arm::compiled:
      return "compiled";
    case Arm::candidate:
      return "candidate";
    case Arm::exact:
      return "exact";
  }
  return "";
}

Result<EncodedValues> encoded_values(const nlohmann::json& reply) {
  try {
    EncodedValues values;
    values.trees = reply.at("trees");
    values.storages = reply.at("storages");
    values.bytes = reply.at("bytes").get<std::uint64_t>();
    return values;
  } catch (const nlohmann::json::exception& error) {
    return fail(broken(error.what()));
  }
}

Result<void> Loan::lend(int id, std::unique_ptr<device::Arena> arena, util::Deadline deadline) {
  nlohmann::json const message = {{"op", "map"}, {"arena", id}, {"bytes", arena->size()}};
  auto done = m_worker.request(message, {arena->descriptor()}, deadline, "mapping memory");
  if (!done) return fail(done.error());
  m_arenas[id] = std::move(arena);
  return {};
}

Result<void> Loan::lend_control(device::Backend& backend, util::Deadline deadline) {
  if (m_control != nullptr) return {};
  auto control = backend.make_control();
  if (!control) return fail(control.error());
  if (*control == nullptr) return {};
  auto done = m_worker.request({{"op", "control"}}, {(*control)->descriptor()}, deadline, "preparing timed calls");
  if (!done) return fail(done.error());
  m_control = std::move(*control);
  return {};
}

Result<void> Loan::take_back(int id, util::Deadline deadline) {
  if (!m_arenas.contains(id)) return {};
  auto done = m_worker.request({{"op", "unmap"}, {"arena", id}}, {}, deadline, "unmapping memory");
  if (!done) return fail(done.error());
  m_arenas.erase(id);
  return {};
}

device::Arena* Loan::arena(int id) const {
  auto const found = m_arenas.find(id);
  return found == m_arenas.end() ? nullptr : found->second.get();
}

Exchange::Exchange(device::Backend& backend, Worker& reference, util::Deadline limit)
    : m_backend(backend), m_limit(limit), m_reference{Loan(reference), {}, {}, {}, {}} {}

void Exchange::admit(Worker& candidate) { m_candidate.emplace(Side{Loan(candidate), {}, {}, {}, {}}); }

Result<void> Exchange::prepare_candidate() { return m_candidate->loan.lend_control(m_backend, m_limit); }

void Exchange::set_mode(device::CallMode mode) {
  m_mode = mode;
  m_mode_of.clear();
}

device::CallMode Exchange::mode(Arm arm) const {
  auto const own = m_mode_of.find(arm);
  return own == m_mode_of.end() ? m_mode : own->second;
}

Result<void> Exchange::use_stream(int number, bool settle) {
  auto done = m_reference.loan.worker().request({{"op", "stream"}, {"number", number}, {"settle", settle}}, {}, m_limit,
                                                "changing streams");
  if (!done) return fail(done.error());
  m_reference.calls.clear();
  return {};
}

bool Exchange::release_reference() {
  auto const limit = util::Deadline::after(std::chrono::seconds(5)).earlier(m_limit);
  for (int const arena : {inputs_arena, outputs_arena, drawing_arena, handed_arena}) {
    if (!m_reference.loan.take_back(arena, limit)) return false;
  }
  return true;
}

double Exchange::enqueued(Arm arm) const {
  auto const& calls = side(arm).calls;
  auto const of = [&calls](std::string_view name) {
    auto const found = calls.find(fmt::format("{} 0 false true", name));
    return found == calls.end() ? 0.0 : found->second.enqueued;
  };
  return std::max(of(to_string(arm)) - of("null"), 0.0);
}

Result<void> Exchange::make_slots_for(Side& side, std::uint64_t bytes, int calls) {
  std::uint64_t const stride = bytes + m_backend.second_place(bytes);
  auto arena = m_backend.allocate(stride * static_cast<std::uint64_t>(calls));
  if (!arena) return fail(arena.error());
  side.places.assign(2 * static_cast<std::size_t>(calls), {});
  return side.loan.lend(inputs_arena, std::move(*arena), m_limit);
}

Result<void> Exchange::make_slots(std::uint64_t bytes, int calls) {
  bytes = std::max(bytes, m_slot_bytes);
  calls = std::max(calls, m_slots);
  m_ahead.reset();  // it lies in memory that goes
  drop_kept();
  std::uint64_t const total = bytes * static_cast<std::uint64_t>(calls);
  auto drawing = m_backend.allocate(total);
  if (!drawing) return fail(drawing.error());
  if (auto lent = m_reference.loan.lend(drawing_arena, std::move(*drawing), m_limit); !lent) return lent;
  auto inputs = m_backend.allocate_private(total);
  if (!inputs) return fail(inputs.error());
  m_private_inputs = std::move(*inputs);
  if (auto made = make_slots_for(m_reference, bytes, calls); !made) return made;
  m_slot_bytes = bytes;
  m_slots = calls;
  if (m_candidate) return make_slots_for(*m_candidate, bytes, calls);
  return {};
}

nlohmann::json Exchange::draw_request(std::uint64_t seed, std::size_t k, InputKind kind) const {
  nlohmann::json message = {{"op", "draw"},
                            {"seed", util::derived_seed("inputs", seed + k)},
                            {"other", kind != InputKind::drawn},
                            {"outlier", outlier_of(kind)},
                            {"arena", nullptr}};
  if (m_slot_bytes == 0 || k >= static_cast<std::size_t>(m_slots)) return message;
  message["arena"] = drawing_arena;
  message["at"] = k * m_slot_bytes;
  message["room"] = m_slot_bytes;
  return message;
}

constexpr const char* drawing = "drawing inputs with get_inputs()";

void Exchange::begin_ahead(std::uint64_t seed, int calls) {
  m_ahead.reset();
  seed = m_only_seed.value_or(seed);
  if (m_slot_bytes == 0 || m_slots < calls) return;
  if (m_reference.loan.worker().post(draw_request(seed, 0, InputKind::drawn), {}, m_limit, drawing)) {
    m_ahead = Ahead{seed, calls};
  }
}

/// What goes wrong is said by the draw that was to use it.
void Exchange::end_ahead() {
  if (!m_ahead || m_ahead->reply) return;
  m_ahead->reply = m_reference.loan.worker().collect(m_limit, drawing);
}

Result<nlohmann::json> Exchange::drawn_reply(std::uint64_t seed, std::size_t k, int calls, InputKind kind) {
  if (k == 0 && m_ahead && m_ahead->reply) {
    Ahead const ahead = std::move(*m_ahead);
    m_ahead.reset();
    // A worker that has not answered is gone or no longer in step: every later request would say less of it.
    if (!*ahead.reply) return *ahead.reply;
    if (ahead.seed == seed && ahead.calls == calls && kind == InputKind::drawn) return *ahead.reply;
  }
  return m_reference.loan.worker().request(draw_request(seed, k, kind), {}, m_limit, drawing);
}

Result<void> Exchange::draw(std::uint64_t seed, int calls, InputKind kind) {
  seed = m_only_seed.value_or(seed);
  m_call_seed = seed;
  if (calls != m_calls) {  // other slots, which no call has warmed up
    m_reference.calls.clear();
    if (m_candidate) m_candidate->calls.clear();
  }
  m_calls = calls;
  m_place = 1 - m_place;
  std::vector<EncodedValues> drawn;
  while (static_cast<int>(drawn.size()) < calls) {
    bool const ready = m_slots >= calls && m_slot_bytes > 0;
    auto const reply = drawn_reply(seed, drawn.size(), calls, kind);
    if (!reply) return fail(reply.error());
    auto values = encoded_values(*reply);
    if (!values) return fail(values.error());
    if (!reply->value("stored", false)) {
      // The first draw, or one larger than all before: slots that fit, and everything drawn again under its seed.
      std::uint64_t const larger = ready ? values->bytes + values->bytes / 4 : values->bytes;
      if (auto made = make_slots(whole_pages(larger), calls); !made) return made;
      drawn.clear();
      continue;
    }
    drawn.push_back(std::move(*values));
  }
  m_drawn = std::move(drawn);
  std::uint64_t const total = m_slot_bytes * static_cast<std::uint64_t>(calls);
  auto copied = m_backend.copy({{m_reference.loan.arena(drawing_arena), 0, total}, {m_private_inputs.get(), 0, total}});
  if (!copied) return copied;
  if (auto bound = bind(m_reference); !bound) return bound;
  return m_candidate ? bind(*m_candidate) : Result<void>();
}

void Exchange::drop_kept() {
  m_kept.clear();
  m_null_kept.reset();
  ++m_generation;
}

Result<void> Exchange::bind(Side& side) {
  if (side.loan.arena(inputs_arena) == nullptr || static_cast<int>(side.places.size()) < 2 * m_slots) {
    if (auto made = make_slots_for(side, m_slot_bytes, m_slots); !made) return made;
  }
  for (int k = 0; k < static_cast<int>(m_drawn.size()); ++k) {
    EncodedValues const& values = inputs(k);
    for (int which : {0, 1}) {
      nlohmann::json const message = {{"op", "bind"},          {"slot", number_of(k, which)},
                                      {"arena", inputs_arena}, {"at", place_at(k, which)},
                                      {"trees", values.trees}, {"storages", values.storages}};
      std::string text = message.dump();
      Place& place = side.place(k, which);
      if (place.bound == text) continue;
      auto done = side.loan.worker().request(message, {}, m_limit, "receiving inputs");
      if (!done) return fail(done.error());
      place = {std::move(text), false};
    }
  }
  return {};
}

Result<void> Exchange::make_room_for(Side& side) {
  std::uint64_t const total = m_room * static_cast<std::uint64_t>(m_slots);
  device::Arena* const old = side.loan.arena(outputs_arena);
  if (old != nullptr && old->size() >= total) return {};
  auto arena = m_backend.allocate(total);
  if (!arena) return fail(arena.error());
  return side.loan.lend(outputs_arena, std::move(*arena), m_limit);
}

void Exchange::make_room(std::uint64_t bytes) {
  m_room = std::max(m_room, whole_pages(bytes));
  drop_kept();
}

std::uint64_t Exchange::place_at(int k, int which) const {
  std::uint64_t const apart = m_backend.second_place(m_slot_bytes);
  return static_cast<std::uint64_t>(k) * (m_slot_bytes + apart) + static_cast<std::uint64_t>(which) * apart;
}

bool Exchange::can_warm(const Side& side) const {
  for (int k = 0; k < m_calls; ++k) {
    if (!side.place(k, side.used).filled) return false;
  }
  return true;
}

void Exchange::note_filled(Side& side) const {
  bool const overlap = m_backend.second_place(m_slot_bytes) < m_slot_bytes;
  for (int k = 0; k < m_calls; ++k) {
    side.place(k, side.used).filled = true;
    if (overlap) side.place(k, 1 - side.used).filled = false;
  }
}

/// Nobody else of ours takes or gives memory while the candidate runs.
Result<void> Exchange::within_memory(Side& candidate, std::uint64_t free_before, std::string_view during) {
  std::uint64_t const free_after = m_backend.free_memory().value_or(0);
  m_memory_limit->held += static_cast<std::int64_t>(free_before - free_after);
  if (m_memory_limit->held <= static_cast<std::int64_t>(m_memory_limit->most)) return {};
  candidate.loan.worker().end();
  std::uint64_t const freed = m_backend.free_memory().value_or(0) - free_after;
  if (static_cast<std::int64_t>(freed) <= static_cast<std::int64_t>(m_memory_limit->most)) {
    return fail(Outcome::environment_error, fmt::format("another program took GPU memory while {}", during),
                {"see who uses this GPU: nvidia-smi"});
  }
  return fail(Outcome::crash,
              fmt::format("ModelNew held {} of GPU memory after {}; --gpu-memory allows {}", in_words(freed), during,
                          in_words(m_memory_limit->most)),
              {"keep less between calls, or allow more: --gpu-memory SIZE"});
}

Result<device::CallResult> Exchange::timed(Side& side, const std::string& arm, bool warm, device::Arena* kept,
                                           device::CallMode& mode, bool& counts, util::Deadline deadline,
                                           std::string_view during, NullKind kind) {
  if (auto lent = side.loan.lend_control(m_backend, m_limit); !lent) return fail(lent.error());
  History& history = side.calls[fmt::format("{} {} {} {}", arm, kind.launches, kind.written, kind.stored)];
  bool const of_a_model = arm != "null";
  int const warm_ups = of_a_model ? model_warm_ups() : m_backend.open_calls();
  bool const warmed = history.open >= warm_ups;
  if (!warmed) mode = device::CallMode::open;
  nlohmann::json slots = nlohmann::json::array();
  device::TimedCall call{.request = {},
                         .inputs = {},
                         .output = {},
                         .kept = {},
                         .poison = util::random_u64(),
                         .mode = mode,
                         .control = side.loan.control(),
                         .arming_seconds = 0.05 + 5e-6 * history.enqueued,
                         .deadline = deadline};
  // An empty call does without inputs: the candidate's worker would have a round's before its own call, and could
  // compute them in the calls that are not timed. From end to end they are part of what it costs, and such empty calls
  // are made before the worker hears of a candidate.
  bool const with_inputs = of_a_model || mode == device::CallMode::end_to_end;
  if (with_inputs) side.used = !warmed && history.open % 2 == 1 ? 1 - m_place : m_place;
  for (int k = 0; k < m_calls; ++k) {
    slots.push_back(number_of(k, side.used));
    if (!with_inputs) continue;
    device::Span const source = drawn(k);
    call.inputs.push_back({source, {side.loan.arena(inputs_arena), place_at(k, side.used), source.bytes}});
  }
  std::uint64_t const total = kind.stored ? m_room * static_cast<std::uint64_t>(m_calls) : 0;
  call.output = {side.loan.arena(outputs_arena), 0, total};
  call.kept = {kept, 0, total};
  call.request = nlohmann::json{{"op", "call"},
                                {"arm", arm},
                                {"slots", slots},
                                {"arena", outputs_arena},
                                {"at", 0},
                                {"room", m_room},
                                {"rng", util::derived_seed("call", m_call_seed)},
                                {"launches", kind.launches},
                                {"written", kind.written},
                                {"stored", kind.stored},
                                {"warm", warm && warm_ups == 0 && can_warm(side)}}
                     .dump();
  bool const limited = m_memory_limit && m_candidate && &side == &*m_candidate;
  std::uint64_t const free_before = limited ? m_backend.free_memory().value_or(0) : 0;
  side.loan.worker().resume();
  auto result = m_backend.call(side.loan.worker(), call);
  side.loan.worker().stop();
  if (with_inputs) note_filled(side);
  if (!result) return fail(side.loan.worker().explained(result.error(), during));
  if (limited) {
    if (auto within = within_memory(side, free_before, during); !within) return fail(within.error());
  }
  if (!warmed) {
    history.enqueued = history.open == 0 ? result->enqueued : std::min(history.enqueued, result->enqueued);
    ++history.open;
  } else {
    ++history.timed;
  }
  // The first call behind a closed gate blocks as a rule: it is made once, and is allowed to.
  counts = warmed && result->armed && (warm_ups == 0 || history.timed > 1);
  if (warmed && warm_ups > 0 && history.timed == 1) result->armed = true;
  return result;
}

Result<ArmCall> Exchange::call(Arm arm, util::Deadline deadline, std::string_view during, bool warm) {
  Side& here = side(arm);
  Worker& worker = here.loan.worker();
  for (;;) {
    if (auto room = make_room_for(here); !room) return fail(room.error());
    auto& kept = m_kept[arm];
    if (kept == nullptr) {
      auto arena = m_backend.allocate_private(m_room * static_cast<std::uint64_t>(m_slots));
      if (!arena) return fail(arena.error());
      kept = std::move(*arena);
    }
    ArmCall made;
    made.mode = mode(arm);
    auto result = timed(here, std::string(to_string(arm)), warm, kept.get(), made.mode, made.counts, deadline, during);
    if (!result) return fail(result.error());
    auto reply = worker.checked_reply(result->reply, during);
    if (!reply) return fail(reply.error());

    made.microseconds = result->microseconds;
    made.tail = result->tail;
    made.armed = result->armed;
    made.refused = result->refused;
    bool fits = false;
    std::uint64_t needed = 0;
    try {
      auto const& said = reply->at("result");
      fits = said.at("fits").get<bool>();
      needed = said.at("needed").get<std::uint64_t>();
      for (auto const& described : said.at("outputs")) {
        if (!described.is_null()) {
          auto node = parse_output(described);
          if (!node) throw std::runtime_error(node.error().message);
          made.outputs.push_back(std::move(*node));
        }
      }
    } catch (const std::exception& error) {
      return fail(arm == Arm::candidate ? Error(Outcome::crash, fmt::format("the candidate's worker broke the protocol "
                                                                            "while {}: {}",
                                                                            during, error.what()))
                                        : broken(error.what()));
    }
    bool const all = static_cast<int>(made.outputs.size()) == m_calls;
    if (fits && all) return made;
    if (fits) return fail(Outcome::crash, fmt::format("fewer results than calls while {}", during));
    // A candidate's result that needs more room than the reference's could ever need has other shapes: the comparison
    // of those says so, and no memory is spent on it.
    if (arm == Arm::candidate) {
      made.outputs.resize(static_cast<std::size_t>(m_calls));
      return made;
    }
    std::uint64_t const full = made.outputs.empty() ? needed : bytes_in_full(made.outputs.back()).value_or(needed);
    std::uint64_t const wanted = std::max(needed, std::min(full, generous_room));
    make_room(m_room == 0 ? wanted : std::max(wanted, m_room + m_room / 4));
  }
}

Result<NullCall> Exchange::call_null(Arm arm, const OutputNode& like, util::Deadline deadline, NullKind kind) {
  Side& here = side(arm);
  if (auto room = make_room_for(here); !room) return fail(room.error());
  nlohmann::json tensors = nlohmann::json::array();
  for (OutputLeaf const& leaf : tensors_of(like)) {
    std::string dtype(device::to_string(leaf.node->tensor->dtype));
    tensors.push_back({{"dtype", dtype}, {"shape", leaf.node->tensor->shape}});
  }
  if (std::string text = tensors.dump(); here.null_like != text) {
    auto done = here.loan.worker().request({{"op", "null"}, {"tensors", tensors}}, {}, deadline, "preparing null");
    if (!done) return fail(done.error());
    here.null_like = std::move(text);
  }
  std::uint64_t const total = m_room * static_cast<std::uint64_t>(m_slots);
  if (m_null_kept == nullptr || m_null_kept->size() < total) {
    auto arena = m_backend.allocate_private(total);
    if (!arena) return fail(arena.error());
    m_null_kept = std::move(*arena);
  }
  NullCall made;
  device::CallMode how = m_mode;
  auto result = timed(here, "null", true, m_null_kept.get(), how, made.counts, deadline, "timing an empty call", kind);
  if (!result) return fail(result.error());
  auto reply = here.loan.worker().checked_reply(result->reply, "timing an empty call");
  if (!reply) return fail(reply.error());
  made.microseconds = result->microseconds;
  made.tail = result->tail;
  return made;
}

device::Span Exchange::kept(Arm arm, int k) const {
  return {m_kept.at(arm).get(), static_cast<std::uint64_t>(k) * m_room, m_room};
}

device::Span Exchange::drawn(int k) const {
  return {m_private_inputs.get(), static_cast<std::uint64_t>(k) * m_slot_bytes,
          m_drawn.at(static_cast<std::size_t>(k)).bytes};
}

device::Span Exchange::slot(Arm arm, int k) const {
  Side const& here = side(arm);
  return {here.loan.arena(inputs_arena), place_at(k, here.used), inputs(k).bytes};
}

Result<bool> Exchange::inputs_unchanged(Arm arm) const {
  for (int k = 0; k < m_calls; ++k) {
    auto const same = m_backend.equal(drawn(k), slot(arm, k));
    if (!same) return fail(same.error());
    if (!*same) return false;
  }
  return true;
}

Result<std::unique_ptr<device::Arena>> Exchange::copy_of(const nlohmann::json& request, std::uint64_t bytes,
                                                         std::string_view during) {
  if (bytes == 0) return std::unique_ptr<device::Arena>();
  auto source = m_backend.allocate(bytes);
  if (!source) return fail(source.error());
  if (auto lent = m_reference.loan.lend(handed_arena, std::move(*source), m_limit); !lent) return fail(lent.error());
  nlohmann::json message = request;
  message["arena"] = handed_arena;
  message["at"] = 0;
  auto stored = m_reference.loan.worker().request(message, {}, m_limit, during);
  if (!stored) return fail(stored.error());
  auto target = m_backend.allocate(bytes);
  if (!target) return fail(target.error());
  auto copied = m_backend.copy({{m_reference.loan.arena(handed_arena), 0, bytes}, {target->get(), 0, bytes}});
  if (!copied) return fail(copied.error());
  if (auto taken = m_reference.loan.take_back(handed_arena, m_limit); !taken) return fail(taken.error());
  return std::move(*target);
}

Result<int> Exchange::hand_over(const nlohmann::json& request, std::uint64_t bytes, std::string_view during) {
  auto copy = copy_of(request, bytes, during);
  if (!copy) return fail(copy.error());
  if (*copy != nullptr) {
    if (auto lent = m_candidate->loan.lend(handed_arena, std::move(*copy), m_limit); !lent) return fail(lent.error());
  }
  return handed_arena;
}

}  // namespace cuda_agent::judge
