#include "cli/cli.hpp"

int main(int argc, char** argv) { return cuda_agent::cli::run(argc, argv); }
