/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Exchanges between ranks that can be differentiated, for layers of which each rank has a part, after
 * Shoeybi et al., Megatron-LM, 2019. A tensor is either the same on all ranks, or divided along its last
 * dimension. */

#include "config.h"

#include "distributed/gtorch-parallel.h"
#include "distributed/gtorch-engine-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "autograd/gtorch-function.h"
#include "base/gtorch-error.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-tensor-private.h"

typedef enum
{
  NOTHING,
  SUM,    /* of all ranks */
  GATHER, /* the parts of all ranks, along the last dimension */
  SPLIT,  /* the part of this rank */
} Exchange;

typedef struct
{
  GTorchFunction parent_instance;
  GTorchProcessGroup *group;
  const gchar *name;
  Exchange forward, backward;
  gint64 length; /* of the whole along the last dimension, for GATHER and SPLIT */
} GTorchParallelFunction;

typedef GTorchFunctionClass GTorchParallelFunctionClass;

static GType gtorch_parallel_function_get_type (void);

G_DEFINE_TYPE (GTorchParallelFunction, gtorch_parallel_function, GTORCH_TYPE_FUNCTION)

static GTorchTensor *
sum (GTorchProcessGroup *group, GTorchTensor *tensor, GError **error)
{
  g_autoptr (GTorchTensor) whole = gtorch_tensor_contiguous (tensor, error);
  g_autoptr (GTorchTensor) copy = whole == NULL ? NULL : gtorch_tensor_clone (whole, error);
  g_autoptr (GTorchWork) work =
      copy == NULL ? NULL
                   : gtorch_process_group_all_reduce (group, copy, GTORCH_REDUCE_OP_SUM, error);

  return work == NULL || !gtorch_work_join (work, error) ? NULL : g_steal_pointer (&copy);
}

/* Ranks have as many as the first one, the last of them fewer or none. */
static gint64
length_of (GTorchProcessGroup *group, gint rank, gint64 length, gint64 *first)
{
  const gint size = gtorch_process_group_get_size (group);
  const gint64 per = length / size + (length % size != 0);
  const gint64 start = (gint64) MIN ((guint64) per * rank, (guint64) length);

  if (first != NULL)
    *first = start;
  return MIN (per, length - start);
}

/* The part of a rank in memory of its own, which is as large for all. */
static GTorchTensor *
fill_up (GTorchTensor *tensor, gint64 length, GError **error)
{
  const GTorchImpl *impl = gtorch_tensor_unwrap (tensor);
  const gint last = (gint) impl->n_dims - 1;
  g_autoptr (GTorchTensor) filled = NULL, to = NULL;
  gint64 shape[GTORCH_MAX_DIMS];

  if (impl->shape[last] == length)
    return gtorch_tensor_contiguous (tensor, error);
  memcpy (shape, impl->shape, impl->n_dims * sizeof (gint64));
  shape[last] = length;
  filled =
      gtorch_zeros (shape, impl->n_dims, impl->dtype, gtorch_tensor_get_device (tensor), error);
  to = filled == NULL ? NULL : gtorch_tensor_narrow (filled, last, 0, impl->shape[last], error);
  return to == NULL || gtorch_tensor_copy_inplace (to, tensor, FALSE, error) == NULL
             ? NULL
             : g_steal_pointer (&filled);
}

static GTorchTensor *
gather (GTorchProcessGroup *group, GTorchTensor *tensor, gint64 length, GError **error)
{
  const gint size = gtorch_process_group_get_size (group);
  const gint last = (gint) gtorch_tensor_unwrap (tensor)->n_dims - 1;
  g_autoptr (GTorchTensor) whole = fill_up (tensor, length_of (group, 0, length, NULL), error);
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) used = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GTorchWork) work = NULL;
  const GTorchImpl *impl;
  gint i;

  if (whole == NULL)
    return NULL;
  impl = gtorch_tensor_unwrap (whole);
  for (i = 0; i < size; i++)
    {
      GTorchTensor *part = gtorch_empty (impl->shape, impl->n_dims, impl->dtype,
                                         gtorch_tensor_get_device (tensor), error);

      if (part == NULL)
        return NULL;
      g_ptr_array_add (parts, part);
    }
  work =
      gtorch_process_group_all_gather (group, (GTorchTensor **) parts->pdata, size, whole, error);
  if (work == NULL || !gtorch_work_join (work, error))
    return NULL;
  for (i = 0; i < size; i++)
    {
      GTorchTensor *part = gtorch_tensor_narrow (parts->pdata[i], last, 0,
                                                 length_of (group, i, length, NULL), error);

      if (part == NULL)
        return NULL;
      g_ptr_array_add (used, part);
    }
  return gtorch_cat ((GTorchTensor **) used->pdata, size, last, error);
}

static GTorchTensor *
split (GTorchProcessGroup *group, GTorchTensor *tensor, GError **error)
{
  const GTorchImpl *impl = gtorch_tensor_unwrap (tensor);
  const gint last = (gint) impl->n_dims - 1;
  gint64 first;
  const gint64 n =
      length_of (group, gtorch_process_group_get_rank (group), impl->shape[last], &first);
  g_autoptr (GTorchTensor) part = gtorch_tensor_narrow (tensor, last, first, n, error);

  return part == NULL ? NULL : gtorch_tensor_clone (part, error);
}

static GTorchTensor *
exchange (Exchange what, const GTorchParallelFunction *self, GTorchTensor *tensor, GError **error)
{
  return what == SUM      ? sum (self->group, tensor, error)
         : what == GATHER ? gather (self->group, tensor, self->length, error)
         : what == SPLIT  ? split (self->group, tensor, error)
                          : gtorch_tensor_clone (tensor, error);
}

static GPtrArray *
run (GTorchFunction *function, Exchange what, GTorchTensor *tensor, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  GTorchTensor *result = exchange (what, (GTorchParallelFunction *) function, tensor, error);
  GPtrArray *results;

  if (result == NULL)
    return NULL;
  results = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (results, result);
  return results;
}

static GPtrArray *
gtorch_parallel_function_forward (GTorchFunction *function, GTorchFunctionContext *context,
                                  GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  GTORCH_GROUP_CALL (((GTorchParallelFunction *) function)->name);

  return run (function, ((GTorchParallelFunction *) function)->forward, inputs[0], error);
}

static GPtrArray *
gtorch_parallel_function_backward (GTorchFunction *function, GTorchFunctionContext *context,
                                   GTorchTensor **grads, gsize n_grads, GError **error)
{
  GTorchParallelFunction *self = (GTorchParallelFunction *) function;
  GTORCH_GROUP_CALL (self->name);

  if (!gtorch_is_grad_enabled ())
    return run (function, self->backward, grads[0], error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
               _ ("%s: gradients of gradients (create_graph) do not go to other ranks"),
               self->name);
  return NULL;
}

static void
gtorch_parallel_function_finalize (GObject *object)
{
  g_clear_object (&((GTorchParallelFunction *) object)->group);
  G_OBJECT_CLASS (gtorch_parallel_function_parent_class)->finalize (object);
}

static void
gtorch_parallel_function_class_init (GTorchParallelFunctionClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_parallel_function_finalize;
  klass->forward = gtorch_parallel_function_forward;
  klass->backward = gtorch_parallel_function_backward;
}

static void
gtorch_parallel_function_init (GTorchParallelFunction *self)
{
}

static gboolean
check (const gchar *name, GTorchProcessGroup *group, GTorchTensor *tensor, Exchange forward,
       gint64 length, GError **error)
{
  const GTorchImpl *impl = gtorch_tensor_unwrap (tensor);
  const gint rank = gtorch_process_group_get_rank (group);
  gint64 expected;

  if (rank < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: this process has no rank in the group"), name);
      return FALSE;
    }
  if (impl->n_dims == 0 && (forward == GATHER || forward == SPLIT))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: a tensor without dimensions cannot be divided along its last one"),
                   name);
      return FALSE;
    }
  if (forward != GATHER)
    return TRUE;
  if (length < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: the whole length is %" PRId64
                      "; it is 0 or more, or -1 if all parts have the same"),
                   name, length);
      return FALSE;
    }
  expected = length_of (group, rank, length, NULL);
  if (impl->shape[impl->n_dims - 1] == expected)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: the tensor of rank %d has the shape %s; of a whole length of %" PRId64
                  " its last dimension has %" PRId64),
               name, rank, gtorch_impl_shape_str (impl), length, expected);
  return FALSE;
}

static GTorchTensor *
apply (const gchar *name, GTorchProcessGroup *group, GTorchTensor *tensor, Exchange forward,
       Exchange backward, gint64 length, GError **error)
{
  g_autoptr (GTorchFunction) owned = NULL;
  g_autoptr (GPtrArray) results = NULL;
  GTorchParallelFunction *function;

  if (!check (name, group, tensor, forward, length, error))
    return NULL;
  function = g_object_new (gtorch_parallel_function_get_type (), NULL);
  owned = GTORCH_FUNCTION (function);
  function->group = g_object_ref (group);
  function->name = gtorch_group_call_name (name); /* also in the backward pass */
  function->forward = forward;
  function->backward = backward;
  function->length = length;
  results = gtorch_function_apply (owned, &tensor, 1, error);
  return results == NULL ? NULL : g_object_ref (results->pdata[0]);
}

/**
 * gtorch_parallel_copy:
 * @group: processes
 * @tensor: a tensor that is the same on all of them
 * @error: return location for an error
 *
 * Gives a tensor to computations of which each rank does another part. Its gradient is the sum of those of
 * all ranks. All ranks go backward through it.
 *
 * Returns: (transfer full): a tensor with the same elements, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_parallel_copy (GTorchProcessGroup *group, GTorchTensor *tensor, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (group) && GTORCH_IS_TENSOR (tensor), NULL);
  return apply ("parallel_copy", group, tensor, NOTHING, SUM, 0, error);
}

/**
 * gtorch_parallel_sum:
 * @group: processes
 * @tensor: a tensor that each of them has computed a part of
 * @error: return location for an error
 *
 * Adds up the tensors of all ranks, for computations that all of them do alike. All ranks call this.
 *
 * Returns: (transfer full): the sum, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_parallel_sum (GTorchProcessGroup *group, GTorchTensor *tensor, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (group) && GTORCH_IS_TENSOR (tensor), NULL);
  return apply ("parallel_sum", group, tensor, SUM, NOTHING, 0, error);
}

/**
 * gtorch_parallel_gather:
 * @group: processes
 * @tensor: a part of a tensor that is divided along its last dimension
 * @length: the length of the whole tensor along that; -1 if all parts have the same one
 * @error: return location for an error
 *
 * Joins the parts of all ranks along the last dimension, for computations that all of them do alike. All
 * ranks call this. Of @length, ranks have what [func@parallel_split] gives them.
 *
 * Returns: (transfer full): the whole tensor, or %NULL with @error set: %GTORCH_ERROR_SHAPE if @tensor is
 *   not such a part
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_parallel_gather (GTorchProcessGroup *group, GTorchTensor *tensor, gint64 length,
                        GError **error)
{
  const GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (group) && GTORCH_IS_TENSOR (tensor), NULL);
  impl = gtorch_tensor_unwrap (tensor);
  if (length == -1 && impl->n_dims > 0)
    length = impl->shape[impl->n_dims - 1] * gtorch_process_group_get_size (group);
  return apply ("parallel_gather", group, tensor, GATHER, SPLIT, length, error);
}

/**
 * gtorch_parallel_split:
 * @group: processes
 * @tensor: a tensor that is the same on all of them
 * @error: return location for an error
 *
 * Takes this rank's part along the last dimension. The gradient is joined from those of all ranks, which go
 * backward through it. If the length is not a multiple of the number of ranks, the last ranks have fewer
 * elements than the others, or none.
 *
 * Returns: (transfer full): the part, or %NULL with @error set: %GTORCH_ERROR_SHAPE if @tensor has no
 *   dimension
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_parallel_split (GTorchProcessGroup *group, GTorchTensor *tensor, GError **error)
{
  const GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (group) && GTORCH_IS_TENSOR (tensor), NULL);
  impl = gtorch_tensor_unwrap (tensor);
  return apply ("parallel_split", group, tensor, SPLIT, GATHER,
                impl->n_dims == 0 ? 0 : impl->shape[impl->n_dims - 1], error);
}
