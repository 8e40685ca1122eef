/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A stand-in for cuDNN, which needs a GPU: it accepts any graph and has as many engines for it as the
 * test sets, none of which computes anything. Recurrent networks are in fake-cudnn-rnn.c. */

#include "fake-cudnn.h"

#include <stdlib.h>
#include <string.h>

/* The functions are declared in NVIDIA's header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT        __attribute__ ((visibility ("default")))
#define NOT_SUPPORTED 3000
#define EXECUTION     5000

enum
{
  ENGINE = 2,
  ENGINE_CONFIG = 3,
  HEURISTIC = 4,
  PLAN = 5,
  GRAPH = 15,
};

enum
{
  HEURISTIC_RESULTS = 202,
  CONFIG_ENGINE = 300,
  PLAN_CONFIG = 401,
  PLAN_WORKSPACE = 402,
  PACK_WORKSPACE = 1003,
  ENGINE_NOTES = 1303,
};

typedef struct
{
  int type;
  unsigned engine; /* for an engine, its configuration, a plan of it */
  void *workspace; /* for a variant pack */
} Descriptor;

EXPORT FakeCudnn fake_cudnn;
void *fake_cudnn_stream;

EXPORT size_t
cudnnGetVersion (void)
{
  return 91900;
}

EXPORT int
cudnnCreate (void **handle)
{
  static int the_one;

  *handle = &the_one;
  return 0;
}

EXPORT int
cudnnSetStream (void *handle, void *stream)
{
  (void) handle;
  fake_cudnn_stream = stream;
  return 0;
}

EXPORT int
cudnnBackendCreateDescriptor (int type, void **descriptor)
{
  Descriptor *self = calloc (1, sizeof *self);

  if (self == NULL)
    return NOT_SUPPORTED;
  self->type = type;
  *descriptor = self;
  fake_cudnn.n_present++;
  return 0;
}

EXPORT int
cudnnBackendDestroyDescriptor (void *descriptor)
{
  free (descriptor);
  fake_cudnn.n_present--;
  return 0;
}

EXPORT int
cudnnBackendFinalize (void *descriptor)
{
  const Descriptor *self = descriptor;

  if (self->type == GRAPH && fake_cudnn.n_engines == 0)
    return NOT_SUPPORTED;
  if (self->type == PLAN)
    fake_cudnn.n_plans++;
  return 0;
}

EXPORT int
cudnnBackendSetAttribute (void *descriptor, int attribute, int type, long long n,
                          const void *elements)
{
  Descriptor *self = descriptor;

  (void) type;
  (void) n;
  if (attribute == PLAN_CONFIG)
    self->engine = (*(Descriptor *const *) elements)->engine;
  else if (attribute == PACK_WORKSPACE)
    self->workspace = *(void *const *) elements;
  return 0;
}

EXPORT int
cudnnBackendGetAttribute (void *descriptor, int attribute, int type, long long n, long long *n_got,
                          void *elements)
{
  const Descriptor *self = descriptor;
  unsigned i;

  (void) type;
  *n_got = 1;
  if (attribute == HEURISTIC_RESULTS)
    {
      for (i = 0; i < fake_cudnn.n_engines && i < n; i++)
        ((Descriptor **) elements)[i]->engine = i;
      *n_got = i;
    }
  else if (attribute == CONFIG_ENGINE)
    (*(Descriptor **) elements)->engine = self->engine;
  else if (attribute == ENGINE_NOTES)
    {
      *(int *) elements = fake_cudnn.engines[self->engine].note;
      *n_got = fake_cudnn.engines[self->engine].note >= 0;
    }
  else if (attribute == PLAN_WORKSPACE)
    *(long long *) elements = fake_cudnn.engines[self->engine].workspace;
  else
    return NOT_SUPPORTED;
  return 0;
}

EXPORT int
cudnnBackendExecute (void *handle, void *plan, void *pack)
{
  const Descriptor *self = plan;

  (void) handle;
  if (fake_cudnn.engines[self->engine].fails)
    return EXECUTION;
  fake_cudnn.n_executed++;
  fake_cudnn.last = self->engine;
  fake_cudnn.workspace = ((const Descriptor *) pack)->workspace;
  if (fake_cudnn.execute != NULL)
    fake_cudnn.execute (fake_cudnn_stream, self->engine);
  return 0;
}
