/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#define FAKE_CUDNN_MAX_ENGINES 16

/* The settings of the test, and the calls of the library. */
typedef struct
{
  unsigned n_engines; /* 0 at first: cuDNN supports nothing */
  struct
  {
    long long workspace;
    int note;  /* cudnnBackendNumericalNote_t, or -1 */
    int fails; /* execution fails */
  } engines[FAKE_CUDNN_MAX_ENGINES];
  void (*execute) (void *stream, unsigned engine); /* enqueues work; or NULL */

  unsigned n_plans;   /* the number created so far */
  unsigned n_present; /* descriptors of all kinds that were not destroyed yet */
  unsigned n_executed;
  unsigned last; /* the engine that was executed last */
  void *workspace;

  struct
  {
    /* bit i: algorithm i is not supported: by descriptors, by forward passes, by backward passes */
    unsigned refused, refused_forward, refused_backward;
    long us[4]; /* how long a pass takes with an algorithm */

    unsigned n_forward, n_trained, n_backward,
        n_weights;                         /* calls so far; with reserve: n_trained */
    int algorithm, math, layout, n_layers; /* of the last pass */
  } rnn;
} FakeCudnn;

extern FakeCudnn fake_cudnn;
