// The command line.
#pragma once

namespace cuda_agent::cli {

/// Runs the program. Returns the exit code (docs/verdict.md); never throws.
int run(int argc, char** argv);

}  // namespace cuda_agent::cli
