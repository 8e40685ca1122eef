/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#define FAKE_CUDNN_MAX_ENGINES 16

/* What the test says, and what the library was asked for. */
typedef struct
{
  unsigned n_engines; /* at first none: there is nothing that cuDNN can do */
  struct
  {
    long long workspace;
    int note;  /* cudnnBackendNumericalNote_t, or -1 */
    int fails; /* when it is executed */
  } engines[FAKE_CUDNN_MAX_ENGINES];
  void (*execute) (void *stream, unsigned engine); /* what it enqueues, or NULL */

  unsigned n_plans;   /* made so far */
  unsigned n_present; /* descriptors of all kinds, not destroyed yet */
  unsigned n_executed;
  unsigned last; /* the engine that was executed last */
  void *workspace;
} FakeCudnn;

extern FakeCudnn fake_cudnn;
