// The memory that goes between the supervisor and its two workers, and what is done with it: drawing inputs, lending
// them to both sides, timed calls, and the results they left.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cuda_agent/error.hpp"
#include "device/backend.hpp"
#include "judge/outputs.hpp"
#include "judge/worker.hpp"
#include "util/deadline.hpp"

namespace cuda_agent::judge {

/// Values as the reference worker encoded them: trees that name storages, and the storages' places.
struct EncodedValues {
  nlohmann::json trees = nlohmann::json::array();
  nlohmann::json storages = nlohmann::json::array();
  std::uint64_t bytes = 0;
};

/// Reads {"trees", "storages", "bytes"} of a reference worker's reply. Errors: internal_error.
Result<EncodedValues> encoded_values(const nlohmann::json& reply);

/// `exact`: the task's own model in float64, results in the dtypes of eager's; never timed.
enum class Arm { eager, compiled, candidate, exact };
std::string_view to_string(Arm arm);

/// `signs`: with new signs; `large`, `huge`: and one value of each tensor that is 2⁷ or 2¹⁸ times its RMS (probe.hpp).
enum class InputKind { drawn, signs, large, huge };

/// What the K calls of one timed call gave.
struct ArmCall {
  double microseconds = 0;  ///< all K, null included
  double tail = 0;          ///< from the answer until the last result was stored
  device::CallMode mode = device::CallMode::gated;
  bool armed = true;                ///< false: it could not be held until everything was enqueued
  std::string refused;              ///< why not
  bool counts = true;               ///< false: a warm-up or not armed, the time means nothing
  std::vector<OutputNode> outputs;  ///< one a call; tensors lie in `kept(arm, k)`
};

/// The time of an empty call.
struct NullCall {
  double microseconds = 0;
  double tail = 0;
  bool counts = true;
  double spread = 0;  ///< where this stands for many: half of what lies between their 10th and 90th percentiles
};

/// What an empty call does beside storing its results (on a GPU).
struct NullKind {
  int launches = 0;      ///< kernels that do nothing
  bool written = false;  ///< each result is written anew just before it is stored, so that it comes from the cache
  bool stored = true;    ///< false: nothing is stored
};

/// Lends memory to one worker and remembers under which numbers.
class Loan {
 public:
  explicit Loan(Worker& worker) : m_worker(worker) {}
  /// Takes over `arena` and has the worker map it; the one it replaces is unmapped and freed.
  Result<void> lend(int id, std::unique_ptr<device::Arena> arena, util::Deadline deadline);
  /// Lends what the backend starts and ends timed calls with, if it needs such a thing.
  Result<void> lend_control(device::Backend& backend, util::Deadline deadline);
  device::Arena* control() const { return m_control.get(); }
  Result<void> take_back(int id, util::Deadline deadline);
  device::Arena* arena(int id) const;
  Worker& worker() const { return m_worker; }

 private:
  Worker& m_worker;
  std::map<int, std::unique_ptr<device::Arena>> m_arenas;
  std::unique_ptr<device::Arena> m_control;
};

class Exchange {
 public:
  /// `limit` bounds every wait on the reference worker.
  Exchange(device::Backend& backend, Worker& reference, util::Deadline limit);

  /// The candidate worker joins: a standby, before it hears of a candidate.
  void admit(Worker& candidate);

  /// Lends the candidate's worker what its timed calls are started and ended with.
  Result<void> prepare_candidate();

  /// Room for results of so many bytes a call: known from an earlier exchange with the same task.
  void expect_results(std::uint64_t bytes) { make_room(bytes); }

  /// Takes back all that is lent to the reference's worker. False: it does not answer, and is of no more use.
  bool release_reference();

  /// From now on every draw is the same.
  void repeat_inputs(std::uint64_t seed) { m_only_seed = seed; }

  /// Draws inputs for `calls` slots under seeds derived from `seed` and binds them in every worker that is there.
  Result<void> draw(std::uint64_t seed, int calls, InputKind kind = InputKind::drawn);
  /// The reference's worker draws what `draw(seed, calls)` will ask for, in place of answering then. Until `end_ahead`
  /// nothing may be timed, and nobody else may ask that worker: see DrawAhead.
  void begin_ahead(std::uint64_t seed, int calls);
  void end_ahead();

  /// One timed call of an arm on the drawn inputs. `during` is for errors, `deadline` for the worker's fate.
  /// `warm`: after a call that is not timed, on the inputs that the arm's worker had last, where it had some of this
  /// layout. It must not be asked for where a model changes its inputs.
  Result<ArmCall> call(Arm arm, util::Deadline deadline, std::string_view during, bool warm = false);

  /// After each call of the candidate: what its process holds of the device's memory may not exceed `most` bytes; it
  /// holds `held` now. Where it does, its processes are ended, and what then becomes free is what it held.
  void limit_candidate_memory(std::uint64_t most, std::int64_t held) { m_memory_limit = {most, held}; }

  /// The null arm in the worker of `arm`, storing results of the shapes of `like`.
  Result<NullCall> call_null(Arm arm, const OutputNode& like, util::Deadline deadline, NullKind kind = {});

  /// The stream on which the reference's worker makes all later calls (0: torch's default). Calls made before warm
  /// nothing up for it. `settle`: for good, so that the worker gives back what it keeps for other streams.
  Result<void> use_stream(int number, bool settle = false);
  /// Microseconds that the processor needs to enqueue an arm's K calls, those of an empty call taken off: of the
  /// fastest calls so far; 0 where not told apart.
  double enqueued(Arm arm) const;

  /// Calls of a model to make in mode `open` before others: at each of a slot's two places as many as the device asks
  /// for, so that what a model keeps for an address (a captured graph, say) is there then.
  int model_warm_ups() const { return 2 * m_backend.open_calls(); }

  /// How all arms are timed from now on. Calls made before warm nothing up for it.
  void set_mode(device::CallMode mode);
  /// How one arm is timed, whatever the others do.
  void set_mode(Arm arm, device::CallMode mode) { m_mode_of[arm] = mode; }
  device::CallMode mode(Arm arm) const;
  device::CallMode mode() const { return m_mode; }

  /// Where call k of an arm's last timed call lies, out of the workers' reach.
  device::Span kept(Arm arm, int k) const;
  /// The inputs of slot k as drawn.
  device::Span drawn(int k) const;
  /// The inputs of slot k as the arm's worker has them now.
  device::Span slot(Arm arm, int k) const;
  /// Whether the worker's inputs are still as they were drawn.
  Result<bool> inputs_unchanged(Arm arm) const;

  const EncodedValues& inputs(int k) const { return m_drawn.at(static_cast<std::size_t>(k)); }
  int calls() const { return m_calls; }
  /// Grows whenever kept results were dropped to make more room: a round during which it grew is to be repeated.
  int generation() const { return m_generation; }
  std::uint64_t bytes_a_call() const { return m_slot_bytes + m_room; }
  std::uint64_t input_bytes() const { return m_slot_bytes; }  ///< of one call
  std::uint64_t result_bytes() const { return m_room; }       ///< room for those of one call
  device::Backend& backend() const { return m_backend; }

  /// What the reference's worker stores when asked with `request`, in an arena that can be lent; none for 0 bytes.
  Result<std::unique_ptr<device::Arena>> copy_of(const nlohmann::json& request, std::uint64_t bytes,
                                                 std::string_view during);
  /// Lends weights or constructor values of the reference to the candidate: asked of the reference with `op`, copied
  /// into an arena of the candidate's own, whose number is returned.
  Result<int> hand_over(const nlohmann::json& request, std::uint64_t bytes, std::string_view during);

 private:
  /// The calls of one arm so far.
  struct History {
    int open = 0;
    int timed = 0;
    double enqueued = 0;  ///< microseconds, the fastest open call
  };

  /// Where the inputs of a slot can lie. There are two, used in turn from draw to draw: what a candidate took from
  /// the address of one draw's inputs is not that of the next one's.
  struct Place {
    std::string bound;    ///< to what it was bound last
    bool filled = false;  ///< whether inputs were copied there since, and lie there still
  };

  struct Side {
    Loan loan;
    std::vector<Place> places;  ///< two of each slot
    int used = 0;               ///< which of the two the last call had
    std::string null_like;
    std::map<std::string, History> calls;  ///< by arm, for this K

    Place& place(int k, int which) { return places.at(static_cast<std::size_t>(number_of(k, which))); }
    const Place& place(int k, int which) const { return places.at(static_cast<std::size_t>(number_of(k, which))); }
  };

  /// As the worker counts them.
  static int number_of(int k, int which) { return 2 * k + which; }
  /// The place's first byte in the arena of inputs.
  std::uint64_t place_at(int k, int which) const;

  Side& side(Arm arm) { return arm == Arm::candidate ? *m_candidate : m_reference; }
  const Side& side(Arm arm) const { return arm == Arm::candidate ? *m_candidate : m_reference; }
  nlohmann::json draw_request(std::uint64_t seed, std::size_t k, InputKind kind) const;
  Result<nlohmann::json> drawn_reply(std::uint64_t seed, std::size_t k, int calls, InputKind kind);
  Result<void> make_slots(std::uint64_t bytes, int calls);
  Result<void> make_slots_for(Side& side, std::uint64_t bytes, int calls);
  void make_room(std::uint64_t bytes);
  void drop_kept();
  Result<void> make_room_for(Side& side);
  Result<void> bind(Side& side);
  bool can_warm(const Side& side) const;
  void note_filled(Side& side) const;
  Result<void> within_memory(Side& candidate, std::uint64_t free_before, std::string_view during);
  Result<device::CallResult> timed(Side& side, const std::string& arm, bool warm, device::Arena* kept,
                                   device::CallMode& mode, bool& counts, util::Deadline deadline,
                                   std::string_view during, NullKind kind = {});

  device::Backend& m_backend;
  util::Deadline m_limit;
  Side m_reference;
  std::optional<Side> m_candidate;
  std::vector<EncodedValues> m_drawn;
  std::unique_ptr<device::Arena> m_private_inputs;  ///< the drawn inputs, out of reach while arms run
  std::map<Arm, std::unique_ptr<device::Arena>> m_kept;
  std::unique_ptr<device::Arena> m_null_kept;
  std::uint64_t m_slot_bytes = 0;
  std::uint64_t m_room = 0;
  std::uint64_t m_call_seed = 0;
  int m_calls = 0;
  int m_slots = 0;
  int m_place = 0;  ///< which of each slot's two this draw's calls have
  int m_generation = 0;
  struct MemoryLimit {
    std::uint64_t most = 0;
    std::int64_t held = 0;
  };
  std::optional<std::uint64_t> m_only_seed;
  /// The first inputs of a draw that has not been asked for yet.
  struct Ahead {
    std::uint64_t seed = 0;
    int calls = 0;
    std::optional<Result<nlohmann::json>> reply{};  ///< none: still to be collected
  };
  std::optional<Ahead> m_ahead;
  std::optional<MemoryLimit> m_memory_limit;
  device::CallMode m_mode = device::CallMode::gated;
  std::map<Arm, device::CallMode> m_mode_of;
};

/// As long as it lives the next inputs are being drawn, beside whatever the supervisor does: comparing, as a rule.
class DrawAhead {
 public:
  DrawAhead(Exchange& exchange, std::uint64_t seed, int calls) : m_exchange(exchange) {
    exchange.begin_ahead(seed, calls);
  }
  DrawAhead(const DrawAhead&) = delete;
  DrawAhead& operator=(const DrawAhead&) = delete;
  ~DrawAhead() {
    try {
      m_exchange.end_ahead();
    } catch (const std::exception&) {  // what is missing then is missed by the next draw
    }
  }

 private:
  Exchange& m_exchange;
};

}  // namespace cuda_agent::judge
