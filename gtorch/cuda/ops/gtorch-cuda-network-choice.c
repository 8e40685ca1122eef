/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The choice of an algorithm of cuDNN's for a recurrent network.
 *
 * Without trials it is the one that PyTorch takes, by the sizes for which it was measured there. Kernels that
 * stay for all steps take sequences of one length only, no float64 and no projections. What cuDNN has refused
 * is not asked for again. */

#include "config.h"

#include <string.h>

#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/ops/gtorch-cuda-benchmark-private.h"
#include "cuda/ops/gtorch-cuda-network-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-hash-private.h"
#include "ops/gtorch-op-parts-private.h"

#define N_ALGORITHMS  4
#define MAX_CHOICES   4096
#define LARGEST_TRIED 384 /* the most hidden units with which the algorithm for few is tried */

/* --- what is known --- */

typedef struct
{
  gint64 words[15];
} Key;

typedef struct
{
  Key key;
  guint refused;                 /* bit i: algorithm i */
  gint best;                     /* by trial; -1: there was none */
  gint64 *offsets[N_ALGORITHMS]; /* of the parameters; NULL: they were not looked for yet */
} Choice;

static GMutex lock;
GTORCH_FORK_LOCK (lock);
static GHashTable *choices;

static guint
key_hash (gconstpointer data)
{
  return gtorch_hash_words (data, sizeof (Key));
}

static gboolean
key_equal (gconstpointer a, gconstpointer b)
{
  return memcmp (a, b, sizeof (Key)) == 0;
}

/* Packed sequences differ from batch to batch, and have one algorithm. */
static Key
key_of (const GTorchCudnnRNNForm *form)
{
  return (Key){ { form->device, form->dtype, form->mode, form->inputs, form->hidden, form->states,
                  form->n_layers, form->n_directions, form->is_uniform ? form->batch : 0,
                  form->is_uniform ? form->steps : 0, form->is_uniform, form->has_projections,
                  form->tf32, form->trains, form->has_biases } };
}

static void
choice_free (gpointer data)
{
  Choice *choice = data;

  for (guint i = 0; i < N_ALGORITHMS; i++)
    g_free (choice->offsets[i]);
  g_free (choice);
}

/* Returns what is known of the form; with `adds`, a new entry if there is none. The lock is held. */
static Choice *
look_up (const GTorchCudnnRNNForm *form, gboolean adds)
{
  const Key key = key_of (form);
  Choice *choice;

  if (choices == NULL)
    choices = g_hash_table_new_full (key_hash, key_equal, NULL, choice_free);
  choice = g_hash_table_lookup (choices, &key);
  if (choice != NULL || !adds)
    return choice;
  if (g_hash_table_size (choices) >= MAX_CHOICES)
    g_hash_table_remove_all (choices);
  choice = g_new0 (Choice, 1);
  choice->key = key;
  choice->best = -1;
  g_hash_table_insert (choices, &choice->key, choice);
  return choice;
}

void
gtorch_cuda_network_refuse (const GTorchCudnnRNNForm *form)
{
  g_mutex_lock (&lock);
  look_up (form, TRUE)->refused |= 1u << form->algorithm;
  g_mutex_unlock (&lock);
  g_debug ("cuDNN refuses algorithm %d for a recurrent network of %d layers of %d units, batch %d, "
           "dtype %s",
           form->algorithm, form->n_layers, form->hidden, form->batch,
           gtorch_dtype_get_name (form->dtype));
}

static guint
get_refused (const GTorchCudnnRNNForm *form, gint *best)
{
  const Choice *choice;
  guint refused = 0;

  g_mutex_lock (&lock);
  choice = look_up (form, FALSE);
  if (choice != NULL)
    refused = choice->refused;
  *best = choice != NULL ? choice->best : -1;
  g_mutex_unlock (&lock);
  return refused;
}

gboolean
gtorch_cuda_network_is_refused (const GTorchCudnnRNNForm *form)
{
  gint best;

  return (get_refused (form, &best) >> form->algorithm) & 1;
}

gboolean
gtorch_cuda_network_find_offsets (const GTorchCudnnRNNForm *form, const GTorchCudnnRNN *network,
                                  gpointer handle, gint64 *offsets)
{
  const gsize n = (gsize) form->n_layers * form->n_directions
                  * (2 + (form->has_biases ? 2 : 0) + (form->has_projections ? 1 : 0));
  gboolean found = TRUE;
  Choice *choice;

  g_mutex_lock (&lock);
  choice = look_up (form, TRUE);
  if (choice->offsets[form->algorithm] != NULL)
    memcpy (offsets, choice->offsets[form->algorithm], n * sizeof *offsets);
  else
    {
      found = gtorch_cudnn_rnn_find_offsets (network, form, handle, offsets);
      if (found)
        choice->offsets[form->algorithm] = g_memdup2 (offsets, n * sizeof *offsets);
    }
  g_mutex_unlock (&lock);
  return found;
}

/* --- without trials --- */

static gboolean
may_persist (const GTorchCudnnRNNForm *form)
{
  return form->is_uniform && !form->has_projections && form->dtype != GTORCH_DTYPE_FLOAT64;
}

/* Whether there are so few hidden units that their weights fit into one multiprocessor. */
static gboolean
is_small (const GTorchCudnnRNNForm *form)
{
  const gboolean has_gates = form->mode >= GTORCH_RECURRENT_LSTM;

  if (!may_persist (form))
    return FALSE;
  if (form->trains)
    return form->hidden <= (has_gates ? 128 : 256);
  return form->hidden <= (has_gates ? 192 : 384);
}

static gboolean
is_medium (const GTorchCudnnRNNForm *form)
{
  const GTorchCudaDevice *device = gtorch_cuda_device_peek (form->device);

  if (!may_persist (form) || form->dtype != GTORCH_DTYPE_FLOAT16 || form->n_layers != 1
      || form->n_directions != 1 || form->hidden > 1024 || form->hidden % 128 != 0
      || form->inputs % 128 != 0 || form->batch % 8 != 0 || form->batch > 128)
    return FALSE;
  if (device->info.major < 8 || device->info.minor == 6 || device->n_multiprocessors < 98)
    return FALSE;
  if (form->mode == GTORCH_RECURRENT_LSTM)
    return TRUE;
  return form->mode != GTORCH_RECURRENT_GRU && (form->batch < 96 || form->hidden < 896);
}

static guint
propose (const GTorchCudnnRNNForm *form, gint *algorithms)
{
  guint n = 0;

  if (is_small (form))
    algorithms[n++] = GTORCH_CUDNN_RNN_SMALL;
  if (is_medium (form))
    algorithms[n++] = GTORCH_CUDNN_RNN_PERSIST;
  algorithms[n++] = GTORCH_CUDNN_RNN_STANDARD;
  return n;
}

/* --- by trial --- */

typedef struct
{
  GTorchCudnnRNNForm form;
  GTorchCudaLane *lane;
  guint n;
  gint algorithms[N_ALGORITHMS];
  GTorchCudnnRNN *networks[N_ALGORITHMS];
  GTorchCudnnRNNData data;
} Trial;

static gboolean
attempt (guint which, gpointer user_data)
{
  const Trial *trial = user_data;
  const GTorchCudnnRNN *network = trial->networks[which];
  gpointer handle = gtorch_cudnn_begin (trial->form.device);
  gint status;

  if (handle == NULL)
    return FALSE;
  status = gtorch_cudnn_set_stream (handle, trial->lane);
  if (status == 0)
    status = gtorch_cudnn_rnn_forward (network, handle, trial->form.trains, &trial->data);
  if (status == 0 && trial->form.trains)
    status = gtorch_cudnn_rnn_backward (network, handle, &trial->data);
  if (status == 0 && trial->form.trains)
    status = gtorch_cudnn_rnn_backward_weights (network, handle, &trial->data);
  gtorch_cudnn_end ();
  return status == 0;
}

/* Describes the networks, without those that cuDNN refuses at once. */
static void
make_networks (Trial *trial, guint refused)
{
  static const gint all[] = { GTORCH_CUDNN_RNN_STANDARD, GTORCH_CUDNN_RNN_PERSIST,
                              GTORCH_CUDNN_RNN_SMALL };
  gpointer handle = gtorch_cudnn_begin (trial->form.device);

  if (handle == NULL)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (all); i++)
    {
      GTorchCudnnRNNForm form = trial->form;

      form.algorithm = (GTorchCudnnRNNAlgorithm) all[i];
      if (((refused >> all[i]) & 1)
          || (all[i] == GTORCH_CUDNN_RNN_SMALL && form.hidden > LARGEST_TRIED)
          || (trial->networks[trial->n] = gtorch_cudnn_rnn_new (&form, handle)) == NULL)
        continue;
      trial->algorithms[trial->n++] = all[i];
    }
  gtorch_cudnn_end ();
}

/* Takes a part of the memory, whose size is counted before it is allocated. */
static gpointer
take (gsize n_bytes, char *base, gsize *used)
{
  gpointer part = base != NULL ? base + *used : NULL;

  *used += (n_bytes + 511) / 512 * 512;
  return part;
}

static gsize
lay_out (Trial *trial, char *base)
{
  const GTorchCudnnRNNForm *f = &trial->form;
  const gsize size = gtorch_dtype_size (f->dtype), rows = (gsize) f->batch * f->steps;
  const gsize x = rows * f->inputs * size, y = rows * f->states * f->n_directions * size;
  const gsize parts = (gsize) f->n_layers * f->n_directions * f->batch * size;
  const gsize h = parts * f->states, c = parts * f->hidden;
  const gboolean has_cells = f->mode == GTORCH_RECURRENT_LSTM;
  GTorchCudnnRNNData *d = &trial->data;
  gsize used = 0, weights = 0, workspace = 0, reserve = 0;

  for (guint i = 0; i < trial->n; i++)
    {
      weights = MAX (weights, trial->networks[i]->weights);
      workspace = MAX (workspace, trial->networks[i]->workspace);
      reserve = MAX (reserve, trial->networks[i]->reserve);
    }
  d->x = take (x, base, &used);
  d->y = take (y, base, &used);
  d->hx = take (h, base, &used);
  d->hy = take (h, base, &used);
  d->cx = has_cells ? take (c, base, &used) : NULL;
  d->cy = has_cells ? take (c, base, &used) : NULL;
  d->weights = take (weights, base, &used);
  d->workspace = workspace > 0 ? take (workspace, base, &used) : NULL;
  if (!f->trains)
    return used;
  d->reserve = take (reserve, base, &used);
  d->dy = take (y, base, &used);
  d->dx = take (x, base, &used);
  d->dhx = take (h, base, &used);
  d->dcx = has_cells ? take (c, base, &used) : NULL;
  d->dweights = take (weights, base, &used);
  return used;
}

/* Times the algorithms on zeros. Returns -1 if there is no memory for that. */
static gint
try_all (const GTorchCudnnRNNForm *form, GTorchCudaLane *lane, guint refused)
{
  Trial trial = { .form = *form, .lane = lane };
  g_autoptr (GTorchImpl) memory = NULL;
  gint best = -1;

  make_networks (&trial, refused);
  if (trial.n > 0)
    memory = gtorch_cuda_scratch (lane, (gint64) lay_out (&trial, NULL), NULL);
  if (memory != NULL && gtorch_cuda_clear (memory, lane, NULL))
    {
      lay_out (&trial, gtorch_impl_data (memory));
      best = gtorch_cuda_benchmark (lane, trial.n, attempt, &trial);
    }
  if (best >= 0)
    {
      best = trial.algorithms[best];
      g_debug ("cuDNN: of %u algorithms %d is the quickest for a recurrent network of %d layers of "
               "%d units, batch %d, %d steps",
               trial.n, best, form->n_layers, form->hidden, form->batch, form->steps);
    }
  for (guint i = 0; i < trial.n; i++)
    gtorch_cudnn_rnn_free (trial.networks[i]);
  return best;
}

gint
gtorch_cuda_network_choose (const GTorchCudnnRNNForm *form, GTorchCudaLane *lane)
{
  gint algorithms[N_ALGORITHMS], best;
  const guint n = propose (form, algorithms);
  guint refused = get_refused (form, &best);

  if (lane != NULL && best < 0 && may_persist (form)
      && g_atomic_int_get (&lane->device->parent_instance.benchmark)
      && !gtorch_cuda_lane_may_capture (lane))
    {
      best = try_all (form, lane, refused);
      g_mutex_lock (&lock);
      look_up (form, TRUE)->best = best;
      g_mutex_unlock (&lock);
    }
  if (best >= 0 && !((refused >> best) & 1))
    return best;
  for (guint i = 0; i < n; i++)
    if (!((refused >> algorithms[i]) & 1))
      return algorithms[i];
  return GTORCH_CUDA_NO_ALGORITHM;
}
