// SPDX-License-Identifier: LGPL-2.1-or-later
// SPDX-FileCopyrightText: The GTorch authors

// Times small operations through PyTorch's C++ interface for the host rows of bench-cpu. Built by hand:
//
//   T=$(python3 -c 'import torch, os; print(os.path.dirname(torch.__file__))')
//   g++ -O2 -std=c++20 bench/peer-host.cpp -I$T/include -I$T/include/torch/csrc/api/include -L$T/lib
//       -Wl,--no-as-needed -ltorch_cpu -lc10 -ltorch -Wl,-rpath,$T/lib -o build/bench/peer-host

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

template <class Function>
static void
measure (const char *name, Function function)
{
  const int n_calls = 20000;
  double seconds[15];

  for (int i = 0; i < 17; i++)
    {
      auto start = std::chrono::steady_clock::now ();

      for (int j = 0; j < n_calls; j++)
        function ();
      if (i >= 2)
        seconds[i - 2]
          = std::chrono::duration<double> (std::chrono::steady_clock::now () - start).count () / n_calls;
    }
  std::sort (seconds, seconds + 15);
  printf ("%s\t%.4g\n", name, seconds[7]);
}

int
main ()
{
  torch::NoGradGuard no_grad;
  auto x = torch::full ({ 16 }, 0.37), y = torch::full ({ 16 }, 1.62), m = torch::full ({ 4, 4 }, 0.37);

  measure ("host.add", [&] { auto r = at::add (x, y); });
  measure ("host.add_", [&] { x.add_ (y); });
  measure ("host.relu", [&] { auto r = at::relu (x); });
  measure ("host.empty", [&] { auto r = torch::empty ({ 16 }); });
  measure ("host.view", [&] { auto r = m.view ({ 16 }); });
  measure ("host.slice", [&] { auto r = m.slice (0, 1, 3); });
  measure ("host.sum", [&] { auto r = x.sum (); });
  measure ("host.item", [&] { (void) x[0].item<float> (); });
  measure ("host.matmul", [&] { auto r = at::matmul (m, m); });
  {
    torch::AutoGradMode grad (true);
    auto g = torch::full ({ 16 }, 0.37).requires_grad_ ();

    measure ("host.add_grad", [&] { auto r = g + y; });
    measure ("host.mul_sum_backward", [&] {
      auto r = (g * y).sum ();

      r.backward ();
      g.mutable_grad () = torch::Tensor ();
    });
  }
  return 0;
}
