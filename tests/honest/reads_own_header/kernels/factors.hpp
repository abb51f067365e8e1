// The table that case_cpu.cpp uses.
#pragma once

constexpr float factors[] = {
#include "factors.inc"
};
