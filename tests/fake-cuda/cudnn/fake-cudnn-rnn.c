/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A stand-in for cuDNN's recurrent networks, which computes them on the memory of the fake driver: in
 * float64, step by step, by their formulas. It is strict: sizes, descriptors and layouts must be what
 * NVIDIA's documentation asks for. Weights begin behind a gap, and matrices come before all biases. The
 * backward pass overwrites the reserve, as cuDNN's does. */

#include "fake-cudnn.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <tests/fake-cuda/fake-cuda.h>

/* The functions are declared in NVIDIA's header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT        __attribute__ ((visibility ("default")))
#define BAD           2000
#define NOT_SUPPORTED 3000
#define EXECUTION     5000
#define GAP           64 /* elements before the weights, and between matrices and biases */

enum
{
  LSTM = 2,
  GRU = 3,
};

typedef struct
{
  gint type, n_dims, shape[8], strides[8];
} Tensor;

typedef struct
{
  gint type, layout, steps, batch, width;
  gint *lengths;
} Data;

typedef struct
{
  gint algorithm, mode, n_directions, type, math, inputs, hidden, states, n_layers;
  gboolean is_padded, is_set;
} Network;

/* An enqueued pass; kept for ever, as a graph may repeat it. */
typedef struct
{
  Network n;
  gint steps, batch;
  gint *counts; /* elements of each step */
  gboolean trains;
  gconstpointer x, hx, cx, weights, dy, dhy, dcy;
  gpointer y, hy, cy, dx, dhx, dcx, dweights, workspace, reserve;
  gsize n_workspace, n_reserve;
} Pass;

extern void *fake_cudnn_stream;

/* --- descriptors --- */

#define DESCRIPTOR(Name, Type, clear)          \
  EXPORT int cudnnCreate##Name (void **result) \
  {                                            \
    *result = g_new0 (Type, 1);                \
    fake_cudnn.n_present++;                    \
    return 0;                                  \
  }                                            \
  EXPORT int cudnnDestroy##Name (void *data)   \
  {                                            \
    Type *self = data;                         \
    clear;                                     \
    g_free (self);                             \
    fake_cudnn.n_present--;                    \
    return 0;                                  \
  }
DESCRIPTOR (DropoutDescriptor, gint, )
DESCRIPTOR (TensorDescriptor, Tensor, )
DESCRIPTOR (RNNDataDescriptor, Data, g_free (self->lengths))
DESCRIPTOR (RNNDescriptor, Network, )

EXPORT int
cudnnSetDropoutDescriptor (void *descriptor, void *handle, float dropout, void *states,
                           size_t n_bytes, unsigned long long seed)
{
  gint *is_set = descriptor;

  if (handle == NULL || dropout != 0 || states != NULL || n_bytes != 0 || seed != 0)
    return NOT_SUPPORTED;
  *is_set = TRUE;
  return 0;
}

EXPORT int
cudnnSetTensorNdDescriptor (void *descriptor, int type, int n_dims, const int *shape,
                            const int *strides)
{
  Tensor *self = descriptor;

  if (n_dims < 3 || n_dims > 8)
    return BAD;
  self->type = type;
  self->n_dims = n_dims;
  memcpy (self->shape, shape, n_dims * sizeof (int));
  memcpy (self->strides, strides, n_dims * sizeof (int));
  return 0;
}

EXPORT int
cudnnGetTensorNdDescriptor (void *descriptor, int n_wanted, int *type, int *n_dims, int *shape,
                            int *strides)
{
  const Tensor *self = descriptor;
  const gint n = MIN (n_wanted, self->n_dims);

  *type = self->type;
  *n_dims = self->n_dims;
  memcpy (shape, self->shape, n * sizeof (int));
  memcpy (strides, self->strides, n * sizeof (int));
  return 0;
}

EXPORT int
cudnnSetRNNDataDescriptor (void *descriptor, int type, int layout, int steps, int batch, int width,
                           const int *lengths, void *fill)
{
  Data *self = descriptor;

  (void) fill;
  if (steps < 1 || batch < 1 || width < 1 || lengths == NULL || layout < 0 || layout > 1)
    return BAD;
  for (gint i = 0; i < batch; i++)
    if (lengths[i] < 1 || lengths[i] > steps
        || (layout == 1 && i > 0 && lengths[i] > lengths[i - 1]))
      return BAD;
  g_free (self->lengths);
  *self = (Data){ type, layout, steps, batch, width, g_memdup2 (lengths, batch * sizeof (int)) };
  return 0;
}

static gboolean
is_uniform (const Data *data)
{
  for (gint i = 0; i < data->batch; i++)
    if (data->lengths[i] != data->steps)
      return FALSE;
  return TRUE;
}

EXPORT int
cudnnSetRNNDescriptor_v8 (void *descriptor, int algorithm, int mode, int bias, int directions,
                          int input_mode, int type, int compute, int math, int32_t inputs,
                          int32_t hidden, int32_t states, int32_t n_layers, void *dropout,
                          uint32_t flags)
{
  if (algorithm < 0 || algorithm > 3 || mode < 0 || mode > 3 || bias != 2 || directions < 0
      || directions > 1 || input_mode != 0 || compute != (type == 1) || inputs < 1 || hidden < 1
      || states < 1 || states > hidden || (states != hidden && mode != LSTM) || n_layers < 1
      || dropout == NULL || !*(gint *) dropout || flags > 1)
    return BAD;
  if ((fake_cudnn.rnn.refused >> algorithm) & 1)
    return NOT_SUPPORTED;
  if (algorithm != 0 && (type == 1 || states != hidden))
    return NOT_SUPPORTED;
  if (algorithm == 3 && hidden > 384)
    return NOT_SUPPORTED;
  *(Network *) descriptor = (Network){ algorithm, mode,   directions + 1, type,       math, inputs,
                                       hidden,    states, n_layers,       flags == 1, TRUE };
  return 0;
}

/* --- sizes and places --- */

static gint
gates_of (const Network *n)
{
  return n->mode == LSTM ? 4 : n->mode == GRU ? 3 : 1;
}

static gsize
size_of (gint type)
{
  return type == 0 ? 4 : type == 1 ? 8 : 2;
}

static gint64
parts_of (const Network *n)
{
  return (gint64) n->n_layers * n->n_directions;
}

static gint64
inputs_of (const Network *n, gint64 part)
{
  return part < n->n_directions ? n->inputs : (gint64) n->states * n->n_directions;
}

/* The elements of the matrices of a layer and direction. */
static gint64
matrices_of (const Network *n, gint64 part)
{
  const gint64 rows = (gint64) gates_of (n) * n->hidden;

  return rows * (inputs_of (n, part) + n->states)
         + (n->states != n->hidden ? (gint64) n->states * n->hidden : 0);
}

typedef struct
{
  gint64 w, r, projection, b, b_r; /* where they begin */
} Places;

static Places
places_of (const Network *n, gint64 part)
{
  const gint64 rows = (gint64) gates_of (n) * n->hidden;
  Places p = { .w = GAP, .b = 2 * GAP };

  for (gint64 i = 0; i < parts_of (n); i++)
    {
      p.b += matrices_of (n, i);
      if (i < part)
        p.w += matrices_of (n, i);
    }
  p.r = p.w + rows * inputs_of (n, part);
  p.projection = p.r + rows * n->states;
  p.b += 2 * rows * part;
  p.b_r = p.b + rows;
  return p;
}

static gint64
count_weights (const Network *n)
{
  return places_of (n, parts_of (n)).b;
}

/* What is kept of each row of each layer and direction, in float64. */
typedef struct
{
  gint64 act, products, extra, hid, out, dout, size;
} Kept;

static Kept
kept_of (const Network *n)
{
  const gint64 rows = (gint64) gates_of (n) * n->hidden;
  Kept k = { .products = rows, .extra = 2 * rows };

  k.hid = k.extra + n->hidden;
  k.out = k.hid + n->hidden;
  k.dout = k.out + n->states;
  k.size = k.dout + n->states;
  return k;
}

static gint64
total_of (const Data *x)
{
  gint64 total = 0;

  for (gint i = 0; i < x->batch; i++)
    total += x->lengths[i];
  return total;
}

static gsize
reserve_of (const Network *n, const Data *x)
{
  return (gsize) (parts_of (n) * total_of (x) * kept_of (n).size) * sizeof (double);
}

EXPORT int
cudnnGetRNNTempSpaceSizes (void *handle, void *rnn, int forward_mode, void *x, size_t *workspace,
                           size_t *reserve)
{
  const Network *n = rnn;
  const Data *data = x;

  if (handle == NULL || !n->is_set || data->width != n->inputs || data->type != n->type)
    return BAD;
  if (n->algorithm != 0 && !is_uniform (data))
    return NOT_SUPPORTED;
  *workspace = 1000 + (gsize) n->algorithm;
  if (forward_mode == 1)
    *reserve = reserve_of (n, data);
  return 0;
}

EXPORT int
cudnnGetRNNWeightSpaceSize (void *handle, void *rnn, size_t *n_bytes)
{
  const Network *n = rnn;

  if (handle == NULL || !n->is_set)
    return BAD;
  *n_bytes = (gsize) count_weights (n) * size_of (n->type);
  return 0;
}

static void
describe (void *descriptor, gint type, gint64 rows, gint64 columns)
{
  *(Tensor *) descriptor =
      (Tensor){ type, 3, { 1, rows, columns }, { rows * columns, columns, 1 } };
}

EXPORT int
cudnnGetRNNWeightParams (void *handle, void *rnn, int32_t part, size_t n_bytes, const void *weights,
                         int32_t number, void *m, void **m_at, void *b, void **b_at)
{
  const Network *n = rnn;
  const gint g = gates_of (n);
  char *base = (char *) weights;
  const gsize size = size_of (n->type);
  gint64 at, columns;
  Places p;

  if (handle == NULL || part < 0 || part >= parts_of (n)
      || n_bytes != (gsize) count_weights (n) * size)
    return BAD;
  p = places_of (n, part);
  *m_at = *b_at = NULL;
  if (number == 8 && n->mode == LSTM)
    {
      if (n->states == n->hidden)
        return 0;
      describe (m, n->type, n->states, n->hidden);
      *m_at = base + p.projection * size;
      return 0;
    }
  if (number < 0 || number >= 2 * g)
    return BAD;
  columns = number < g ? inputs_of (n, part) : n->states;
  at = (number < g ? p.w : p.r) + number % g * n->hidden * columns;
  describe (m, n->type, n->hidden, columns);
  *m_at = base + at * size;
  describe (b, n->type, n->hidden, 1);
  *b_at = base + ((number < g ? p.b : p.b_r) + number % g * n->hidden) * size;
  return 0;
}

/* --- numbers --- */

static double
load (gint type, gconstpointer data, gint64 i)
{
  union
  {
    guint32 bits;
    float value;
  } wide;

  switch (type)
    {
    case 0:
      return ((const float *) data)[i];
    case 1:
      return ((const double *) data)[i];
    case 2:
      return (double) ((const _Float16 *) data)[i];
    default:
      wide.bits = (guint32) ((const guint16 *) data)[i] << 16;
      return wide.value;
    }
}

static void
store (gint type, gpointer data, gint64 i, double value)
{
  union
  {
    guint32 bits;
    float value;
  } wide;

  switch (type)
    {
    case 0:
      ((float *) data)[i] = (float) value;
      break;
    case 1:
      ((double *) data)[i] = value;
      break;
    case 2:
      ((_Float16 *) data)[i] = (_Float16) value;
      break;
    default:
      wide.value = (float) value;
      wide.bits += 0x7fff + ((wide.bits >> 16) & 1);
      ((guint16 *) data)[i] = (guint16) (wide.bits >> 16);
    }
}

/* Returns n elements of the device, or zeros, as new numbers. */
static double *
read_all (const Pass *p, gconstpointer address, gint64 n)
{
  double *result = g_new0 (double, n);
  gconstpointer host =
      address != NULL ? fake_cuda_at (address, (gsize) n * size_of (p->n.type)) : NULL;

  if (address != NULL && host == NULL)
    g_error ("%" G_GINT64_FORMAT " elements at %p are not memory of the device", n, address);
  for (gint64 i = 0; host != NULL && i < n; i++)
    result[i] = load (p->n.type, host, i);
  return result;
}

static void
write_all (const Pass *p, gpointer address, const double *values, gint64 n)
{
  gpointer host = address != NULL ? fake_cuda_at (address, (gsize) n * size_of (p->n.type)) : NULL;

  if (address != NULL && host == NULL)
    g_error ("%" G_GINT64_FORMAT " elements at %p are not memory of the device", n, address);
  for (gint64 i = 0; host != NULL && i < n; i++)
    store (p->n.type, host, i, values[i]);
}

/* --- the passes --- */

typedef struct
{
  const Pass *p;
  Kept kept;
  double *x, *hx, *cx, *weights, *reserve;
  gint64 *first; /* the first row of each step */
  gint64 total;
} Room;

static void
room_init (Room *room, const Pass *p)
{
  const gint64 parts = parts_of (&p->n), batch = p->batch;

  room->p = p;
  room->kept = kept_of (&p->n);
  room->first = g_new (gint64, p->steps);
  room->total = 0;
  for (gint t = 0; t < p->steps; t++)
    {
      room->first[t] = room->total;
      room->total += p->counts[t];
    }
  room->x = read_all (p, p->x, p->x != NULL ? room->total * p->n.inputs : 0);
  room->hx = read_all (p, p->hx, parts * batch * p->n.states);
  room->cx = read_all (p, p->cx, parts * batch * p->n.hidden);
  room->weights = read_all (p, p->weights, p->weights != NULL ? count_weights (&p->n) : 0);
  if (p->reserve != NULL)
    room->reserve = fake_cuda_at (p->reserve, p->n_reserve);
  else
    room->reserve = g_new0 (double, parts * room->total * room->kept.size);
  /* workspaces have no contents before a call, nor behind it */
  if (p->n_workspace > 0)
    memset (fake_cuda_at (p->workspace, p->n_workspace), 0xff, p->n_workspace);
}

static void
room_clear (Room *room)
{
  if (room->p->reserve == NULL)
    g_free (room->reserve);
  g_free (room->x);
  g_free (room->hx);
  g_free (room->cx);
  g_free (room->weights);
  g_free (room->first);
}

static double *
kept_at (const Room *room, gint64 part, gint64 row)
{
  return room->reserve + (part * room->total + row) * room->kept.size;
}

/* Returns the row of the step before, in the order of the direction; -1: it is the first. */
static gint64
row_before (const Room *room, gint64 part, gint t, gint b)
{
  const Pass *p = room->p;

  if (part % p->n.n_directions == 0)
    return t > 0 ? room->first[t - 1] + b : -1;
  return t + 1 < p->steps && b < p->counts[t + 1] ? room->first[t + 1] + b : -1;
}

static const double *
state_before (const Room *room, gint64 part, gint t, gint b)
{
  const gint64 row = row_before (room, part, t, b);

  return row >= 0 ? kept_at (room, part, row) + room->kept.out
                  : room->hx + (part * room->p->batch + b) * room->p->n.states;
}

static const double *
cell_before (const Room *room, gint64 part, gint t, gint b)
{
  const gint64 row = row_before (room, part, t, b);

  return row >= 0 ? kept_at (room, part, row) + room->kept.extra
                  : room->cx + (part * room->p->batch + b) * room->p->n.hidden;
}

static void
get_input (const Room *room, gint64 part, gint64 row, double *in)
{
  const Network *n = &room->p->n;
  const gint64 layer = part / n->n_directions;

  if (layer == 0)
    memcpy (in, room->x + row * n->inputs, n->inputs * sizeof *in);
  for (gint d = 0; layer > 0 && d < n->n_directions; d++)
    memcpy (in + d * n->states,
            kept_at (room, (layer - 1) * n->n_directions + d, row) + room->kept.out,
            n->states * sizeof *in);
}

static double
dot (const double *a, const double *b, gint64 n)
{
  double sum = 0;

  for (gint64 i = 0; i < n; i++)
    sum += a[i] * b[i];
  return sum;
}

static double
sigmoid (double x)
{
  return 1 / (1 + exp (-x));
}

static void
forward_row (const Room *room, gint64 part, gint t, gint b)
{
  const Network *n = &room->p->n;
  const Places at = places_of (n, part);
  const gint64 width = inputs_of (n, part), row = room->first[t] + b, h = n->hidden;
  const double *w = room->weights, *before = state_before (room, part, t, b);
  const double *cell = cell_before (room, part, t, b);
  double *k = kept_at (room, part, row), *a = k + room->kept.act, *q = k + room->kept.products;
  double *extra = k + room->kept.extra, *hid = k + room->kept.hid, *out = k + room->kept.out;
  g_autofree double *in = g_new (double, width);

  get_input (room, part, row, in);
  for (gint64 i = 0; i < gates_of (n) * h; i++)
    {
      a[i] = dot (w + at.w + i * width, in, width) + w[at.b + i];
      q[i] = dot (w + at.r + i * n->states, before, n->states) + w[at.b_r + i];
    }
  for (gint64 i = 0; i < h; i++)
    switch (n->mode)
      {
      case LSTM:
        for (gint g = 0; g < 4; g++)
          a[g * h + i] =
              g == 2 ? tanh (a[g * h + i] + q[g * h + i]) : sigmoid (a[g * h + i] + q[g * h + i]);
        extra[i] = a[h + i] * cell[i] + a[i] * a[2 * h + i];
        hid[i] = a[3 * h + i] * tanh (extra[i]);
        break;
      case GRU:
        a[i] = sigmoid (a[i] + q[i]);
        a[h + i] = sigmoid (a[h + i] + q[h + i]);
        extra[i] = q[2 * h + i];
        a[2 * h + i] = tanh (a[2 * h + i] + a[i] * extra[i]);
        hid[i] = (1 - a[h + i]) * a[2 * h + i] + a[h + i] * before[i];
        break;
      default:
        hid[i] = n->mode == 1 ? tanh (a[i] + q[i]) : MAX (a[i] + q[i], 0);
      }
  for (gint64 i = 0; i < n->states; i++)
    out[i] = n->states == h ? hid[i] : dot (w + at.projection + i * h, hid, h);
}

/* The step number i of a direction, in its order or against it. */
static gint
step_of (const Pass *p, gint64 part, gint i, gboolean against)
{
  return (part % p->n.n_directions == 1) != against ? p->steps - 1 - i : i;
}

static void
run_forward (gpointer data)
{
  const Pass *p = data;
  const Network *n = &p->n;
  const gint64 parts = parts_of (n), top = parts - n->n_directions;
  const gint64 n_states = parts * p->batch * n->states, n_cells = parts * p->batch * n->hidden;
  g_autofree double *hy = g_new0 (double, n_states), *cy = g_new0 (double, n_cells), *y = NULL;
  Room room;

  fake_cuda_pass_time (fake_cudnn.rnn.us[n->algorithm]);
  room_init (&room, p);
  y = g_new0 (double, room.total * n->states * n->n_directions);
  for (gint64 part = 0; part < parts; part++)
    for (gint i = 0; i < p->steps; i++)
      {
        const gint t = step_of (p, part, i, FALSE);

        for (gint b = 0; b < p->counts[t]; b++)
          {
            const double *k;

            forward_row (&room, part, t, b);
            /* later steps of the direction overwrite this */
            k = kept_at (&room, part, room.first[t] + b);
            memcpy (hy + (part * p->batch + b) * n->states, k + room.kept.out,
                    n->states * sizeof *hy);
            memcpy (cy + (part * p->batch + b) * n->hidden, k + room.kept.extra,
                    n->hidden * sizeof *cy);
            if (part >= top)
              memcpy (y + (room.first[t] + b) * n->states * n->n_directions
                          + (part - top) * n->states,
                      k + room.kept.out, n->states * sizeof *y);
          }
      }
  write_all (p, p->y, y, room.total * n->states * n->n_directions);
  write_all (p, p->hy, hy, n_states);
  if (n->mode == LSTM)
    write_all (p, p->cy, cy, n_cells);
  room_clear (&room);
}

/* Replaces what is kept of the gates by their gradients. `dh` and `dc` are those of the row's states, and
 * then of the former ones; `din` gets those of the input added. */
static void
backward_row (const Room *room, gint64 part, gint t, gint b, double *dh, double *dc, double *din)
{
  const Network *n = &room->p->n;
  const Places at = places_of (n, part);
  const gint64 width = inputs_of (n, part), h = n->hidden, rows = gates_of (n) * h;
  const double *w = room->weights, *cell = cell_before (room, part, t, b);
  const double *before = state_before (room, part, t, b);
  double *k = kept_at (room, part, room->first[t] + b), *a = k + room->kept.act;
  double *q = k + room->kept.products, *extra = k + room->kept.extra;
  g_autofree double *dhid = g_new0 (double, h), *direct = g_new0 (double, n->states);

  memcpy (k + room->kept.dout, dh, n->states * sizeof *dh);
  for (gint64 i = 0; i < n->states; i++)
    for (gint64 j = 0; j < h; j++)
      if (n->states != h)
        dhid[j] += w[at.projection + i * h + j] * dh[i];
      else if (i == j)
        dhid[j] = dh[i];
  for (gint64 i = 0; i < h; i++)
    switch (n->mode)
      {
      case LSTM:
        {
          const double in = a[i], keep = a[h + i], value = a[2 * h + i], gate = a[3 * h + i];
          const double c = tanh (extra[i]), d = dc[i] + dhid[i] * gate * (1 - c * c);

          a[i] = q[i] = d * value * in * (1 - in);
          a[h + i] = q[h + i] = d * cell[i] * keep * (1 - keep);
          a[2 * h + i] = q[2 * h + i] = d * in * (1 - value * value);
          a[3 * h + i] = q[3 * h + i] = dhid[i] * c * gate * (1 - gate);
          dc[i] = d * keep;
          break;
        }
      case GRU:
        {
          const double reset = a[i], keep = a[h + i], value = a[2 * h + i];
          const double d = dhid[i] * (1 - keep) * (1 - value * value);

          direct[i] = dhid[i] * keep;
          a[h + i] = q[h + i] = dhid[i] * (before[i] - value) * keep * (1 - keep);
          a[i] = q[i] = d * extra[i] * reset * (1 - reset);
          a[2 * h + i] = d;
          q[2 * h + i] = d * reset;
          break;
        }
      default:
        {
          const double y = k[room->kept.hid + i];

          a[i] = q[i] = n->mode == 1 ? dhid[i] * (1 - y * y) : y > 0 ? dhid[i] : 0;
        }
      }
  memcpy (dh, direct, n->states * sizeof *dh);
  for (gint64 i = 0; i < rows; i++)
    {
      for (gint64 j = 0; j < n->states; j++)
        dh[j] += w[at.r + i * n->states + j] * q[i];
      for (gint64 j = 0; j < width; j++)
        din[j] += w[at.w + i * width + j] * a[i];
    }
}

static void
run_backward (gpointer data)
{
  const Pass *p = data;
  const Network *n = &p->n;
  const gint64 parts = parts_of (n), states = n->states, both = states * n->n_directions;
  double *dh, *dc, *upper;
  Room room;

  fake_cuda_pass_time (fake_cudnn.rnn.us[n->algorithm]);
  room_init (&room, p);
  dh = read_all (p, p->dhy, parts * p->batch * states);
  dc = read_all (p, p->dcy, parts * p->batch * n->hidden);
  upper = read_all (p, p->dy, room.total * both);
  for (gint64 layer = n->n_layers - 1; layer >= 0; layer--)
    {
      const gint64 width = inputs_of (n, layer * n->n_directions);
      double *lower = g_new0 (double, room.total *width);

      for (gint64 part = layer * n->n_directions; part < (layer + 1) * n->n_directions; part++)
        for (gint i = 0; i < p->steps; i++)
          {
            const gint t = step_of (p, part, i, TRUE);

            for (gint b = 0; b < p->counts[t]; b++)
              {
                const gint64 row = room.first[t] + b, place = part * p->batch + b;

                for (gint64 j = 0; j < states; j++)
                  dh[place * states + j] += upper[row * both + part % n->n_directions * states + j];
                backward_row (&room, part, t, b, dh + place * states, dc + place * n->hidden,
                              lower + row * width);
              }
          }
      g_free (upper);
      upper = lower;
    }
  write_all (p, p->dx, upper, room.total * n->inputs);
  write_all (p, p->dhx, dh, parts * p->batch * states);
  if (n->mode == LSTM)
    write_all (p, p->dcx, dc, parts * p->batch * n->hidden);
  g_free (upper);
  g_free (dh);
  g_free (dc);
  room_clear (&room);
}

static void
run_weights (gpointer data)
{
  const Pass *p = data;
  const Network *n = &p->n;
  const gint64 rows = gates_of (n) * n->hidden;
  double *dw;
  Room room;

  fake_cuda_pass_time (fake_cudnn.rnn.us[n->algorithm]);
  room_init (&room, p);
  dw = read_all (p, p->dweights, count_weights (n));
  for (gint64 part = 0; part < parts_of (n); part++)
    {
      const Places at = places_of (n, part);
      const gint64 width = inputs_of (n, part);
      g_autofree double *in = g_new (double, width);

      for (gint t = 0; t < p->steps; t++)
        for (gint b = 0; b < p->counts[t]; b++)
          {
            const double *k = kept_at (&room, part, room.first[t] + b);
            const double *before = state_before (&room, part, t, b);

            get_input (&room, part, room.first[t] + b, in);
            for (gint64 i = 0; i < rows; i++)
              {
                const double da = k[room.kept.act + i], dq = k[room.kept.products + i];

                for (gint64 j = 0; j < width; j++)
                  dw[at.w + i * width + j] += da * in[j];
                for (gint64 j = 0; j < n->states; j++)
                  dw[at.r + i * n->states + j] += dq * before[j];
                dw[at.b + i] += da;
                dw[at.b_r + i] += dq;
              }
            for (gint64 i = 0; n->states != n->hidden && i < n->states; i++)
              for (gint64 j = 0; j < n->hidden; j++)
                dw[at.projection + i * n->hidden + j] +=
                    k[room.kept.dout + i] * k[room.kept.hid + j];
          }
    }
  write_all (p, p->dweights, dw, count_weights (n));
  g_free (dw);
  room_clear (&room);
}

/* --- calls --- */

static gboolean
are_states (const Network *n, const Data *x, const Tensor *states, gint width)
{
  return states != NULL && states->type == n->type && states->n_dims == 3
         && states->shape[0] == parts_of (n) && states->shape[1] == x->batch
         && states->shape[2] == width && states->strides[2] == 1 && states->strides[1] == width
         && states->strides[0] == width * x->batch;
}

/* Checks what all passes have; returns a status, and the pass to be filled in. */
static gint
begin (void *handle, const Network *n, gboolean trains, const void *lengths, const Data *x,
       const Data *y, const Tensor *h, const Tensor *c, gsize n_weights, gsize n_workspace,
       void *workspace, gsize n_reserve, void *reserve, Pass **result)
{
  Pass *p;

  if (handle == NULL || !n->is_set || lengths != NULL || x->width != n->inputs
      || y->width != n->states * n->n_directions || y->steps != x->steps || y->batch != x->batch
      || x->type != n->type || y->type != n->type || x->layout != y->layout
      || memcmp (x->lengths, y->lengths, x->batch * sizeof (gint)) != 0
      || !are_states (n, x, h, n->states) || (c != NULL && !are_states (n, x, c, n->hidden))
      || n_weights != (gsize) count_weights (n) * size_of (n->type)
      || n_workspace != 1000 + (gsize) n->algorithm || workspace == NULL
      || n_reserve != (trains ? reserve_of (n, x) : 0) || (reserve != NULL) != trains)
    return BAD;
  if (n->is_padded != (x->layout == 0) || (x->layout == 0 && !is_uniform (x)))
    return BAD;
  p = g_new0 (Pass, 1);
  p->n = *n;
  p->steps = x->steps;
  p->batch = x->batch;
  p->counts = g_new0 (gint, x->steps);
  for (gint b = 0; b < x->batch; b++)
    for (gint t = 0; t < x->lengths[b]; t++)
      p->counts[t]++;
  p->trains = trains;
  p->workspace = workspace;
  p->n_workspace = n_workspace;
  p->reserve = reserve;
  p->n_reserve = n_reserve;
  fake_cudnn.rnn.algorithm = n->algorithm;
  fake_cudnn.rnn.math = n->math;
  fake_cudnn.rnn.layout = x->layout;
  fake_cudnn.rnn.n_layers = n->n_layers;
  *result = p;
  return 0;
}

static gint
enqueue (void (*run) (gpointer data), Pass *pass)
{
  static GPtrArray *all; /* reachable, so that nobody reports a leak */

  if (all == NULL)
    all = g_ptr_array_new ();
  g_ptr_array_add (all, pass);
  return fake_cuda_enqueue (fake_cudnn_stream, run, pass) == 0 ? 0 : EXECUTION;
}

EXPORT int
cudnnRNNForward (void *handle, void *rnn, int forward_mode, const int32_t *lengths, void *x_form,
                 const void *x, void *y_form, void *y, void *h_form, const void *hx, void *hy,
                 void *c_form, const void *cx, void *cy, size_t n_weights, const void *weights,
                 size_t n_workspace, void *workspace, size_t n_reserve, void *reserve)
{
  const Network *n = rnn;
  Pass *p = NULL;
  gint status;

  if ((fake_cudnn.rnn.refused_forward >> n->algorithm) & 1)
    return NOT_SUPPORTED;
  status = begin (handle, n, forward_mode == 1, lengths, x_form, y_form, h_form, c_form, n_weights,
                  n_workspace, workspace, n_reserve, reserve, &p);
  if (status != 0)
    return status;
  if (x == NULL || y == NULL || weights == NULL || (n->mode == LSTM) != (cy != NULL))
    return BAD;
  p->x = x;
  p->y = y;
  p->hx = hx;
  p->hy = hy;
  p->cx = cx;
  p->cy = cy;
  p->weights = weights;
  fake_cudnn.rnn.n_forward++;
  fake_cudnn.rnn.n_trained += forward_mode == 1;
  return enqueue (run_forward, p);
}

EXPORT int
cudnnRNNBackwardData_v8 (void *handle, void *rnn, const int32_t *lengths, void *y_form,
                         const void *y, const void *dy, void *x_form, void *dx, void *h_form,
                         const void *hx, const void *dhy, void *dhx, void *c_form, const void *cx,
                         const void *dcy, void *dcx, size_t n_weights, const void *weights,
                         size_t n_workspace, void *workspace, size_t n_reserve, void *reserve)
{
  const Network *n = rnn;
  Pass *p = NULL;
  gint status;

  if ((fake_cudnn.rnn.refused_backward >> n->algorithm) & 1)
    return NOT_SUPPORTED;
  status = begin (handle, n, TRUE, lengths, x_form, y_form, h_form, c_form, n_weights, n_workspace,
                  workspace, n_reserve, reserve, &p);
  if (status != 0)
    return status;
  if (y == NULL || dy == NULL || dx == NULL || weights == NULL)
    return BAD;
  p->hx = hx;
  p->cx = cx;
  p->dy = dy;
  p->dhy = dhy;
  p->dcy = dcy;
  p->dx = dx;
  p->dhx = dhx;
  p->dcx = dcx;
  p->weights = weights;
  fake_cudnn.rnn.n_backward++;
  return enqueue (run_backward, p);
}

EXPORT int
cudnnRNNBackwardWeights_v8 (void *handle, void *rnn, int add, const int32_t *lengths, void *x_form,
                            const void *x, void *h_form, const void *hx, void *y_form,
                            const void *y, size_t n_weights, void *dweights, size_t n_workspace,
                            void *workspace, size_t n_reserve, void *reserve)
{
  const Network *n = rnn;
  Pass *p = NULL;
  gint status = begin (handle, n, TRUE, lengths, x_form, y_form, h_form, NULL, n_weights,
                       n_workspace, workspace, n_reserve, reserve, &p);

  if (status != 0)
    return status;
  if (add != 0 || x == NULL || y == NULL || dweights == NULL)
    return BAD;
  p->x = x;
  p->hx = hx;
  p->dweights = dweights;
  fake_cudnn.rnn.n_weights++;
  return enqueue (run_weights, p);
}
