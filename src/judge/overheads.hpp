// What a timed call costs beside the model, and eager alone: measured while both workers can be trusted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda_agent/error.hpp"
#include "judge/exchange.hpp"

namespace cuda_agent::judge {

/// K empty calls in one worker, in microseconds, for each way of timing.
struct Nulls {
  NullCall gated;
  NullCall end_to_end;
  const NullCall& of(device::CallMode mode) const { return mode == device::CallMode::gated ? gated : end_to_end; }
};

/// What launching costs in the hardware channel that a worker's calls go through: it differs between processes and
/// between the streams of one, by 10 % and more, and stays as it is.
struct Channels {
  int stream = 0;        ///< the reference's: of those tried the one nearest to the candidate's
  int tried = 0;         ///< streams of the reference; 0: not told apart on this device
  double reference = 0;  ///< microseconds of an empty call with `chain_launches` kernels that do nothing
  double candidate = 0;
};
inline constexpr int chain_launches = 200;

/// A call that could not be armed so often in a row cannot be.
inline constexpr int most_refusals = 3;

/// What is measured in each worker while it can be trusted: before the candidate worker hears of its candidate.
struct Overheads {
  OutputNode like;        ///< what an empty call stores
  int calls = 1;          ///< K
  double eager_span = 0;  ///< microseconds of one warm call, null included
  Nulls reference;
  Nulls candidate;
  Channels channels;
  std::string not_gated;  ///< why eager could not be held behind a gate; empty: it could
  device::CallMode alone_mode = device::CallMode::gated;
  std::vector<double> eager_alone;  ///< microseconds a call, null subtracted, before the candidate was loaded
};

/// Microseconds a call, from those of K calls and of what storing the last result took. Storing may take 2 µs + 1 %
/// longer than the null's: the rest is the model's own work, which a forged first answer would hide. Differences that
/// the clock cannot resolve count as 1 ns.
double without_null(double microseconds, double tail, const NullCall& null, int calls);

/// K so that a timed span is at least 200 µs, with inputs and results of all K in `memory` bytes.
int calls_for(double eager_microseconds, double null_microseconds, std::uint64_t bytes_a_call, std::uint64_t memory);

/// By how much the ratio of two processes' times can differ from the models', relative, from what was measured:
///   √(placement² + (the two nulls' spreads / span)² + (launches · |difference of the chains| / 200 / span)²)
/// where `span` is the shorter arm's K calls in microseconds, and of launches there are at most enqueued / 2 µs.
double between_processes(const Overheads& overheads, device::CallMode mode, double span, double enqueued);

/// Microseconds a call of eager on the inputs that are there, nothing else running: empty where it cannot be timed.
Result<std::vector<double>> time_eager_alone(Exchange& exchange, const Overheads& overheads, util::Deadline deadline);

/// Draws inputs for K slots, warms the eager arm on them, and measures an empty call and eager alone.
Result<Overheads> measure_overheads(Exchange& exchange, const OutputNode& like, double eager_microseconds,
                                    std::uint64_t seed, util::Deadline deadline);

}  // namespace cuda_agent::judge
