#include "cli/seeds.hpp"

#include <charconv>
#include <system_error>

namespace cuda_agent::cli {
namespace {

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  auto const* const end = text.data() + text.size();
  auto const result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end ? std::optional(number) : std::nullopt;
}

}  // namespace

void Seeds::set(judge::Options& options) const {
  options.seed = of_inputs;
  if (of_constructors != of_inputs) options.constructor_seed = of_constructors;
}

std::optional<Seeds> seeds_in(std::string_view text) {
  auto const slash = text.find('/');
  auto const inputs = number_in(text.substr(0, slash));
  auto const constructors = slash == std::string_view::npos ? inputs : number_in(text.substr(slash + 1));
  if (!inputs || !constructors) return std::nullopt;
  return Seeds{*inputs, *constructors};
}

}  // namespace cuda_agent::cli
