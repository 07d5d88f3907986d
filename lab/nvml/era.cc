// SPDX-License-Identifier: Apache-2.0
// The table of eras (facts.md 1.6); LAB_NVML_ERA, set by the build, picks the row. The only file compiled once an era.
#include "lab/nvml/era.h"

#ifndef LAB_NVML_ERA
#error "LAB_NVML_ERA has to name an enumerator of lab::Era"
#endif

namespace lab::nvml {

namespace {

constexpr EraTraits kEras[] = {
    {Era::e470, "11.470.82.01", Stride::v24, false},       // has no _v3
    {Era::e510, "11.510.108.03", Stride::v24, false},      //
    {Era::e535_86, "12.535.86.10", Stride::v32, false},    //
    {Era::e535_98, "12.535.98", Stride::v24, false},       // has no _v3
    {Era::e535_104, "12.535.104.05", Stride::v32, false},  //
    {Era::e550, "12.550.54.15", Stride::v24, false},       //
    {Era::e580, "13.580.95.05", Stride::v24, true},        //
};

constexpr EraTraits traits_of(Era era) {
  for (const EraTraits& traits : kEras) {
    if (traits.era == era) return traits;
  }
  return {};
}

constexpr EraTraits kChosen = traits_of(Era::LAB_NVML_ERA);
static_assert(kChosen.library_version != nullptr, "every era needs a row");

}  // namespace

extern const EraTraits kEra = kChosen;

}  // namespace lab::nvml
