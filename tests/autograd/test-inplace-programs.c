/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Random programs of views, in-place operations, detached tensors, no_grad and leaves. An interpreter
 * that knows neither views nor in-place operations runs each of them a second time. Values, gradients and
 * second gradients must agree, or a GError must explain why there are none.
 *
 * The interpreter keeps each storage as one vector, computed by out-of-place operations. A tensor is a
 * list of positions in it. Tensors of one storage with different histories (a detached tensor and its
 * source) have different vectors: a write through one of them changes the values of the others, but not
 * their histories.
 *
 * The suite runs some thousand programs, always the same ones. GTORCH_FUZZ_RUNS=n runs more,
 * GTORCH_FUZZ_SEED=n starts with another seed. */

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gtorch-ops-private.h"
#include "gtorch/autograd/gtorch-autograd-private.h"
#include "gtorch/dispatch/gtorch-grad-mode.h"
#include "test-device.h"

#define MAX_TENSORS 24
#define MAX_LEAVES  8
#define MAX_VALUE   1e3

#define TIMES_NUMBER 0 /* index in the table of operations */

/* Tensors that share a storage and a history. */
typedef struct
{
  guint memory;
  GTorchImpl *vector; /* the contents of the whole storage */
} Group;

typedef struct
{
  GTorchImpl *impl;
  guint group;
  gint base; /* the base tensor of the view for autograd; the tensor itself if it is no view */
  GTorchImpl *places;
} Tensor;

typedef struct
{
  GTorchImpl *impl;
  GTorchImpl *leaf; /* the leaf of the interpreter, a vector */
} Leaf;

typedef struct
{
  GRand *rand;
  Tensor tensors[MAX_TENSORS];
  guint n_tensors;
  Group groups[2 * MAX_TENSORS];
  guint n_groups;
  guint n_memories;
  Leaf leaves[MAX_LEAVES];
  guint n_leaves;
  gboolean grad_mode;
  gboolean is_smooth; /* finite differences give the gradient */
  gboolean is_wild;   /* values have become too large to compare */
  gint moved_leaf;    /* the perturbation of an element of a leaf */
  gint64 moved_element;
  gdouble move;
  GString *text;
} Program;

static guint n_compared, n_refused, n_second, n_numeric;

/* --- the interpreter --- */

static gboolean
is_complex (const GTorchImpl *impl)
{
  return gtorch_dtype_kind (impl->dtype) == GTORCH_KIND_COMPLEX;
}

static GTorchImpl *
must (GTorchImpl *impl, GError *error)
{
  g_assert_no_error (error);
  g_assert_nonnull (impl);
  return impl;
}

/* Returns the positions of its real numbers in the storage. */
static GTorchImpl *
places_of (const GTorchImpl *impl)
{
  gint64 width = is_complex (impl) ? 2 : 1, n = impl->numel * width, i, at, rest;
  GTorchImpl *places = gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_INT64, &n, 1, NULL);
  gint64 *data = gtorch_impl_data (places);
  guint d;

  for (i = 0; i < impl->numel; i++)
    {
      for (d = impl->n_dims, at = impl->offset, rest = i; d-- > 0; rest /= impl->shape[d])
        at += rest % impl->shape[d] * impl->strides[d];
      data[i * width] = at * width;
      if (width == 2)
        data[i * 2 + 1] = at * 2 + 1;
    }
  return places;
}

static GTorchImpl *
flat (GTorchImpl *impl)
{
  GError *error = NULL;
  const gint64 all = -1;
  g_autoptr (GTorchImpl) plain = must (gtorch_op_contiguous (impl, &error), error);
  g_autoptr (GTorchImpl) reals = is_complex (impl)
                                     ? must (gtorch_op_view_as_real (plain, &error), error)
                                     : gtorch_impl_ref (plain);

  return must (gtorch_op_reshape (reals, &all, 1, &error), error);
}

/* Returns the values of a tensor, with its history in the interpreter. */
static GTorchImpl *
read_tensor (Program *self, guint t)
{
  Tensor *tensor = &self->tensors[t];
  GError *error = NULL;
  gint64 shape[GTORCH_MAX_DIMS + 1];
  guint n = tensor->impl->n_dims;
  g_autoptr (GTorchImpl) row =
      must (gtorch_op_index_select (self->groups[tensor->group].vector, 0, tensor->places, &error),
            error);
  g_autoptr (GTorchImpl) shaped = NULL;

  memcpy (shape, tensor->impl->shape, n * sizeof (gint64));
  if (is_complex (tensor->impl))
    shape[n++] = 2;
  shaped = must (gtorch_op_reshape (row, shape, n, &error), error);
  return is_complex (tensor->impl) ? must (gtorch_op_view_as_complex (shaped, &error), error)
                                   : g_steal_pointer (&shaped);
}

static guint
new_group (Program *self, guint memory, GTorchImpl *vector)
{
  self->groups[self->n_groups] = (Group){ memory, vector };
  return self->n_groups++;
}

static void
set_vector (Group *group, GTorchImpl *vector)
{
  gtorch_impl_unref (group->vector);
  group->vector = vector;
}

/* Returns other values, through which the gradient flows as through `former'. Consumes `values`. */
static GTorchImpl *
with_history (GTorchImpl *values, GTorchImpl *former)
{
  GTorchEdge edge = { NULL };

  if (gtorch_impl_requires_grad (former))
    {
      edge.node = former->autograd->grad_fn;
      edge.leaf = edge.node == NULL ? former : NULL;
      edge.index = former->autograd->index;
    }
  return gtorch_edge_attach (&edge, values);
}

/* Writes values to the positions of tensor t; with `recorded', their history becomes that of its group. */
static void
write_tensor (Program *self, guint t, GTorchImpl *values, gboolean recorded)
{
  Tensor *tensor = &self->tensors[t];
  guint own = self->tensors[tensor->base].group, g;
  gboolean before = gtorch_set_grad_enabled (TRUE);
  g_autoptr (GTorchImpl) row = flat (values);
  g_autoptr (GTorchImpl) plain = gtorch_impl_alias (row);
  GError *error = NULL;

  for (g = 0; g < self->n_groups; g++)
    {
      Group *group = &self->groups[g];
      g_autoptr (GTorchImpl) former = NULL;

      if (group->memory != self->groups[own].memory)
        continue;
      if (recorded && g == own)
        {
          set_vector (group,
                      must (gtorch_op_index_copy (group->vector, 0, tensor->places, row, &error),
                            error));
          continue;
        }
      former = gtorch_impl_alias (group->vector);
      set_vector (group, with_history (must (gtorch_op_index_copy (former, 0, tensor->places, plain,
                                                                   &error),
                                             error),
                                       group->vector));
    }
  gtorch_set_grad_enabled (before);
  /* all views of the base get the new history */
  for (g = 0; recorded && g < self->n_tensors; g++)
    if (self->tensors[g].base == tensor->base && !self->tensors[g].impl->is_silent_view)
      self->tensors[g].group = own;
}

/* --- steps --- */

static guint
below (Program *self, guint n)
{
  return (guint) g_rand_int_range (self->rand, 0, (gint32) n);
}

static void G_GNUC_PRINTF (2, 3) note (Program *self, const gchar *format, ...)
{
  va_list args;

  va_start (args, format);
  g_string_append_vprintf (self->text, format, args);
  va_end (args);
  g_string_append_c (self->text, '\n');
}

static Tensor *
add_tensor (Program *self, GTorchImpl *impl, gint base)
{
  Tensor *tensor = &self->tensors[self->n_tensors];

  tensor->impl = impl;
  tensor->base = base >= 0 ? base : (gint) self->n_tensors;
  tensor->places = places_of (impl);
  self->n_tensors++;
  return tensor;
}

/* The tensor has its own storage, and these values in the interpreter. */
static void
add_result (Program *self, GTorchImpl *impl, GTorchImpl *values)
{
  Tensor *tensor = add_tensor (self, impl, -1);
  GTorchImpl *row = flat (values);

  g_assert_true (impl->is_contiguous && impl->offset == 0);
  tensor->group = new_group (self, self->n_memories++, row);
}

static void
check_size (Program *self, const GTorchImpl *impl)
{
  g_autoptr (GTorchImpl) alias = gtorch_impl_alias ((GTorchImpl *) impl);
  g_autoptr (GTorchImpl) row = flat (alias);
  gint64 i;

  for (i = 0; i < row->numel; i++)
    if (!(fabs (((gdouble *) gtorch_impl_data (row))[i]) < MAX_VALUE))
      self->is_wild = TRUE;
}

static void
make_leaf (Program *self, guint t)
{
  Tensor *tensor = &self->tensors[t];
  g_autoptr (GTorchImpl) values = NULL;
  g_autoptr (GTorchImpl) plain = NULL;
  gboolean before;
  GTorchImpl *leaf, *whole;
  GError *error = NULL;

  if (self->n_leaves == MAX_LEAVES || gtorch_impl_requires_grad (tensor->impl)
      || gtorch_impl_overlaps_itself (tensor->impl))
    return;
  note (self, "t%u.requires_grad_()", t);
  before = gtorch_set_grad_enabled (FALSE);
  values = read_tensor (self, t);
  plain = flat (values);
  leaf = must (gtorch_op_clone (plain, &error), error);
  gtorch_set_grad_enabled (TRUE);
  gtorch_autograd_ensure (leaf)->requires_grad = TRUE;
  values = (gtorch_impl_unref (values), gtorch_impl_alias (self->groups[tensor->group].vector));
  whole = must (gtorch_op_index_copy (values, 0, tensor->places, leaf, &error), error);
  gtorch_set_grad_enabled (before);
  tensor->group = new_group (self, self->groups[tensor->group].memory, whole);
  gtorch_autograd_ensure (tensor->impl)->requires_grad = TRUE;
  self->leaves[self->n_leaves++] = (Leaf){ gtorch_impl_ref (tensor->impl), leaf };
}

static GTorchImpl *
random_view (Program *self, GTorchImpl *impl, GError **error)
{
  guint kind = below (self, 14), n = impl->n_dims, dim = n > 0 ? below (self, n) : 0;
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];

  switch (kind)
    {
    case 0:
    case 1:
      return n == 0 ? NULL
                    : gtorch_op_select (impl, dim, below (self, (guint) impl->shape[dim]), error);
    case 2:
    case 3:
      return n == 0 ? NULL : gtorch_op_slice (impl, dim, below (self, 2), 3, 1, error);
    case 4:
      return n == 0 ? NULL : gtorch_op_slice (impl, dim, 0, G_MAXINT64, 2, error);
    case 5:
    case 6:
      return n < 2 ? NULL : gtorch_op_transpose (impl, 0, 1, error);
    case 7:
      memcpy (shape + 1, impl->shape, n * sizeof (gint64));
      shape[0] = 2;
      return n > 2 ? NULL : gtorch_op_expand (impl, shape, n + 1, error);
    case 8:
      return gtorch_op_view_as_is (impl, error);
    case 9:
      shape[0] = -1;
      return impl->is_contiguous ? gtorch_op_view (impl, shape, 1, error) : NULL;
    case 10: /* overlapping windows, or columns */
      shape[0] = 2;
      shape[1] = 2;
      strides[0] = 1 + below (self, 2);
      strides[1] = 1 + below (self, 2);
      return gtorch_op_as_strided (impl, shape, 2, strides, 2, below (self, 2), NULL);
    case 11:
      return n < 2 ? NULL : gtorch_op_diagonal (impl, 0, 0, 1, error);
    case 12:
      if (is_complex (impl))
        return below (self, 2) ? gtorch_op_view_as_real (impl, error)
                               : gtorch_op_imag (impl, error);
      return gtorch_op_view_as_complex (impl, NULL);
    default:
      return n == 0 || impl->shape[dim] < 2 ? NULL : gtorch_op_unfold (impl, dim, 2, 1, error);
    }
}

/* as_strided may exceed the elements of its tensor; then it has no gradient. */
static gboolean
is_within (const GTorchImpl *view, const GTorchImpl *impl)
{
  g_autoptr (GTorchImpl) a = places_of (view);
  g_autoptr (GTorchImpl) b = places_of (impl);
  gint64 i, j;

  for (i = 0; i < a->numel; i++)
    {
      for (j = 0; j < b->numel; j++)
        if (((gint64 *) gtorch_impl_data (a))[i] == ((gint64 *) gtorch_impl_data (b))[j])
          break;
      if (j == b->numel)
        return FALSE;
    }
  return TRUE;
}

static void
step_view (Program *self)
{
  guint t = below (self, self->n_tensors);
  GTorchImpl *impl = self->tensors[t].impl;
  GTorchImpl *view;
  Tensor *tensor;
  GError *error = NULL;
  gboolean silent;

  view = random_view (self, impl, &error);
  g_assert_no_error (error);
  if (view == NULL)
    return;
  if (view->numel == 0 || !is_within (view, impl))
    {
      gtorch_impl_unref (view);
      return;
    }
  g_assert_true (view->storage == impl->storage);
  note (self, "t%u = view of t%u: shape %s, strides %s, offset %d%s", self->n_tensors, t,
        gtorch_impl_shape_str (view), gtorch_shape_str (view->strides, view->n_dims),
        (gint) view->offset, is_complex (view) ? ", complex" : "");
  silent = !self->grad_mode || impl->is_silent_view;
  g_assert_cmpint (view->is_silent_view, ==, silent);
  tensor = add_tensor (self, view, silent ? -1 : self->tensors[t].base);
  tensor->group = self->tensors[t].group;
  if (!silent)
    return;
  /* it is cut off, except for what it was a view of before */
  if (!self->grad_mode || !gtorch_impl_requires_grad (impl))
    tensor->group = new_group (self, self->groups[tensor->group].memory,
                               gtorch_impl_alias (self->groups[tensor->group].vector));
}

static void
step_detach (Program *self)
{
  guint t = below (self, self->n_tensors);
  Tensor *tensor;

  note (self, "t%u = t%u.detach()", self->n_tensors, t);
  self->is_smooth = FALSE;
  tensor = add_tensor (self, gtorch_impl_alias (self->tensors[t].impl), -1);
  tensor->group = new_group (self, self->groups[self->tensors[t].group].memory,
                             gtorch_impl_alias (self->groups[self->tensors[t].group].vector));
}

typedef struct
{
  guint16 op;
  guint8 n; /* the count of tensors that have the shape of the first operand; numbers follow them */
  guint8 n_numbers;
  gboolean for_complex;
  gboolean is_rough;
  GTorchAttr attr;
} Operation;

static const Operation operations[] = {
  [TIMES_NUMBER] = { GTORCH_OP_MUL, 1, 1, TRUE, FALSE, { .d = 0 } },
  { GTORCH_OP_ADD, 2, 0, TRUE, FALSE, { .d = 2 } },
  { GTORCH_OP_ADD, 1, 1, TRUE, FALSE, { .d = 1 } },
  { GTORCH_OP_SUB, 2, 0, TRUE, FALSE, { .d = 1 } },
  { GTORCH_OP_MUL, 2, 0, TRUE, FALSE, { .d = 0 } },
  { GTORCH_OP_DIV, 2, 0, FALSE, FALSE, { .d = 0 } },
  { GTORCH_OP_ATAN2, 2, 0, FALSE, FALSE, { .d = 0 } },
  { GTORCH_OP_HYPOT, 2, 0, FALSE, FALSE, { .d = 0 } },
  { GTORCH_OP_POW, 1, 1, FALSE, FALSE, { .d = 0 } },
  { GTORCH_OP_COPY, 2, 0, TRUE, FALSE, { .i = 0 } },
  { GTORCH_OP_ADDCMUL, 3, 0, TRUE, FALSE, { .d = 0.5 } },
  { GTORCH_OP_ADDCDIV, 3, 0, FALSE, FALSE, { .d = 0.5 } },
  { GTORCH_OP_EXP, 1, 0, FALSE, FALSE, { .d = 0 } },
  { GTORCH_OP_TANH, 1, 0, FALSE, FALSE, { .d = 0 } },
  { GTORCH_OP_SIGMOID, 1, 0, FALSE, FALSE, { .d = 0 } },
  { GTORCH_OP_SQRT, 1, 0, FALSE, FALSE, { .d = 0 } },
  { GTORCH_OP_SIN, 1, 0, FALSE, FALSE, { .d = 0 } },
  { GTORCH_OP_NEG, 1, 0, TRUE, FALSE, { .d = 0 } },
  { GTORCH_OP_RECIPROCAL, 1, 0, FALSE, FALSE, { .d = 0 } },
  { GTORCH_OP_ABS, 1, 0, FALSE, TRUE, { .d = 0 } },
  { GTORCH_OP_FILL, 1, 0, TRUE, FALSE, { .d = 0.75 } },
  { GTORCH_OP_ZERO, 1, 0, TRUE, FALSE, { .d = 0 } },
};

/* Returns a tensor of this shape and dtype, often one of the same storage. */
static guint
find_operand (Program *self, guint t)
{
  const GTorchImpl *impl = self->tensors[t].impl;
  guint start = below (self, self->n_tensors), i;

  for (i = 0; i < self->n_tensors; i++)
    {
      guint k = (start + i) % self->n_tensors;

      if (gtorch_impl_same_shape (self->tensors[k].impl, impl)
          && self->tensors[k].impl->dtype == impl->dtype)
        return k;
    }
  return t;
}

/* Returns TRUE if this in-place operation may be refused. */
static gboolean
may_fail (Program *self, GTorchImpl *const *inputs, guint n, guint t)
{
  const GTorchImpl *base = self->tensors[self->tensors[t].base].impl;
  guint i;

  for (i = 1; i < n; i++)
    if (inputs[i]->storage == inputs[0]->storage
        && !gtorch_impl_is_same_place (inputs[0], inputs[i]))
      return TRUE;
  return gtorch_impl_overlaps_itself (inputs[0]) || inputs[0]->is_silent_view
         || base->autograd == NULL || base->autograd->grad_fn == NULL;
}

static void
compute (Program *self, const Operation *operation, guint t, gboolean in_place)
{
  const GTorchOpClass *op = &gtorch_ops[operation->op];
  g_autoptr (GTorchImpl) number = gtorch_impl_new_number (below (self, 2) ? 2 : 0.5);
  guint places[3] = { t }, i;
  guint n = operation->n + operation->n_numbers;
  GTorchImpl *inputs[4], *copies[4], *output = NULL, *expected = NULL;
  g_autoptr (GError) error = NULL;
  gboolean recorded, flows;

  if (is_complex (self->tensors[t].impl) && !operation->for_complex)
    return;
  inputs[0] = self->tensors[t].impl;
  for (i = 1; i < operation->n; i++)
    {
      places[i] = find_operand (self, t);
      inputs[i] = self->tensors[places[i]].impl;
    }
  if (operation->n_numbers > 0)
    inputs[operation->n] = number;
  note (self, "%s%u%s %s (%u, %u, %u)%s", in_place ? "t" : "new t", in_place ? t : self->n_tensors,
        in_place ? "." : " =", op->name, t, places[1], places[2], in_place ? " in place" : "");

  for (i = 0; i < n; i++)
    copies[i] = i < operation->n ? read_tensor (self, places[i]) : gtorch_impl_ref (number);
  if (!in_place && (operation->op == GTORCH_OP_FILL || operation->op == GTORCH_OP_ZERO))
    goto done;
  flows = gtorch_impl_requires_grad (inputs[0]);
  recorded = gtorch_autograd_wanted (inputs, n);
  if (in_place)
    {
      gboolean allowed = may_fail (self, inputs, n, t);

      if (gtorch_op_run_in_place (op, inputs, n, &operation->attr, &error))
        {
          const GTorchImpl *base = self->tensors[self->tensors[t].base].impl;

          /* a leaf cannot be bypassed */
          g_assert_false (recorded && flows
                          && (base->autograd == NULL || base->autograd->grad_fn == NULL));
        }
      else if (allowed)
        {
          note (self, "  refused: %s", error->message);
          goto done;
        }
      else
        g_assert_no_error (error);
    }
  else if (!gtorch_op_run (op, inputs, n, &operation->attr, &output, &error))
    g_assert_no_error (error);
  if (!gtorch_op_run (op, copies, n, &operation->attr, &expected, &error))
    g_assert_no_error (error);
  if (operation->is_rough)
    self->is_smooth = FALSE;
  check_size (self, expected);
  if (in_place)
    write_tensor (self, t, expected, recorded);
  else
    {
      if (!output->is_contiguous)
        {
          GTorchImpl *plain = gtorch_op_contiguous (output, &error);

          gtorch_impl_unref (output);
          output = plain;
        }
      add_result (self, output, expected);
    }

done:
  g_clear_pointer (&expected, gtorch_impl_unref);
  gtorch_impl_clear (copies, n);
}

static void
step_new (Program *self)
{
  gint64 shape[3];
  guint n = below (self, 4) == 0 ? 3 : 2, i;
  gboolean is_leaf = below (self, 4) > 0;
  g_autoptr (GTorchImpl) row = NULL;
  GTorchImpl *impl;
  gint64 k;

  for (i = 0; i < n; i++)
    shape[i] = 1 + below (self, 3);
  impl = gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT64, shape, n, NULL);
  for (k = 0; k < impl->numel; k++)
    ((gdouble *) gtorch_impl_data (impl))[k] = g_rand_double_range (self->rand, 0.5, 1.5);
  if (is_leaf && self->moved_leaf == (gint) self->n_leaves && self->moved_element < impl->numel)
    ((gdouble *) gtorch_impl_data (impl))[self->moved_element] += self->move;
  note (self, "t%u = new of shape %s", self->n_tensors, gtorch_impl_shape_str (impl));
  row = gtorch_op_clone (impl, NULL);
  g_clear_pointer (&row->autograd, gtorch_autograd_destroy);
  add_result (self, impl, row);
  if (is_leaf)
    make_leaf (self, self->n_tensors - 1);
  if (is_leaf && below (self, 4) > 0)
    compute (self, &operations[TIMES_NUMBER], self->n_tensors - 1, FALSE);
}

static void
step_compute (Program *self, gboolean in_place)
{
  compute (self, &operations[below (self, G_N_ELEMENTS (operations))],
           below (self, self->n_tensors), in_place);
}

static void
step (Program *self)
{
  guint kind = below (self, 20);

  if (self->n_tensors >= MAX_TENSORS - 1)
    kind = 19;
  if (kind < 6)
    step_view (self);
  else if (kind < 8)
    step_compute (self, FALSE);
  else if (kind == 8)
    step_detach (self);
  else if (kind == 9)
    step_new (self);
  else if (kind == 10)
    {
      self->grad_mode = !self->grad_mode;
      self->is_smooth = FALSE;
      gtorch_set_grad_enabled (self->grad_mode);
      note (self, "grad mode %s", self->grad_mode ? "on" : "off");
    }
  else if (kind == 11)
    {
      self->is_smooth = FALSE;
      make_leaf (self, below (self, self->n_tensors));
    }
  else
    step_compute (self, TRUE);
  if (!self->grad_mode && below (self, 3) == 0)
    {
      self->grad_mode = TRUE;
      gtorch_set_grad_enabled (TRUE);
      note (self, "grad mode on");
    }
}

static void
run_steps (Program *self, guint32 seed)
{
  guint n;

  self->rand = g_rand_new_with_seed (seed);
  self->grad_mode = TRUE;
  self->is_smooth = TRUE;
  self->text = g_string_new (NULL);
  step_new (self);
  if (below (self, 2))
    step_new (self);
  for (n = 4 + below (self, 12); n > 0 && !self->is_wild; n--)
    step (self);
  gtorch_set_grad_enabled (TRUE);
}

static void
program_clear (Program *self)
{
  guint i;

  for (i = 0; i < self->n_tensors; i++)
    {
      /* a view that was a leaf may have a history that leads to it now: docs/autograd.md */
      g_clear_pointer (&self->tensors[i].impl->autograd, gtorch_autograd_destroy);
      gtorch_impl_unref (self->tensors[i].impl);
      gtorch_impl_unref (self->tensors[i].places);
    }
  for (i = 0; i < self->n_groups; i++)
    gtorch_impl_unref (self->groups[i].vector);
  for (i = 0; i < self->n_leaves; i++)
    {
      gtorch_impl_unref (self->leaves[i].impl);
      gtorch_impl_unref (self->leaves[i].leaf);
    }
  g_string_free (self->text, TRUE);
  g_rand_free (self->rand);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Program, program_clear)

/* --- comparing --- */

static GTorchImpl *
weights_of (const GTorchImpl *like)
{
  GTorchImpl *impl =
      gtorch_impl_new (gtorch_device_cpu (), like->dtype, like->shape, like->n_dims, NULL);
  gint64 n = impl->numel * (is_complex (impl) ? 2 : 1), i;

  for (i = 0; i < n; i++)
    ((gdouble *) gtorch_impl_data (impl))[i] = cos ((gdouble) i + 1);
  return impl;
}

static gdouble
number_at (GTorchImpl *row, gint64 i)
{
  return row != NULL ? ((gdouble *) gtorch_impl_data (row))[i] : 0;
}

static void
compare (Program *self, guint32 seed, const gchar *what, guint k, GTorchImpl *got,
         GTorchImpl *expected, gdouble tolerance)
{
  g_autoptr (GTorchImpl) a_plain = got != NULL ? gtorch_impl_alias (got) : NULL;
  g_autoptr (GTorchImpl) b_plain = expected != NULL ? gtorch_impl_alias (expected) : NULL;
  g_autoptr (GTorchImpl) a = got != NULL ? flat (a_plain) : NULL;
  g_autoptr (GTorchImpl) b = expected != NULL ? flat (b_plain) : NULL;
  gint64 n = a != NULL ? a->numel : b != NULL ? b->numel : 0, i;

  for (i = 0; i < n; i++)
    {
      gdouble x = number_at (a, i), y = number_at (b, i);

      if (x == y || !(fabs (y) < 1e6) || fabs (x - y) <= tolerance * MAX (1, fabs (y)))
        continue;
      g_test_message ("program %u: the %s of number %u is %.17g at %" G_GINT64_FORMAT
                      ", expected %.17g\n%s",
                      seed, what, k, x, i, y, self->text->str);
      g_test_fail ();
      return;
    }
}

/* Adds to the grads of leaves. Returns FALSE if a tensor that was changed in place prevents it. */
static gboolean
go_back (Program *self, guint32 seed, GPtrArray *roots, gboolean again)
{
  g_autoptr (GPtrArray) used = g_ptr_array_new ();
  g_autoptr (GPtrArray) seeds = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GError) error = NULL;
  GTorchBackward backward = { .create_graph = again };
  guint i;

  for (i = 0; i < roots->len; i++)
    if (roots->pdata[i] != NULL && gtorch_impl_requires_grad (roots->pdata[i]))
      {
        g_ptr_array_add (used, roots->pdata[i]);
        g_ptr_array_add (seeds, weights_of (roots->pdata[i]));
      }
  if (used->len == 0)
    return TRUE;
  backward.roots = (GTorchImpl **) used->pdata;
  backward.grads = (GTorchImpl **) seeds->pdata;
  backward.n_roots = used->len;
  if (gtorch_engine_run (&backward, &error))
    return TRUE;
  if (error->code != GTORCH_ERROR_AUTOGRAD
      || strstr (error->message, "was changed in place since") == NULL)
    {
      g_test_message ("program %u: %s\n%s", seed, error->message, self->text->str);
      g_test_fail ();
    }
  return FALSE;
}

static void
impl_unref_or_null (gpointer impl)
{
  if (impl != NULL)
    gtorch_impl_unref (impl);
}

/* Takes the grads of the leaves of one side. */
static GPtrArray *
take_grads (Program *self, gboolean reference)
{
  GPtrArray *grads = g_ptr_array_new_with_free_func (impl_unref_or_null);
  guint i;

  for (i = 0; i < self->n_leaves; i++)
    {
      GTorchImpl *leaf = reference ? self->leaves[i].leaf : self->leaves[i].impl;

      g_ptr_array_add (grads, g_steal_pointer (&leaf->autograd->grad));
    }
  return grads;
}

static void
compare_grads (Program *self, guint32 seed, const gchar *what, GPtrArray *got, GPtrArray *expected)
{
  guint i;

  for (i = 0; i < got->len; i++)
    compare (self, seed, what, i, got->pdata[i], expected->pdata[i], 1e-9);
}

static gdouble
weighted_values (Program *self)
{
  gdouble total = 0;
  guint t;
  gint64 i;

  for (t = 0; t < self->n_tensors; t++)
    {
      g_autoptr (GTorchImpl) plain = gtorch_impl_alias (self->tensors[t].impl);
      g_autoptr (GTorchImpl) row = flat (plain);

      for (i = 0; i < row->numel && gtorch_impl_requires_grad (self->tensors[t].impl); i++)
        total += number_at (row, i) * cos ((gdouble) i + 1);
    }
  return total;
}

/* Computes the gradients of the first leaf by finite differences. */
static void
compare_differences (Program *self, guint32 seed, GPtrArray *grads)
{
  const gdouble h = 1e-6;
  g_autoptr (GTorchImpl) alias = NULL;
  g_autoptr (GTorchImpl) row = NULL;
  gint64 i, n = self->leaves[0].leaf->numel;

  if (grads->pdata[0] != NULL)
    {
      alias = gtorch_impl_alias (grads->pdata[0]);
      row = flat (alias);
    }
  for (i = 0; i < n; i++)
    {
      g_auto (Program) more = { .moved_leaf = 0, .moved_element = i, .move = h };
      g_auto (Program) less = { .moved_leaf = 0, .moved_element = i, .move = -h };
      gdouble difference;

      run_steps (&more, seed);
      run_steps (&less, seed);
      if (more.n_tensors != self->n_tensors || less.n_tensors != self->n_tensors)
        return; /* one of them has become too large */
      difference = (weighted_values (&more) - weighted_values (&less)) / (2 * h);
      if (fabs (difference) > 1e3 || !isfinite (number_at (row, i))
          || fabs (difference - number_at (row, i)) < 1e-4 * MAX (1, fabs (difference)))
        continue;
      g_test_message ("program %u: the gradient is %.10g at %" G_GINT64_FORMAT
                      ", differences give %.10g\n%s",
                      seed, number_at (row, i), i, difference, self->text->str);
      g_test_fail ();
      return;
    }
  n_numeric++;
}

static void
run_program (guint32 seed)
{
  g_auto (Program) self = { .moved_leaf = -1 };
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  g_autoptr (GPtrArray) copies =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GPtrArray) grads = NULL;
  g_autoptr (GPtrArray) expected = NULL;
  g_autoptr (GPtrArray) seconds = NULL;
  g_autoptr (GPtrArray) expected_seconds = NULL;
  guint t;

  run_steps (&self, seed);
  if (self.is_wild)
    return;
  for (t = 0; t < self.n_tensors; t++)
    {
      GTorchImpl *copy = read_tensor (&self, t);

      g_ptr_array_add (copies, copy);
      compare (&self, seed, "value", t, self.tensors[t].impl, copy, 1e-12);
      g_ptr_array_add (roots, self.tensors[t].impl);
      if (gtorch_impl_requires_grad (self.tensors[t].impl) != gtorch_impl_requires_grad (copy))
        {
          g_test_message ("program %u: requires_grad of t%u is %d\n%s", seed, t,
                          gtorch_impl_requires_grad (self.tensors[t].impl), self.text->str);
          g_test_fail ();
        }
    }
  if (!go_back (&self, seed, roots, TRUE))
    {
      n_refused++;
      g_ptr_array_unref (take_grads (&self, FALSE));
      return;
    }
  grads = take_grads (&self, FALSE);
  g_assert_true (go_back (&self, seed, copies, TRUE));
  expected = take_grads (&self, TRUE);
  compare_grads (&self, seed, "gradient", grads, expected);
  n_compared++;
  if (self.is_smooth && self.n_leaves > 0 && seed % 4 == 0)
    compare_differences (&self, seed, grads);
  if (!go_back (&self, seed, grads, FALSE))
    {
      g_ptr_array_unref (take_grads (&self, FALSE));
      return;
    }
  seconds = take_grads (&self, FALSE);
  g_assert_true (go_back (&self, seed, expected, FALSE));
  expected_seconds = take_grads (&self, TRUE);
  compare_grads (&self, seed, "second gradient", seconds, expected_seconds);
  n_second++;
}

static void
programs_agree_with_their_functional_form (void)
{
  const gchar *runs = g_getenv ("GTORCH_FUZZ_RUNS"), *first = g_getenv ("GTORCH_FUZZ_SEED");
  guint32 seed = first != NULL ? (guint32) g_ascii_strtoull (first, NULL, 10) : 0;
  guint64 n = runs != NULL ? g_ascii_strtoull (runs, NULL, 10) : 4000;

  for (; n-- > 0; seed++)
    run_program (seed);
  g_test_message ("%u programs compared, %u twice, %u with differences; %u refused", n_compared,
                  n_second, n_numeric, n_refused);
  if (runs == NULL)
    g_assert_cmpuint (n_compared, >, n_refused);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/inplace-programs/agree_with_their_functional_form",
                   programs_agree_with_their_functional_form);
  return g_test_run ();
}
