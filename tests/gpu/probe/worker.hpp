// The probe's worker process: answers timed calls as a worker does, honestly or not.
#pragma once

#include <string>

namespace probe {

/// Entry of the child process. `fd` is its end of the channel. The first message names the scenario and brings the
/// control page, the input and the output; each further one is a timed call; "end" ends it.
int work_for_the_supervisor(int fd);

inline constexpr unsigned long input_bytes = 16UL << 20U;
inline constexpr unsigned long output_bytes = 16UL << 20U;

}  // namespace probe
