#include <sys/prctl.h>

#include "cli/cli.hpp"

int main(int argc, char** argv) {
  // Candidates run as the same user: what this process holds in memory is not for them to read in /proc.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return cuda_agent::cli::run(argc, argv);
}
