// SPDX-License-Identifier: LGPL-2.1-or-later
// SPDX-FileCopyrightText: The GTorch authors

// Times small operations through PyTorch's C++ interface, for the rows host.* of bench-cpu or, with the argument
// cuda, of bench-cuda: reads names and prints “name, seconds of one call”. bench/run builds it for the given PyTorch.

#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <string>

static bool on_gpu;

static void
synchronize ()
{
  if (on_gpu)
    at::detail::getCUDAHooks ().deviceSynchronize (0);
}

static double
seconds_of (const std::function<void ()> &function, int n_calls)
{
  auto start = std::chrono::steady_clock::now ();

  for (int j = 0; j < n_calls; j++)
    function ();
  return std::chrono::duration<double> (std::chrono::steady_clock::now () - start).count () / n_calls;
}

static double
measure (const std::function<void ()> &function)
{
  double samples[25];

  function ();
  /* a GPU's queue must not be full */
  int n_calls = on_gpu ? 500 : std::clamp ((int) (0.01 / std::max (seconds_of (function, 3), 1e-8)), 1, 100000);

  auto start = std::chrono::steady_clock::now ();

  do /* as long as the others */
    {
      seconds_of (function, n_calls);
      synchronize ();
    }
  while (on_gpu && std::chrono::steady_clock::now () - start < std::chrono::milliseconds (20));
  for (double &sample : samples)
    {
      sample = seconds_of (function, n_calls);
      synchronize ();
    }
  std::sort (samples, samples + 25);
  return samples[12];
}

int
main (int argc, char *argv[])
{
  on_gpu = argc > 1 && std::string (argv[1]) == "cuda";
  if (on_gpu && dlopen ("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr)
    {
      fprintf (stderr, "%s\n", dlerror ());
      return 1;
    }

  torch::NoGradGuard no_grad;
  auto o = torch::TensorOptions ().device (on_gpu ? torch::kCUDA : torch::kCPU);
  int64_t side = on_gpu ? 16 : 4;
  auto x = torch::randn ({ 16 }, o), y = torch::randn ({ 16 }, o), m = torch::randn ({ side, side }, o);
  auto one = torch::randn ({ 1 }, o), weight = torch::randn ({ 16 }, o).requires_grad_ ();
  std::map<std::string, std::function<void ()>> cases = {
    { "host.add", [&] { auto r = at::add (x, y); } },
    { "host.add_", [&] { y.add_ (x, 1e-30); } },
    { "host.relu", [&] { auto r = at::relu (x); } },
    { "host.empty", [&] { auto r = torch::empty ({ 16 }, o); } },
    { "host.view", [&] { auto r = m.view ({ side * side }); } },
    { "host.slice", [&] { auto r = m.slice (0, 1, 3); } },
    { "host.sum", [&] { auto r = m.sum (); } },
    { "host.alloc_free_1MiB", [&] { auto r = torch::empty ({ 1 << 20 }, o.dtype (torch::kUInt8)); } },
    { "host.item", [&] { (void) one.item<double> (); } },
    { "host.matmul", [&] { auto r = at::matmul (m, m); } },
    { "host.add_grad",
      [&] {
        torch::AutoGradMode grad (true);
        auto r = weight + y;
      } },
    { "host.mul_sum_backward",
      [&] {
        torch::AutoGradMode grad (true);
        auto r = (weight * y).sum ();

        r.backward ();
        weight.mutable_grad () = torch::Tensor ();
      } },
  };
  std::string name;

  while (std::getline (std::cin, name))
    {
      auto found = cases.find (name);

      if (found != cases.end ())
        printf ("%s\t%.4g\n", name.c_str (), measure (found->second));
      else
        printf ("%s\tnone\n", name.c_str ());
      fflush (stdout);
    }
  return 0;
}
